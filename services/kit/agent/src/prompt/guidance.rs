//! The fixed texts of the stable tier and the rule which of them a session gets.

use steward_base::hash::sha256_parts;

pub(super) const IDENTITY: &str = include_str!("../../prompts/guidance/identity.txt");
const FINISHING: &str = include_str!("../../prompts/guidance/finishing.txt");
const PARALLEL: &str = include_str!("../../prompts/guidance/parallel.txt");
const STEWARD: &str = include_str!("../../prompts/guidance/steward.txt");
const MEMORY: &str = include_str!("../../prompts/guidance/memory.txt");
const SKILLS: &str = include_str!("../../prompts/guidance/skills.txt");
const SKILL_MANAGE: &str = include_str!("../../prompts/guidance/skill_manage.txt");
const SESSION_SEARCH: &str = include_str!("../../prompts/guidance/session_search.txt");

/// When a block belongs into the prompt.
enum When {
    Always,
    AnyTool,
    Offered(&'static str),
}

const BLOCKS: [(When, &str); 7] = [
    (When::Always, FINISHING),
    (When::AnyTool, PARALLEL),
    (When::Always, STEWARD),
    (When::Offered("memory"), MEMORY),
    (When::Offered("skill_view"), SKILLS),
    (When::Offered("skill_manage"), SKILL_MANAGE),
    (When::Offered("session_search"), SESSION_SEARCH),
];

/// The blocks for a session that is offered these tools, in their fixed order.
pub(super) fn blocks_for<'a>(tools: &'a [&'a str]) -> impl Iterator<Item = &'static str> + 'a {
    BLOCKS
        .iter()
        .filter(|(when, _)| match when {
            When::Always => true,
            When::AnyTool => !tools.is_empty(),
            When::Offered(name) => tools.contains(name),
        })
        .map(|(_, block)| *block)
}

/// SHA-256 over all fixed texts, so that a session's record can say which edition it was given.
pub fn static_text_hash() -> String {
    let texts = [
        IDENTITY,
        FINISHING,
        PARALLEL,
        STEWARD,
        MEMORY,
        SKILLS,
        SKILL_MANAGE,
        SESSION_SEARCH,
    ];
    sha256_parts(texts.map(str::as_bytes))
}
