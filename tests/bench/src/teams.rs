//! `teams`: many teams in one recall-service, each with a file of its own, of which a bounded number is open.
//!
//! Each team gets a history through the RPCs. Then its people search: in one team only, in as many teams as may be open, and
//! in all of them at random, where a file has to be opened first more often than not. Queries are words of the histories.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::{Value, json};
use steward_client::{RecallClient, SessionStoreClient};
use steward_proto::recall::v1 as pb;

use crate::arguments::{Arguments, History, Teams};
use crate::corpus::{Class, Corpus, queries};
use crate::history;
use crate::machine::{peak_mib, resident_mib};
use crate::measure::{Meter, Watch, rounded};
use crate::random::Random;
use crate::rig::Rig;
use crate::settle;

/// The one person of each team.
const PERSON: &str = "ann";
/// Conversations of an answer: what the agent's tool asks for.
const SHOWN: i32 = 3;
/// Messages of a conversation.
const LENGTH: u32 = 50;
/// Searches before time is taken.
const WARM_UP: usize = 20;

pub(crate) async fn run(options: &Teams, arguments: &Arguments) -> anyhow::Result<Value> {
    let folder = arguments.fresh_folder()?;
    let rig = Rig::new(folder.path())?;
    let config = steward_recall::Config {
        open_teams: usize::try_from(options.open)?,
        ..steward_recall::Config::default()
    };
    let deps = steward_recall::Deps { auth: rig.auth.clone() };
    let mut built = steward_recall::build(config, deps, &rig.boot).await?;
    built.start_background(&rig.boot.tasks);
    let loading = Watch::start();
    let store = SessionStoreClient::new(built.local_client().with_credentials(rig.orchestrator()?));
    let words = load_all(&store, options, arguments.seed).await?;
    let load_wall = settle::until_idle(&loading).await;
    let load_cpu = loading.cpu();
    let loaded_rss = resident_mib(std::process::id())?;

    let mut clients = Vec::new();
    for team in 0..options.count {
        let wire = built
            .local_client()
            .with_credentials(rig.person_in(&team_id(team), PERSON)?);
        clients.push(RecallClient::new(wire));
    }
    let mut random = Random::new(arguments.seed, "teams");
    let searches = usize::try_from(options.searches)?;
    let mut searching = Searching {
        clients: &clients,
        words: &words,
        random: &mut random,
    };
    let one = searching.among(1, searches).await?;
    let open = clients.len().min(usize::try_from(options.open)?);
    let open = searching.among(open, searches).await?;
    let all = searching.among(clients.len(), searches).await?;
    let rss = resident_mib(std::process::id())?;
    drop((clients, store, built));
    rig.stop().await?;
    let mut figures = json!({
        "teams": options.count,
        "messages": u64::from(options.count) * u64::from(options.messages),
        "open_teams": options.open,
        "open_share": rounded(f64::from(options.open) / f64::from(options.count)),
        "searches": searches,
        "load_s": rounded(load_wall.as_secs_f64()),
        "load_cpu_s": rounded(load_cpu.as_secs_f64()),
        "rss_loaded_mib": loaded_rss,
        "rss_mib": rss,
        "rss_peak_mib": peak_mib(std::process::id())?,
    });
    for (name, meter) in [("one", &one), ("open", &open), ("all", &all)] {
        figures[format!("{name}_p50_cpu_ms")] = json!(meter.cpu().p50());
        figures[format!("{name}_p99_cpu_ms")] = json!(meter.cpu().p99());
        figures[format!("{name}_p99_ms")] = json!(meter.wall().p99());
        figures[format!("{name}_p99_ratio")] = json!(rounded(meter.cpu().p99() / one.cpu().p99().max(1e-9)));
    }
    Ok(figures)
}

/// Searches of the people of some teams.
struct Searching<'a> {
    clients: &'a [RecallClient],
    words: &'a [String],
    random: &'a mut Random,
}

impl Searching<'_> {
    /// In the first `teams`, at random, one search after the other.
    async fn among(&mut self, teams: usize, searches: usize) -> anyhow::Result<Meter> {
        let mut meter = Meter::default();
        for _ in 0..WARM_UP.max(teams.min(searches)) {
            self.search(teams, None).await?;
        }
        for _ in 0..searches {
            self.search(teams, Some(&mut meter)).await?;
        }
        Ok(meter)
    }

    async fn search(&mut self, teams: usize, meter: Option<&mut Meter>) -> anyhow::Result<()> {
        let team = self.random.below(teams);
        let query = self.words[self.random.below(self.words.len())].clone();
        let discover = pb::Discover {
            query,
            limit: SHOWN,
            ..pb::Discover::default()
        };
        let request = pb::SearchRequest {
            parent: format!("teams/{}/users/{PERSON}", team_id(u32::try_from(team)?)),
            shape: Some(pb::search_request::Shape::Discover(discover)),
            current_session: String::new(),
        };
        let search = self.clients[team].search(request);
        let answer = match meter {
            Some(meter) => meter.time(search).await,
            None => search.await,
        };
        answer.with_context(|| format!("search in team {team}"))?;
        Ok(())
    }
}

fn team_id(team: u32) -> String {
    format!("t{team:05}")
}

fn corpus(options: &Teams, seed: u64) -> anyhow::Result<Corpus> {
    let history = History {
        messages: options.messages,
        sessions: Some((options.messages / LENGTH).max(1)),
        corpus: None,
    };
    Corpus::of(&history, seed)
}

/// What is searched for in every team: single words and characters, most of which every history has.
fn words_of(corpus: &Corpus, seed: u64) -> anyhow::Result<Vec<String>> {
    let drawn: BTreeSet<String> = queries(corpus, None, seed, 40)?
        .into_iter()
        .filter(|query| matches!(query.class, Class::En1 | Class::Cjk2))
        .map(|query| query.text)
        .collect();
    Ok(drawn.into_iter().collect())
}

/// Loads every team; gives what is searched for.
async fn load_all(store: &SessionStoreClient, options: &Teams, seed: u64) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    for team in 0..options.count {
        let corpus = corpus(options, seed.wrapping_add(u64::from(team)))?;
        load(store, team, &corpus)
            .await
            .with_context(|| format!("load team {team}"))?;
        if team == 0 {
            words = words_of(&corpus, seed)?;
        }
    }
    Ok(words)
}

async fn load(store: &SessionStoreClient, team: u32, corpus: &Corpus) -> anyhow::Result<()> {
    let team = format!("teams/{}", team_id(team));
    for (place, session) in corpus.sessions.iter().enumerate() {
        let id = format!("s{place}");
        let new = pb::Session {
            user: format!("{team}/users/{PERSON}"),
            model: "bench".to_owned(),
            tools_json: "[]".to_owned(),
            ..pb::Session::default()
        };
        let create = pb::CreateSessionRequest {
            parent: team.clone(),
            session_id: id.clone(),
            session: Some(new),
            request_id: format!("create-{id}"),
        };
        store.create_session(create).await?;
        let mut last = 0;
        for batch in history::messages(session).chunks(history::BATCH) {
            let append = pb::AppendMessagesRequest {
                session: format!("{team}/sessions/{id}"),
                acquire_lease: Some(pb::TurnLease {
                    turn: "t1".to_owned(),
                    holder: "bench".to_owned(),
                    ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
                }),
                release_lease: true,
                expected_seq: last,
                request_id: format!("append-{last}"),
                messages: batch.to_vec(),
                ..pb::AppendMessagesRequest::default()
            };
            last = store.append_messages(append).await?.last_seq;
        }
    }
    Ok(())
}
