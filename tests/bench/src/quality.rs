//! `quality`: whether search finds what people ask about, on conversations with questions and answers known.
//!
//! No speed here. Each set is loaded through recall-service with the times at which things were said, each question is asked
//! by the person who had the conversations, and what comes back is compared with what ought to. The README has the format.

mod floor;
mod set;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};
use steward_base::{Clock, Timestamp};
use steward_client::{RecallClient, SessionStoreClient};
use steward_proto::recall::v1 as pb;

use crate::arguments::{Arguments, Quality};
use crate::measure::{number, rounded};
use crate::rig::{Rig, TEAM};

use floor::Floor;
use set::{Folder, Question, Set, Talk};

/// Places that are looked at.
const PLACES: [usize; 4] = [1, 3, 5, 10];
/// Messages of one append.
const BATCH: usize = 500;
/// Conversations of an answer.
const LIMIT: usize = 10;

/// Stands still until it is set.
#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// What came of one question.
struct Outcome {
    /// Share of the sessions that ought to be found, by place.
    sessions: [f64; PLACES.len()],
    /// Share of the messages, where the set names some.
    messages: Option<[f64; PLACES.len()]>,
    /// One through the place of the first right session; 0 without one.
    reciprocal: f64,
    /// Whether any right session is among the first five.
    any_of_five: f64,
}

pub(crate) async fn run(options: &Quality, arguments: &Arguments) -> anyhow::Result<Value> {
    let Folder { sets, unread } = set::read_folder(&options.folder_of_sets)?;
    ensure!(
        !sets.is_empty(),
        "{} holds no set in a form that the README names",
        options.folder_of_sets.display()
    );
    let mut figures = Map::new();
    for set in sets {
        let folder = arguments.fresh_folder()?;
        let outcomes = Box::pin(outcomes(folder.path(), &set)).await?;
        let mut of_set = summary("", &outcomes);
        of_set.insert("questions".to_owned(), json!(outcomes.len()));
        of_set.extend(summary("floor_", &floor_outcomes(folder.path(), &set)?));
        figures.insert(set.name.clone(), Value::Object(of_set));
    }
    Ok(json!({ "sets": figures, "unread": unread }))
}

async fn outcomes(folder: &Path, set: &Set) -> anyhow::Result<Vec<Outcome>> {
    let clock = Arc::new(SetClock::default());
    let rig = Rig::with_clock(folder, clock.clone())?;
    let deps = steward_recall::Deps { auth: rig.auth.clone() };
    let mut built = steward_recall::build(steward_recall::Config::default(), deps, &rig.boot).await?;
    built.start_background(&rig.boot.tasks);
    for (place, talk) in set.talks.iter().enumerate() {
        clock.0.store(talk.time.as_micros(), Ordering::Relaxed);
        let store = SessionStoreClient::new(built.local_client().with_credentials(rig.orchestrator()?));
        load(&store, place, talk)
            .await
            .with_context(|| format!("load {}", talk.id))?;
    }
    let mut outcomes = Vec::with_capacity(set.questions.len());
    for question in &set.questions {
        let wire = built
            .local_client()
            .with_credentials(rig.person_named(&question.person)?);
        let search = RecallClient::new(wire);
        let found = ask(&search, question).await?;
        outcomes.push(compare(set, question, &found));
    }
    drop(built);
    rig.stop().await?;
    Ok(outcomes)
}

fn floor_outcomes(folder: &Path, set: &Set) -> anyhow::Result<Vec<Outcome>> {
    let floor = Floor::load(folder, set)?;
    let mut outcomes = Vec::with_capacity(set.questions.len());
    for question in &set.questions {
        let found = floor.ask(set, question, LIMIT)?;
        outcomes.push(compare(set, question, &found));
    }
    floor.close()?;
    Ok(outcomes)
}

async fn load(store: &SessionStoreClient, place: usize, talk: &Talk) -> anyhow::Result<()> {
    let new = pb::Session {
        user: format!("{TEAM}/users/{}", talk.person),
        model: "bench".to_owned(),
        tools_json: "[]".to_owned(),
        ..pb::Session::default()
    };
    let create = pb::CreateSessionRequest {
        parent: TEAM.to_owned(),
        session_id: format!("s{place}"),
        session: Some(new),
        request_id: format!("create-{place}"),
    };
    store.create_session(create).await?;
    let mut last = 0;
    for messages in talk.messages.chunks(BATCH) {
        let append = pb::AppendMessagesRequest {
            session: format!("{TEAM}/sessions/s{place}"),
            acquire_lease: Some(pb::TurnLease {
                turn: format!("t{last}"),
                holder: "bench".to_owned(),
                ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
            }),
            release_lease: true,
            expected_seq: last,
            request_id: format!("append-{last}"),
            messages: messages.to_vec(),
            ..pb::AppendMessagesRequest::default()
        };
        last = store.append_messages(append).await?.last_seq;
    }
    Ok(())
}

/// Places of the sessions that are found, each with the number of the message that was hit.
async fn ask(search: &RecallClient, question: &Question) -> anyhow::Result<Vec<(usize, u64)>> {
    let discover = pb::Discover {
        query: question.text.clone(),
        limit: i32::try_from(LIMIT)?,
        ..pb::Discover::default()
    };
    let request = pb::SearchRequest {
        parent: format!("{TEAM}/users/{}", question.person),
        shape: Some(pb::search_request::Shape::Discover(discover)),
        current_session: String::new(),
    };
    let answer = search
        .search(request)
        .await
        .with_context(|| format!("ask {:?}", question.text))?;
    let found = answer.conversations.into_iter().filter_map(|conversation| {
        let place = conversation.session.rsplit_once("/sessions/s")?.1.parse().ok()?;
        Some((place, conversation.hit?.seq))
    });
    Ok(found.collect())
}

fn compare(set: &Set, question: &Question, found: &[(usize, u64)]) -> Outcome {
    let places: BTreeMap<&str, usize> = set
        .talks
        .iter()
        .enumerate()
        .map(|(place, talk)| (talk.id.as_str(), place))
        .collect();
    let wanted: Vec<usize> = question
        .sessions
        .iter()
        .filter_map(|id| places.get(id.as_str()).copied())
        .collect();
    let messages: Vec<(usize, u64)> = question
        .messages
        .iter()
        .filter_map(|(id, seq)| Some((*places.get(id.as_str())?, *seq)))
        .collect();
    let sessions: Vec<usize> = found.iter().map(|(place, _)| *place).collect();
    let first = found.iter().position(|(place, _)| wanted.contains(place));
    Outcome {
        sessions: shares(&wanted, &sessions),
        messages: (!messages.is_empty()).then(|| shares(&messages, found)),
        reciprocal: first.map_or(0.0, |at| 1.0 / number(at + 1)),
        any_of_five: if first.is_some_and(|at| at < 5) { 1.0 } else { 0.0 },
    }
}

/// Which share of what is wanted stands among the first of what was found.
fn shares<T: PartialEq>(wanted: &[T], found: &[T]) -> [f64; PLACES.len()] {
    PLACES.map(|count| {
        let first = &found[..count.min(found.len())];
        let right = wanted.iter().filter(|one| first.contains(one)).count();
        number(right) / number(wanted.len()).max(1.0)
    })
}

fn summary(prefix: &str, outcomes: &[Outcome]) -> Map<String, Value> {
    let mut figures = Map::new();
    let mut add = |name: String, values: Vec<f64>| {
        // What nobody labelled is not known, which is another thing than not found.
        let known = (!values.is_empty()).then(|| interval(&values));
        figures.insert(format!("{prefix}{name}"), json!(known.map(|(mean, _)| rounded(mean))));
        figures.insert(
            format!("{prefix}{name}_half"),
            json!(known.map(|(_, half)| rounded(half))),
        );
    };
    for (at, place) in PLACES.iter().enumerate() {
        add(
            format!("session_recall_{place}"),
            outcomes.iter().map(|outcome| outcome.sessions[at]).collect(),
        );
    }
    add(
        "any_hit_5".to_owned(),
        outcomes.iter().map(|outcome| outcome.any_of_five).collect(),
    );
    add(
        "mrr".to_owned(),
        outcomes.iter().map(|outcome| outcome.reciprocal).collect(),
    );
    for (at, place) in PLACES.iter().enumerate() {
        let of_messages = outcomes.iter().filter_map(|outcome| Some(outcome.messages?[at]));
        add(format!("message_recall_{place}"), of_messages.collect());
    }
    figures
}

/// The mean, and half the width of its interval of 95 % (normal approximation).
fn interval(values: &[f64]) -> (f64, f64) {
    let count = number(values.len()).max(1.0);
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, 1.96 * (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_narrow_where_all_agree() {
        assert_eq!(interval(&[1.0, 1.0]), (1.0, 0.0));
        let (mean, half) = interval(&[0.0, 1.0, 0.0, 1.0]);
        assert!((mean - 0.5).abs() < 1e-9 && half > 0.5 && half < 0.6);
        assert_eq!(interval(&[]), (0.0, 0.0));
    }
}
