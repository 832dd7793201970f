//! The recall tool (`Q-1`): the shape of the question follows from the arguments, and the answer is set as text whose
//! spans keep whose words each part is and how far they may be trusted (`R-3`).

mod render;

use steward_base::Timestamp;
use steward_base::names::{self, SessionId, TeamId};
use steward_proto::recall::v1::{self as pb, search_request::Shape};
use time::format_description::well_known::Rfc3339;

use crate::answer::ToolAnswer;
use crate::arguments::{Arguments, shown};
use crate::context::ToolContext;
use crate::definitions::SESSION_SEARCH;
use crate::failure::{Sort, failed};
use crate::{Clients, STORE_NAMES};

/// Longest query, in characters.
const MAX_QUERY: usize = 1000;

const ROLES: &[(&str, pb::MessageRole)] = &[
    ("user", pb::MessageRole::User),
    ("assistant", pb::MessageRole::Assistant),
    ("tool", pb::MessageRole::Tool),
];

const SORTS: &[(&str, pb::SearchSort)] = &[
    ("relevance", pb::SearchSort::Relevance),
    ("newest", pb::SearchSort::Newest),
    ("oldest", pb::SearchSort::Oldest),
];

pub(crate) async fn call(clients: &Clients, context: &ToolContext, arguments: &str) -> ToolAnswer {
    let shape = match read(&context.team, arguments) {
        Ok(shape) => shape,
        Err(problems) => return ToolAnswer::misused(SESSION_SEARCH, &problems),
    };
    let request = pb::SearchRequest {
        parent: context.user_name(),
        shape: Some(shape.clone()),
        current_session: context.session_name(),
    };
    match clients.recall(context).search(request).await {
        Ok(response) => render::answer(&context.user, &shape, &response),
        Err(error) => failed(SESSION_SEARCH, STORE_NAMES.recall, Sort::Read, &error),
    }
}

fn read(team: &TeamId, text: &str) -> Result<Shape, Vec<String>> {
    let mut arguments = Arguments::parse(text).map_err(|problem| vec![problem])?;
    let query = arguments.text("query").filter(|query| !query.trim().is_empty());
    let session = arguments.text("session").filter(|session| !session.trim().is_empty());
    let around = arguments.number("around_message", 1, u64::MAX);
    let window = arguments.number("window", 1, 20);
    let from = arguments.number("from", 1, u64::MAX);
    let limit = arguments.number("limit", 1, 200);
    let sort = arguments.choice("sort", SORTS);
    let roles = roles(&mut arguments);
    let after = moment(&mut arguments, "after");
    let before = moment(&mut arguments, "before");
    if query.as_ref().is_some_and(|query| query.chars().count() > MAX_QUERY) {
        arguments.wrong("query", format!("must have at most {MAX_QUERY} characters"));
    }
    if around.is_some() && session.is_none() {
        arguments.wrong("around_message", "needs `session`");
    }
    let session = session.map(|session| session_name(&mut arguments, team, session.trim()));
    let problems = arguments.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let limit = small(limit);
    Ok(match (session, around, query) {
        (Some(session), Some(around_seq), _) => Shape::Scroll(pb::Scroll {
            session,
            around_seq,
            window: small(window),
            roles,
        }),
        (Some(session), None, _) => Shape::Read(pb::Read {
            session,
            from_seq: from.unwrap_or(0),
            limit,
        }),
        (None, _, Some(query)) => Shape::Discover(pb::Discover {
            query,
            limit,
            sort: sort.unwrap_or(pb::SearchSort::Unspecified).into(),
            roles,
            sources: Vec::new(),
            after,
            before,
        }),
        (None, _, None) => Shape::Browse(pb::Browse { limit }),
    })
}

fn small(number: Option<u64>) -> i32 {
    number.and_then(|number| i32::try_from(number).ok()).unwrap_or(0)
}

fn roles(arguments: &mut Arguments) -> Vec<i32> {
    let mut roles = Vec::new();
    for word in arguments.texts("roles") {
        match ROLES.iter().find(|(name, _)| *name == word) {
            Some((_, role)) => roles.push((*role).into()),
            None => arguments.wrong(
                "roles",
                format!("holds `{}`; there are `user`, `assistant` and `tool`", shown(&word)),
            ),
        }
    }
    roles
}

/// Answers name sessions by their bare id; a full name of the own team is good as well.
fn session_name(arguments: &mut Arguments, team: &TeamId, session: &str) -> String {
    let id = session
        .strip_prefix(&format!("{}/sessions/", names::team_name(team)))
        .unwrap_or(session);
    if let Ok(id) = SessionId::parse(id) {
        return names::session_name(team, &id);
    }
    arguments.wrong("session", "is not the id of a session; take it from an earlier answer");
    String::new()
}

fn moment(arguments: &mut Arguments, name: &'static str) -> Option<prost_types::Timestamp> {
    let text = arguments.text(name)?;
    let text = text.trim();
    let full = if text.len() == "2026-11-29".len() {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    let Ok(at) = time::OffsetDateTime::parse(&full, &Rfc3339) else {
        arguments.wrong(
            name,
            "must be a day such as 2026-11-29 or a time such as 2026-11-29T08:00:00Z",
        );
        return None;
    };
    let (seconds, nanos) = Timestamp::from_secs(at.unix_timestamp()).to_parts();
    Some(prost_types::Timestamp { seconds, nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Shape, Vec<String>> {
        read(&TeamId::parse("red").unwrap(), text)
    }

    #[test]
    fn the_anchor_wins_over_the_session_and_the_session_over_the_query() {
        let all = shape(r#"{"query":"q","session":"s1","around_message":7,"window":3}"#).unwrap();
        let Shape::Scroll(scroll) = all else {
            panic!("an anchor scrolls")
        };
        assert_eq!(
            (scroll.session.as_str(), scroll.around_seq, scroll.window),
            ("teams/red/sessions/s1", 7, 3)
        );
        let both = shape(r#"{"query":"q","session":"teams/red/sessions/s1","from":4}"#).unwrap();
        assert!(matches!(
            both,
            Shape::Read(pb::Read {
                from_seq: 4,
                limit: 0,
                ..
            })
        ));
        assert!(matches!(
            shape(r#"{"query":"q","sort":"newest"}"#).unwrap(),
            Shape::Discover(_)
        ));
        assert!(matches!(shape("").unwrap(), Shape::Browse(pb::Browse { limit: 0 })));
    }

    #[test]
    fn days_and_times_are_read_and_everything_else_is_named() {
        let found = shape(r#"{"query":"q","after":"2026-11-29","before":"2026-11-29T01:00:00+01:00"}"#).unwrap();
        let Shape::Discover(discover) = found else {
            panic!("a query discovers")
        };
        assert_eq!(discover.after, discover.before);
        let problems = shape(r#"{"after":"yesterday","roles":["bot"],"around_message":1}"#).unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(shape(r#"{"session":"teams/blue/sessions/s1"}"#).is_err());
    }
}
