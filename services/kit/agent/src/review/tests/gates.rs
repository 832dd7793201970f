//! What a review may call, on what evidence, and how often.

use serde_json::json;
use steward_base::Integrity;
use steward_model::ToolCall;

use super::super::*;
use super::{built, outside};
use crate::kernel::CallRequest;

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

fn batch(operations: usize) -> CallRequest {
    let operations = vec![json!({"action": "add", "content": "x"}); operations];
    call(
        "memory",
        json!({"action": "batch", "target": "notes", "operations": operations, "evidence": ["s1"], "basis": "stated"}),
    )
}

/// `R-4`: three writes, however they are wrapped.
#[test]
fn each_operation_of_a_batch_is_a_write_and_a_refused_batch_gives_all_of_them_back() {
    let policy = policy(Kinds::Both);
    assert!(policy.admit(&batch(4)).expect_err("four").text().contains("3 of this"));
    assert!(policy.admit(&batch(2)).is_ok());
    assert!(
        policy
            .admit(&batch(2))
            .expect_err("four in all")
            .text()
            .contains("1 of this")
    );
    policy.refund();
    policy.refund();
    assert!(policy.admit(&batch(3)).is_ok(), "both came back, and only once");
    assert!(
        policy
            .admit(&batch(1))
            .expect_err("the fourth")
            .text()
            .contains("three writes")
    );
    policy.refund();
    assert!(policy.admit(&batch(0)).is_ok() && policy.admit(&batch(2)).is_ok());
}

/// `R-7`: evidence is the ids of the list, not what resembles them.
#[test]
fn ids_of_other_kinds_are_no_evidence() {
    let policy = policy(Kinds::Both);
    let cite = |evidence: serde_json::Value| {
        policy
            .admit(&call(
                "memory",
                json!({"action": "add", "evidence": evidence, "basis": "stated"}),
            ))
            .map(|_| policy.refund())
            .map_err(|refusal| refusal.text().to_owned())
    };
    assert_eq!(cite(json!([" s1 "])), Ok(()), "blanks around an id mean nothing");
    for stranger in [
        "S1",
        "s01",
        "s1.0",
        "1",
        "m1",
        "c1",
        "",
        "s-1",
        "s1,s3",
        "teams/t/sessions/s1",
    ] {
        let refusal = cite(json!(["s1", stranger])).expect_err(stranger);
        assert!(refusal.contains("not in the list"), "{stranger}: {refusal}");
    }
    for mixed in [
        json!(["s1", 1]),
        json!(["s1", ["s3"]]),
        json!([null]),
        json!({"s1": true}),
    ] {
        let refusal = cite(mixed).expect_err("no list of ids");
        assert!(refusal.starts_with("Refused"), "{refusal}");
    }
    let long = cite(json!(["x".repeat(100_000)])).expect_err("unknown");
    assert!(long.len() < 200, "a refusal stays short");
}

/// The person's own words are a correction's evidence; deciding on it is none of the review's three writes.
#[test]
fn a_correction_is_decided_where_memory_is_reviewed_and_takes_no_write() {
    let drop = call("memory", json!({"action": "drop", "correction": " c1 ", "why": "once"}));
    let memory = policy(Kinds::Memory);
    for _ in 0..=MAX_WRITES {
        assert_eq!(memory.admit(&drop), Ok(Admission::Decide("c1".to_owned())));
    }
    assert!(matches!(
        memory.admit(&call(
            "memory",
            json!({"action": "add", "evidence": ["s1"], "basis": "stated"})
        )),
        Ok(Admission::Write(_))
    ));
    assert!(matches!(
        policy(Kinds::Skills).admit(&drop),
        Err(Refusal::NotPermitted(_))
    ));
}
