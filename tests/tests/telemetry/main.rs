//! What leaves the processes for those who run them: one trace from a turn to what its review wrote, the counts, and
//! nothing of what anyone said.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
mod sink;

use serde_json::Value;
use steward_proto::access::v1::WhoAmIRequest;
use steward_proto::agent::v1::SessionSetup;
use steward_proto::learning::v1::ReviewState;
use steward_testkit::{ModelServer, Reply, ScriptedCall, wait_for};
use steward_tests::person::{Ended, client_tool};
use steward_tests::stack::PATIENCE;
use steward_tests::{Shape, Stack, StackOptions, script};

use sink::{Exported, Sink, ancestors};

const RUN_TURN: &str = "steward.agent.v1.AgentService/RunTurn";
const SEARCH: &str = "steward.recall.v1.RecallService/Search";
const APPEND: &str = "steward.recall.v1.SessionStoreService/AppendMessages";
const APPLY: &str = "steward.memory.v1.MemoryService/Apply";
const MANAGE: &str = "steward.skill.v1.SkillService/ManageSkill";
const ENQUEUED: &str = "review enqueued";

const KEY: &str = "sk-planted-key-of-the-provider";
const SAID: &str = "zanzibar-said-by-a-person";
const SECRET: &str = "ghp_PlantedPlantedPlantedPlantedPlanted1";

/// A model that searches before it answers, and learns as a reviewer.
async fn model() -> ModelServer {
    ModelServer::scripted(|request| {
        let reply = if !script::is_review(request) && script::since_user(request).is_empty() {
            Reply::calls([ScriptedCall::new("s", "session_search", r#"{"query":"harbour"}"#)])
        } else {
            script::learner(request)
        };
        reply.usage(1_000, 100, 20)
    })
    .await
}

fn watched(model: &ModelServer, sink: &Sink) -> StackOptions {
    common::reviews_after_each_turn(model)
        .set("TELEMETRY__OTLP_ENDPOINT", sink.endpoint())
        .set("TELEMETRY__METRICS_SECONDS", 1)
        .set("TELEMETRY__PROMETHEUS_LISTEN", "127.0.0.1:0")
}

both_shapes!(one_trace_leads_from_a_turn_to_the_writes_of_its_review);

async fn one_trace_leads_from_a_turn_to_the_writes_of_its_review(shape: Shape) {
    let (model, sink) = (model().await, Sink::start().await);
    let stack = Stack::start("trace", shape, watched(&model, &sink));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    let turn = owner.say(&session, "Remember: tea at four").await.turn;
    let reviews = owner.reviews_ended(1).await;
    assert_eq!(reviews[0].state(), ReviewState::Succeeded);

    let wanted = [RUN_TURN, "turn", SEARCH, APPEND, ENQUEUED, "review", APPLY, MANAGE];
    wait_for("the spans of the turn and its review", PATIENCE, || async {
        let spans = sink.spans();
        wanted.iter().all(|name| spans.iter().any(|span| span.name == *name))
    })
    .await;
    let spans = sink.spans();
    let of_turn = spans
        .iter()
        .find(|span| span.name == "turn" && span.attributes.get("turn.id") == Some(&turn))
        .expect("the turn's own span");
    assert_eq!(of_turn.attributes["outcome"], "completed");
    let root = ancestors(&spans, of_turn).pop().expect("a call began it");
    assert_eq!((root.name.as_str(), root.parent.as_str()), (RUN_TURN, ""));

    let below = |name: &str| below(&spans, of_turn, name);
    for name in [SEARCH, APPEND, ENQUEUED] {
        assert!(!below(name).is_empty(), "{name} is not below the turn");
    }
    for name in [APPLY, MANAGE] {
        let writes = below(name);
        assert!(!writes.is_empty(), "{name} is not below the turn");
        for write in writes {
            let above = ancestors(&spans, &write);
            assert!(
                above.iter().any(|span| span.name == "review"),
                "{name} is not the review's"
            );
        }
    }
    let calls = below("chat scripted");
    let by_review = calls
        .iter()
        .filter(|call| ancestors(&spans, call).iter().any(|span| span.name == "review"));
    assert!(calls.len() > by_review.clone().count() && by_review.count() > 0);
    assert_eq!(calls[0].attributes["gen_ai.provider.name"], "openai");
    assert_eq!(calls[0].attributes["gen_ai.usage.input_tokens"], "1000");
    // What services do all day by themselves would bury the rest.
    assert!(
        spans
            .iter()
            .all(|span| !span.name.ends_with("/ListDueReviews") && span.name != "task" || !span.parent.is_empty())
    );
    sink.stop().await;
}

fn below(spans: &[Exported], top: &Exported, name: &str) -> Vec<Exported> {
    let named = spans.iter().filter(|span| span.name == name && span.trace == top.trace);
    named
        .filter(|span| ancestors(spans, span).iter().any(|above| above.id == top.id))
        .cloned()
        .collect()
}

both_shapes!(what_happens_can_be_read_off_the_metrics);

async fn what_happens_can_be_read_off_the_metrics(shape: Shape) {
    const CALLS: &str = "rpc_server_call_duration_seconds_count";
    const CREATE: &str = "steward.agent.v1.SessionService/CreateSession";
    const VIEW: &str = "steward.skill.v1.SkillService/ViewSkill";
    let (model, sink) = (model().await, Sink::start().await);
    // A model with a price reviews, the one that turns use has none.
    let options = watched(&model, &sink).set("AGENT__MODEL__REVIEW_MODEL", "gpt-6-sol");
    let stack = Stack::start("metrics", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: tea at four").await;
    owner.reviews_ended(1).await;
    owner.view_skill("missing").await.unwrap_err();

    let wanted = [
        format!("{CALLS}{{error_type=\"SKILL_NOT_FOUND\",rpc_method=\"{VIEW}\",rpc_response_status_code=\"NOT_FOUND\",rpc_system_name=\"grpc\"}} 1"),
        format!("{CALLS}{{rpc_method=\"{CREATE}\",rpc_response_status_code=\"OK\",rpc_system_name=\"grpc\"}} 1"),
        "steward_turns_total{outcome=\"completed\"} 1".to_owned(),
        "steward_turn_duration_seconds_count{outcome=\"completed\"} 1".to_owned(),
        "steward_prefix_breaks_total{kind=\"planned\"} 0".to_owned(),
        "steward_prefix_breaks_total{kind=\"unplanned\"} 0".to_owned(),
        "steward_reviews_total{end=\"succeeded\"} 1".to_owned(),
        "steward_review_duration_seconds_count{state=\"succeeded\"} 1".to_owned(),
        "steward_queue_depth{state=\"waiting\"} 0".to_owned(),
        "steward_queue_age_seconds 0".to_owned(),
        "steward_model_tokens_total{gen_ai_provider_name=\"openai\",gen_ai_request_model=\"scripted\",kind=\"input\",purpose=\"turn\"} 2000".to_owned(),
        "steward_model_tokens_total{gen_ai_provider_name=\"openai\",gen_ai_request_model=\"scripted\",kind=\"cached_input\",purpose=\"turn\"} 200".to_owned(),
        "steward_model_unpriced_total{gen_ai_provider_name=\"openai\",gen_ai_request_model=\"scripted\",purpose=\"turn\",reason=\"no_row\"} 2".to_owned(),
        "steward_model_cost_usd_total{gen_ai_provider_name=\"openai\",gen_ai_request_model=\"gpt-6-sol\",purpose=\"job\"} 0.0".to_owned(),
        "gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\",gen_ai_request_model=\"scripted\"} 2".to_owned(),
    ];
    for line in &wanted {
        wait_for(line, PATIENCE, || async { scraped(&stack).await.contains(line) }).await;
    }

    let over_otlp = [
        "rpc.server.call.duration",
        "steward.turns",
        "steward.reviews",
        "steward.queue.age",
        "steward.model.cost",
    ];
    wait_for("the same over OTLP", PATIENCE, || async {
        let names = sink.metrics();
        over_otlp.iter().all(|name| names.iter().any(|found| found == name))
    })
    .await;
    sink.stop().await;
}

/// What all processes show on their pages of metrics.
async fn scraped(stack: &Stack) -> String {
    let mut all = String::new();
    for (_, process) in stack.processes() {
        let log = process.log_text();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let address = lines
            .filter(|line| line["fields"]["message"] == "metrics can be read over HTTP at /metrics")
            .filter_map(|line| line["fields"]["address"].as_str().map(str::to_owned))
            .next_back()
            .expect("the address is logged");
        let page = http().get(format!("http://{address}/metrics"));
        all += &page.send().await.unwrap().text().await.unwrap();
    }
    all
}

fn http() -> reqwest::Client {
    steward_runtime::tls::install_provider();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

both_shapes!(nothing_that_is_said_or_secret_leaves_with_telemetry);

/// Prompts, answers, tool arguments, memories, skills, keys and tokens; also where something fails.
async fn nothing_that_is_said_or_secret_leaves_with_telemetry(shape: Shape) {
    const BEARER: &str = "planted-bearer-that-is-no-token";
    let model = repeating_model().await;
    let sink = Sink::start().await;
    let options = watched(&model, &sink)
        .set("AGENT__MODEL__API_KEY", KEY)
        .set("AGENT__MODEL__RETRY_BASE_MS", 1)
        .env("STEWARD_LOG", "info,steward=trace");
    let stack = Stack::start("redaction", shape, options);
    let owner = stack.owner().await;
    let token = std::fs::read_to_string(stack.data().join("agent/owner.token")).unwrap();
    let session = owner.session(Vec::new()).await;
    owner.say(&session, &format!("Remember: {SAID}")).await;
    owner.reviews_ended(1).await;
    assert_eq!(owner.notes().await, [SAID]);
    owner.remember(&format!("the key is {SECRET}")).await.unwrap_err();
    owner.search(SAID).await;
    owner.view_skill(SAID).await.unwrap_err();
    owner.create_skill(SAID, SAID).await.unwrap_err();
    owner.session_with(setup_that_is_wrong(SAID)).await.unwrap_err();
    for how in ["refuse", "overload", "garble"] {
        let failed = owner.say(&session, &format!("{how} {SAID} {SECRET}")).await;
        assert!(matches!(failed.ended, Ended::Failed(_)), "{how}");
    }
    let misused = owner.say(&session, &format!("misuse {SAID} {SECRET}")).await;
    assert!(matches!(misused.ended, Ended::Completed(_)));
    stack
        .client(BEARER)
        .access
        .who_am_i(WhoAmIRequest {})
        .await
        .unwrap_err();

    wait_for("the spans and counts of it", PATIENCE, || async {
        let spans = sink.spans();
        let turns = spans.iter().filter(|span| span.name == "turn").count();
        turns >= 5
            && spans.iter().any(|span| span.name == APPLY)
            && sink.metrics().contains(&"steward.turns".to_owned())
    })
    .await;
    let pages = scraped(&stack).await;
    let logs: String = stack.processes().map(|(_, process)| process.log_text()).collect();
    assert!(logs.contains("\"DEBUG\""), "the log is as talkative as it gets");
    for (place, text) in [("logs", &logs), ("OTLP", &sink.raw()), ("pages", &pages)] {
        for planted in [KEY, SAID, SECRET, BEARER, token.trim()] {
            let found = text.find(planted).map(|at| around(text, at));
            assert_eq!(found, None, "{planted} is in the {place}");
        }
    }
    sink.stop().await;
}

/// A model that fails in the ways that the first word asks for. Providers repeat what they were sent.
async fn repeating_model() -> ModelServer {
    ModelServer::scripted(|request| {
        let asked = script::asked(request);
        let repeated = format!("bad key {KEY}: {asked}");
        match asked.split_whitespace().next() {
            _ if script::is_review(request) => script::learner(request),
            Some("refuse") => Reply::failure(400, "invalid_request_error", &repeated),
            Some("overload") => Reply::failure(503, "server_error", &repeated),
            Some("garble") => Reply::events([format!("{{\"error\": \"{repeated}"), repeated]),
            Some("misuse") if script::since_user(request).is_empty() => Reply::calls([
                ScriptedCall::new("a", "memory", format!("{{\"action\": \"{asked}\"}}")),
                ScriptedCall::new("b", &format!("no-{SAID}"), "{}"),
            ]),
            _ => script::learner(request),
        }
    })
    .await
}

/// Two client tools of one name.
fn setup_that_is_wrong(name: &str) -> SessionSetup {
    SessionSetup {
        client_tools: vec![client_tool(name), client_tool(name)],
        ..SessionSetup::default()
    }
}

fn around(text: &str, at: usize) -> String {
    let from = text[..at].char_indices().rev().nth(300).map_or(0, |(index, _)| index);
    text[from..].chars().take(500).collect()
}
