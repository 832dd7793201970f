//! `steward audit`: who changed what and who was refused, over all processes of an installation.
//!
//! Each process answers for the calls that arrived there. So every address that the installation is spread over is asked,
//! and the answers are merged by time; a server that does not answer is reported beside what the others say.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, Subcommand, ValueEnum};
use steward_base::{Clock as _, SystemClock};
use steward_client::{AuditClient, ClientError};
use steward_proto::access::v1 as pb;
use steward_proto::methods::METHODS;

use crate::Said;
use crate::connect::{Connection, Session};
use crate::fault::{Fault, at_least_one};
use crate::output::{Cell, Output, Tone, counted, gather, json_of, parse_time, printable, short, time, word};

/// Verbs of `steward audit`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List calls that changed something or were denied, newest first.
    List(Filter),
}

/// Which calls.
#[derive(Debug, Args)]
pub struct Filter {
    /// From this time on: 2026-11-30, 2026-11-30T08:15:00Z, or how long ago, such as 2h or 7d.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only of this person: id or full name.
    #[arg(long)]
    user: Option<String>,
    /// Only of this method, service or package: `MemoryService/Apply`, `MemoryService`, `steward.memory.v1`.
    #[arg(long, default_value = "", hide_default_value = true)]
    method: String,
    /// Only with this outcome.
    #[arg(long, value_enum)]
    outcome: Option<Outcome>,
    /// Also calls that belong to no team (admins of the home team).
    #[arg(long)]
    unattributed: bool,
    /// At most this many.
    #[arg(long, default_value_t = 50, value_parser = at_least_one::<usize>)]
    limit: usize,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Outcome {
    /// It was answered.
    Succeeded,
    /// It was refused for who asked.
    Denied,
    /// It ended with another error.
    Failed,
}

impl From<Outcome> for pb::AuditOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Denied => Self::Denied,
            Outcome::Failed => Self::Failed,
        }
    }
}

/// What one server said.
type Answer = Result<pb::ListAuditEventsResponse, ClientError>;

/// What all said together.
#[derive(Debug, Default)]
struct Merged {
    events: Vec<pb::AuditEvent>,
    /// Whether there are older ones that are not among them.
    more: bool,
    failed: BTreeMap<String, ClientError>,
}

/// Runs a verb.
pub async fn run(verb: Verb, connection: &Connection, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let Verb::List(filter) = verb;
    let request = request(&filter, session)?;
    let addresses: BTreeSet<String> = connection.endpoints()?.into_values().collect();
    let mut asked = tokio::task::JoinSet::new();
    for address in addresses {
        let client = AuditClient::new(connection.wire(&address)?);
        let (request, limit) = (request.clone(), filter.limit);
        asked.spawn(async move { (address, ask(&client, &request, limit).await) });
    }
    output.progress(&format!("asking {}", counted(asked.len(), "server")));
    let mut answers = BTreeMap::new();
    while let Some(answer) = asked.join_next().await {
        let (address, answer) = answer?;
        answers.insert(address, answer);
    }
    output.progress("");
    let several = answers.len() > 1;
    let merged = merge(answers, filter.limit);
    show(&merged, several, output)?;
    if merged.failed.is_empty() {
        Ok(())
    } else {
        Err(Said.into())
    }
}

fn request(filter: &Filter, session: &Session) -> anyhow::Result<pb::ListAuditEventsRequest> {
    let now = SystemClock.now();
    let at = |given: &Option<String>| given.as_deref().map(|given| parse_time(given, now)).transpose();
    Ok(pb::ListAuditEventsRequest {
        parent: session.team.clone(),
        start_time: at(&filter.since)?,
        end_time: at(&filter.until)?,
        user: filter
            .user
            .as_deref()
            .map_or_else(String::new, |user| session.child("users", user)),
        method: method(&filter.method)?,
        outcome: filter.outcome.map_or(pb::AuditOutcome::Unspecified, Into::into).into(),
        include_unattributed: filter.unattributed,
        ..pb::ListAuditEventsRequest::default()
    })
}

/// A method, service or package as servers take it. The list shows them without the package, and so they may be given. A word
/// that fits none is refused: nothing would be found, and that would look like an answer.
fn method(given: &str) -> Result<String, Fault> {
    let paths = || METHODS.iter().map(|method| method.path.trim_start_matches('/'));
    // What a server calls everything that it does not know.
    if given.is_empty() || given == "_OTHER" || paths().any(|path| path.starts_with(given)) {
        return Ok(given.to_owned());
    }
    let service = given.split('/').next().unwrap_or_default();
    let whole = |path: &'static str| {
        let (package, call) = path.split('/').next()?.rsplit_once('.')?;
        let is_meant = call == service && (given == service || path.ends_with(given));
        is_meant.then(|| format!("{package}.{given}"))
    };
    let found: BTreeSet<String> = paths().filter_map(whole).collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(method), None) => Ok(method),
        (Some(one), Some(other)) => Err(Fault::usage(format!("--method {given}: {one} or {other}?"))),
        (None, _) => Err(Fault::usage(format!(
            "--method {given}: no method, service or package of the contract is called so"
        ))),
    }
}

async fn ask(client: &AuditClient, request: &pb::ListAuditEventsRequest, limit: usize) -> Answer {
    gather(limit, |page_size, page_token| {
        client.list_audit_events(pb::ListAuditEventsRequest {
            page_size,
            page_token,
            ..request.clone()
        })
    })
    .await
}

fn merge(answers: BTreeMap<String, Answer>, limit: usize) -> Merged {
    let mut merged = Merged::default();
    for (address, answer) in answers {
        match answer {
            Ok(answer) => {
                merged.more |= !answer.next_page_token.is_empty();
                merged.events.extend(answer.audit_events);
            }
            Err(error) => {
                merged.failed.insert(address, error);
            }
        }
    }
    let at = |event: &pb::AuditEvent| event.time.map_or((0, 0), |time| (time.seconds, time.nanos));
    merged.events.sort_by(|one, other| {
        at(other)
            .cmp(&at(one))
            .then_with(|| other.name.cmp(&one.name))
            .then_with(|| one.service.cmp(&other.service))
    });
    // Two addresses can lead to the same process.
    merged.events.dedup();
    merged.more |= merged.events.len() > limit;
    merged.events.truncate(limit);
    merged
}

fn show(merged: &Merged, several: bool, output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        let events: Vec<_> = merged.events.iter().map(json_of).collect::<anyhow::Result<_>>()?;
        let failed = merged.failed.iter().map(|(address, error)| {
            serde_json::json!({"endpoint": address, "reason": error.reason, "message": printable(&error.to_string())})
        });
        return output.document(&serde_json::json!({
            "auditEvents": events,
            "more": merged.more,
            "failed": failed.collect::<Vec<_>>(),
        }));
    }
    let rows = merged.events.iter().map(|event| row(event, several)).collect();
    let head: &[&str] = if several {
        &["when", "who", "call", "outcome", "on", "service"]
    } else {
        &["when", "who", "call", "outcome", "on"]
    };
    let empty = if merged.failed.is_empty() {
        "Nothing was recorded."
    } else {
        "The servers that answered recorded nothing."
    };
    output.table(head, rows, empty);
    if merged.more {
        output.aside("there are older ones; a higher --limit or --until shows them");
    }
    for (address, error) in &merged.failed {
        output.warn(&format!("{address} is not in this list: {error} ({})", error.reason));
    }
    Ok(())
}

fn row(event: &pb::AuditEvent, several: bool) -> Vec<Cell> {
    let mut outcome = word(event.outcome().as_str_name(), "AUDIT_OUTCOME_");
    let tone = Tone::of_state(&outcome);
    if !event.reason.is_empty() {
        outcome = format!("{outcome}: {}", event.reason);
    }
    if event.count > 1 {
        outcome = format!("{outcome} ({} times)", event.count);
    }
    let method = event.method.rsplit('.').next().unwrap_or(&event.method);
    let mut row = vec![
        Cell::side(time(event.time.as_ref())),
        who(event).into(),
        method.into(),
        Cell::toned(outcome, tone),
        event.resources.join("\n").into(),
    ];
    if several {
        row.push(event.service.as_str().into());
    }
    row
}

/// The person, and through what; a service; or where the call came from.
fn who(event: &pb::AuditEvent) -> String {
    let person = short(&event.user);
    match event.principal_kind() {
        pb::PrincipalKind::Person => person.to_owned(),
        pb::PrincipalKind::Turn => format!("{person}, in a turn"),
        pb::PrincipalKind::Job if event.job_id.is_empty() => format!("{person}, by a job"),
        pb::PrincipalKind::Job => format!("{person}, by job {}", event.job_id),
        pb::PrincipalKind::Service if person.is_empty() => event.caller_service.clone(),
        pb::PrincipalKind::Service => format!("{} for {person}", event.caller_service),
        pb::PrincipalKind::Unspecified if event.peer.is_empty() => "nobody known".to_owned(),
        pb::PrincipalKind::Unspecified => format!("nobody known at {}", event.peer),
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt as _;

    use super::*;

    fn event(seconds: i64, service: &str) -> pb::AuditEvent {
        pb::AuditEvent {
            name: format!("teams/a/auditEvents/{seconds}"),
            time: Some(prost_types::Timestamp { seconds, nanos: 0 }),
            service: service.to_owned(),
            ..pb::AuditEvent::default()
        }
    }

    fn answer(events: Vec<pb::AuditEvent>) -> pb::ListAuditEventsResponse {
        pb::ListAuditEventsResponse {
            audit_events: events,
            ..pb::ListAuditEventsResponse::default()
        }
    }

    #[test]
    fn answers_of_several_servers_are_one_list_by_time_and_a_failure_stands_beside_it() {
        let unreachable = ClientError::from(tonic::Status::with_error_details(
            tonic::Code::Unavailable,
            "gone",
            tonic_types::ErrorDetails::new(),
        ));
        let answers = BTreeMap::from([
            ("http://a".to_owned(), Ok(answer(vec![event(5, "a"), event(1, "a")]))),
            ("http://b".to_owned(), Ok(answer(vec![event(3, "b")]))),
            ("http://c".to_owned(), Err(unreachable)),
        ]);
        let merged = merge(answers, 10);
        let order: Vec<_> = merged.events.iter().map(|event| event.service.as_str()).collect();
        assert_eq!(order, ["a", "b", "a"]);
        assert!(!merged.more);
        assert_eq!(merged.failed.keys().collect::<Vec<_>>(), ["http://c"]);
    }

    #[test]
    fn the_same_process_at_two_addresses_is_told_once_and_what_is_cut_is_said() {
        let both = || Ok(answer(vec![event(5, "a"), event(1, "a")]));
        let answers = || BTreeMap::from([("http://a".to_owned(), both()), ("http://b".to_owned(), both())]);
        assert_eq!(merge(answers(), 10).events.len(), 2);
        let cut = merge(answers(), 1);
        assert_eq!((cut.events.len(), cut.more), (1, true));
    }

    #[test]
    fn a_method_is_taken_as_the_list_shows_it_and_one_that_there_is_not_is_refused() {
        for (given, meant) in [
            ("", ""),
            ("_OTHER", "_OTHER"),
            ("steward.memory.v1", "steward.memory.v1"),
            ("MemoryService", "steward.memory.v1.MemoryService"),
            ("HubService/SearchHub", "steward.hub.v1.HubService/SearchHub"),
        ] {
            assert_eq!(method(given).as_deref(), Ok(meant));
        }
        for wrong in ["nonsense", "MemoryService/Nothing", "Memory", "/"] {
            assert_eq!(method(wrong).unwrap_err().reason, crate::fault::USAGE, "{wrong}");
        }
    }

    #[test]
    fn everyone_who_can_call_has_a_name() {
        let mut event = pb::AuditEvent {
            user: "teams/a/users/ann".to_owned(),
            ..pb::AuditEvent::default()
        };
        let mut said = |kind: pb::PrincipalKind| {
            event.principal_kind = kind.into();
            who(&event)
        };
        assert_eq!(said(pb::PrincipalKind::Person), "ann");
        assert_eq!(said(pb::PrincipalKind::Turn), "ann, in a turn");
        assert_eq!(said(pb::PrincipalKind::Job), "ann, by a job");
        event.user.clear();
        event.principal_kind = pb::PrincipalKind::Unspecified.into();
        event.peer = "10.0.0.9:5".to_owned();
        assert_eq!(who(&event), "nobody known at 10.0.0.9:5");
    }
}
