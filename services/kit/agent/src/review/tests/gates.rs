//! What a review may call, on what evidence, and how often.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::json;
use steward_base::{Integrity, SpanOrigin};
use steward_model::ToolCall;

use super::super::*;
use super::{built, outside};
use crate::kernel::{CallRequest, Dispatch, Dispatched, PortError, ToolOutput};

fn call(name: &str, arguments: serde_json::Value) -> CallRequest {
    let serde_json::Value::Object(arguments) = arguments else {
        panic!("an object")
    };
    let text = serde_json::to_string(&arguments).expect("JSON");
    let call = ToolCall {
        id: "c".to_owned(),
        name: name.to_owned(),
        arguments: text,
    };
    CallRequest {
        key: "job-1/0/0".to_owned(),
        step: 0,
        index: 0,
        call,
        arguments,
    }
}

fn policy(kinds: Kinds) -> ReviewPolicy {
    let spans = built(&outside("page", "quote", "after"), Kinds::Both, ReviewModel::Parent).spans;
    ReviewPolicy::new(kinds, true, spans)
}

#[test]
fn only_the_learning_tools_are_let_through_and_memory_only_when_due() {
    let skills = policy(Kinds::Skills);
    for name in ["skills_list", "skill_view", "session_search"] {
        assert_eq!(skills.admit(&call(name, json!({}))), Ok(Admission::Read));
    }
    for name in ["memory", "shell", "delegate_task", "write_file"] {
        let refusal = skills
            .admit(&call(name, json!({"evidence": ["s1"], "basis": "stated"})))
            .expect_err("refused");
        assert!(
            matches!(&refusal, Refusal::NotPermitted(text) if text.contains("do not call it again")),
            "{refusal:?}"
        );
    }
    let off = ReviewPolicy::new(Kinds::Memory, false, SpanTable::default());
    assert!(off.admit(&call("memory", json!({}))).is_err());
}

#[test]
fn a_write_needs_evidence_that_exists_is_visible_and_fits_its_basis() {
    let policy = policy(Kinds::Both);
    let write = |evidence: serde_json::Value, basis: &str| {
        policy.admit(&call(
            "memory",
            json!({"action": "add", "evidence": evidence, "basis": basis}),
        ))
    };
    let hidden = policy_hidden_id();
    let refused = [
        (json!([]), "stated", "cites no span"),
        (json!("s1"), "stated", "cites no span"),
        (json!(["s1", "s99"]), "stated", "not in the list of spans: s99"),
        (json!([hidden]), "stated", "nothing but text from outside"),
        (json!(["s1"]), "inferred", "only inferred"),
        (json!(["s1"]), "because", "give its basis"),
        (json!(["s3"]), "stated", "a person typed"),
        (json!(["s1"]), "checked", "a tool's result"),
        (json!(["s1"]), "seen_once", "references/"),
    ];
    for (evidence, basis, why) in refused {
        let refusal = write(evidence, basis).expect_err(why);
        assert!(
            matches!(&refusal, Refusal::NotAccepted(text) if text.contains(why)),
            "{refusal:?}"
        );
    }
    let Ok(Admission::Write(evidence)) = write(json!(["s1", "s1", hidden]), "stated") else {
        panic!("accepted")
    };
    assert_eq!((evidence.spans.len(), evidence.integrity), (2, Integrity::External));
    assert_eq!(evidence.spans[0].message_id, "m1");
}

fn policy_hidden_id() -> String {
    let spans = built(&outside("page", "quote", "after"), Kinds::Both, ReviewModel::Parent).spans;
    spans
        .spans()
        .iter()
        .find(|span| span.hidden)
        .expect("a hidden span")
        .id
        .clone()
}

#[test]
fn three_writes_are_let_through_and_refused_ones_do_not_count() {
    let policy = policy(Kinds::Both);
    let write = call(
        "skill_manage",
        json!({"action": "patch", "evidence": ["s3"], "basis": "checked"}),
    );
    for _ in 0..3 {
        assert!(policy.admit(&write).is_ok());
    }
    assert!(
        policy
            .admit(&write)
            .expect_err("the fourth")
            .text()
            .contains("three writes")
    );
    policy.refund();
    assert!(policy.admit(&write).is_ok() && policy.admit(&write).is_err());
    let note = json!({"action": "write_file", "path": "references/seen.md", "evidence": ["s1"], "basis": "seen_once"});
    policy.refund();
    assert!(policy.admit(&call("skill_manage", note)).is_ok());
}

#[test]
fn the_tools_that_the_frame_names_are_the_ones_that_are_let_through() {
    let frame = rubric(Kinds::Both).text;
    let line = frame
        .lines()
        .find(|line| line.starts_with("You may call:"))
        .expect("the frame says what may be called");
    let listed = line.trim_start_matches("You may call:").split(',').map(str::trim);
    let policy = policy(Kinds::Both);
    let named: Vec<&str> = listed.filter(|name| name.contains('_')).collect();
    assert_eq!(named, ["skills_list", "skill_view", "skill_manage", "session_search"]);
    for name in named.into_iter().chain(["memory"]) {
        assert!(
            !matches!(policy.admit(&call(name, json!({}))), Err(Refusal::NotPermitted(_))),
            "{name}"
        );
    }
}

/// Tools that note what reaches them; an add of `same` changes nothing.
#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

#[async_trait]
impl ReviewTools for Noting {
    async fn run(&self, call: &CallRequest, evidence: Option<&Evidence>) -> Result<ToolRun, PortError> {
        let graded = evidence.map(|evidence| evidence.basis);
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("{} {graded:?}", call.call.name));
        let origin = SpanOrigin::External("page".to_owned());
        if call.call.name == "session_search" {
            return Ok(ToolRun {
                output: ToolOutput::of("an old page", origin, Integrity::External),
                note: None,
            });
        }
        let same = call.arguments.get("content").is_some_and(|content| content == "same");
        let output = ToolOutput::of("done", SpanOrigin::System, Integrity::Workspace);
        let note = (!same).then(|| WriteNote::Memory {
            target: "notes".to_owned(),
        });
        Ok(ToolRun { output, note })
    }
}

#[tokio::test]
async fn the_dispatch_runs_what_is_admitted_and_notes_what_was_written() {
    let tools = Arc::new(Noting::default());
    let dispatch = ReviewDispatch::new(policy(Kinds::Both), Arc::clone(&tools) as Arc<dyn ReviewTools>);
    let add = |content: &str| {
        call(
            "memory",
            json!({"content": content, "evidence": ["s1"], "basis": "stated"}),
        )
    };
    for content in ["same", "same", "same", "one", "two", "three"] {
        let Ok(Dispatched::Done(output)) = dispatch.dispatch(&add(content)).await else {
            panic!("{content}")
        };
        assert!(!output.is_error, "{content}");
    }
    let Ok(Dispatched::Done(fourth)) = dispatch.dispatch(&add("four")).await else {
        panic!("a refusal")
    };
    assert!(fourth.is_error && fourth.content.contains("three writes"));
    let Ok(Dispatched::Denied(_)) = dispatch.dispatch(&call("shell", json!({}))).await else {
        panic!("denied")
    };
    let search = dispatch.dispatch(&call("session_search", json!({}))).await;
    let Ok(Dispatched::Done(found)) = search else {
        panic!("found")
    };
    assert_eq!(found.content, "[hidden: text from outside]");
    assert_eq!(dispatch.notes().len(), 3);
    assert_eq!(tools.0.lock().unwrap_or_else(PoisonError::into_inner).len(), 7);
    assert_eq!(
        dispatch.lane(&add("x")),
        dispatch.lane(&call("skill_manage", json!({})))
    );
    assert_eq!(dispatch.lane(&call("skill_view", json!({}))), None);
}
