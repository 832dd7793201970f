//! Skills for people.

use steward_proto::skill::v1 as pb;

use crate::output::{Cell, NOTICE, Output, Tone, first_line, printable, short, size, time, word};

pub(super) fn list(output: &mut Output, answer: &pb::ListSkillsResponse) {
    let rows = answer
        .skills
        .iter()
        .map(|skill| {
            let uses = skill.r#use.unwrap_or_default().use_count;
            vec![
                Cell::name(called(skill)),
                first_line(&skill.description, 60).into(),
                Cell::side(marks(skill).join(", ")),
                uses.to_string().into(),
                Cell::state(state(skill)),
            ]
        })
        .collect();
    output.table(&["skill", "for", "made by", "uses", "state"], rows, "No skills.");
    for broken in &answer.broken {
        output.warn(&format!("broken: {}: {}", broken.name, broken.broken_reason));
    }
}

/// What a person types to name it.
fn called(skill: &pb::Skill) -> String {
    match (skill.full_name.as_str(), skill.category.as_str()) {
        ("", "") => short(&skill.name).to_owned(),
        ("", category) => format!("{category}/{}", short(&skill.name)),
        (full, _) => full.to_owned(),
    }
}

pub(super) fn state(skill: &pb::Skill) -> String {
    word(skill.state().as_str_name(), "SKILL_STATE_")
}

fn marks(skill: &pb::Skill) -> Vec<String> {
    let mut marks = vec![word(skill.provenance().as_str_name(), "SKILL_PROVENANCE_")];
    let said = [
        (skill.pinned, "pinned"),
        (skill.protected, "protected"),
        (skill.hidden, "hidden"),
        (skill.manual_only, "only by its command"),
    ];
    marks.extend(said.iter().filter(|(is, _)| *is).map(|(_, word)| (*word).to_owned()));
    marks
}

pub(super) fn skill(output: &mut Output, skill: &pb::Skill) {
    let used = skill.r#use.unwrap_or_default();
    output.record(vec![
        ("name", Cell::name(skill.name.as_str())),
        ("called", called(skill).into()),
        ("for", skill.description.as_str().into()),
        ("state", Cell::state(state(skill))),
        ("scope", word(skill.scope().as_str_name(), "SKILL_SCOPE_").into()),
        ("made by", marks(skill).join(", ").into()),
        ("revision", skill.revision.as_str().into()),
        ("uses", used.use_count.to_string().into()),
        ("views", used.view_count.to_string().into()),
        ("patches", used.patch_count.to_string().into()),
        ("last used", time(used.last_use_time.as_ref()).into()),
        ("needs", skill.required_variables.join(" ").into()),
        ("created", time(skill.create_time.as_ref()).into()),
        ("changed", time(skill.update_time.as_ref()).into()),
        ("archived", time(skill.archive_time.as_ref()).into()),
        ("warning", Cell::toned(skill.warning.as_str(), Tone::Notice)),
        ("broken", Cell::toned(skill.broken_reason.as_str(), Tone::Bad)),
    ]);
}

pub(super) fn view(output: &mut Output, answer: &pb::ViewSkillResponse) {
    if answer.binary {
        output.line("The file is not text; `steward skills export` writes it to a folder.");
    } else {
        output.line(printable(&answer.content).trim_end_matches('\n'));
    }
    if answer.files.len() > 1 {
        output.line("");
        let rows = answer.files.iter().map(|file| {
            vec![
                Cell::name(file.path.as_str()),
                Cell::side(size(file.size_bytes)),
                Cell::side(first_line(&file.sha256, 13)),
            ]
        });
        output.table(&["file", "size", "sha256"], rows.collect(), "");
    }
    for variable in &answer.variables {
        output.aside(&need(variable));
    }
    if let Some(skill) = answer.skill.as_ref().filter(|skill| !skill.warning.is_empty()) {
        output.warn(&skill.warning);
    }
}

/// What a skill needs where its commands run, and whether it is there: here, or with the team. Only its presence is looked at.
fn need(variable: &pb::SkillVariable) -> String {
    let state = if std::env::var_os(&variable.name).is_some() {
        "it is set here"
    } else if variable.set_by_team {
        "the team keeps it; `steward secrets run` brings it"
    } else if variable.optional {
        "it works without"
    } else {
        "it is not set"
    };
    let said = [&variable.prompt, &variable.help];
    let said = said
        .into_iter()
        .find(|said| !said.is_empty())
        .map_or("", String::as_str);
    let colon = if said.is_empty() { "" } else { ": " };
    format!(
        "needs {} ({state}){colon}{}",
        printable(&variable.name),
        printable(said)
    )
}

/// After a change: where the skill stands now.
pub(super) fn now(output: &mut Output, skill: Option<&pb::Skill>) {
    if let Some(skill) = skill {
        output.line(&format!(
            "{} is at revision {} ({}).",
            printable(&skill.name),
            first_line(&skill.revision, 13),
            state(skill)
        ));
    }
}

pub(super) fn managed(output: &mut Output, answer: &pb::ManageSkillResponse) {
    if answer.approximate {
        output.line(&format!(
            "{NOTICE}The text matched only after blanks were ignored; check the result.{NOTICE:#}"
        ));
    }
    now(output, answer.skill.as_ref());
}
