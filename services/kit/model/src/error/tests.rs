//! Errors as servers word them.

use super::*;

fn reason(status: u16, wait: Option<u64>, body: &str) -> &'static str {
    ModelError::from_http(status, wait.map(Duration::from_secs), body, None).reason()
}

#[test]
fn statuses_and_bodies_are_classed_by_what_helps() {
    assert_eq!(reason(429, Some(2), "slow down"), "MODEL_RATE_LIMITED");
    assert_eq!(
        reason(429, None, "quota used up, resets tomorrow"),
        "MODEL_QUOTA_EXHAUSTED"
    );
    assert_eq!(
        reason(429, Some(20), "You exceeded your current quota"),
        "MODEL_RATE_LIMITED"
    );
    assert_eq!(reason(529, None, "{}"), "MODEL_OVERLOADED");
    assert_eq!(reason(503, None, "<html>sorry</html>"), "MODEL_OVERLOADED");
    assert_eq!(
        reason(400, None, r#"{"error":{"message":"prompt too long"}}"#),
        "MODEL_CONTEXT_TOO_LONG"
    );
    assert_eq!(reason(500, None, "Context Length exceeded"), "MODEL_CONTEXT_TOO_LONG");
    assert_eq!(reason(400, None, "max_tokens is too large"), "MODEL_REQUEST_REJECTED");
    assert_eq!(
        reason(400, None, "prompt is too long: 209123 tokens > 200000 maximum"),
        "MODEL_CONTEXT_TOO_LONG"
    );
    assert_eq!(
        reason(
            400,
            None,
            "input length and `max_tokens` exceed context limit: 199000 + 21333 > 200000"
        ),
        "MODEL_CONTEXT_TOO_LONG"
    );
    assert_eq!(
        reason(400, None, "Your credit balance is too low to access the API"),
        "MODEL_QUOTA_EXHAUSTED"
    );
    assert_eq!(reason(401, None, "no"), "MODEL_CREDENTIAL_REFUSED");
    assert_eq!(reason(402, None, "pay"), "MODEL_QUOTA_EXHAUSTED");
    assert_eq!(reason(404, None, "no such model"), "MODEL_REQUEST_REJECTED");
}

#[test]
fn the_echoed_key_never_reaches_the_message() {
    let key = Secret::new("my key!");
    let body = r#"{"error":{"message":"bad key my key! given"}}"#;
    let error = ModelError::from_http(401, None, body, Some(&key));
    assert_eq!(
        error.to_string(),
        "the model provider refused the credential (status 401): bad key [redacted] given"
    );
}

#[test]
fn errors_inside_a_stream_are_classed_too() {
    let of = |value: serde_json::Value| ModelError::from_stream(&value, None).reason();
    assert_eq!(
        of(serde_json::json!({"message": "This model's maximum context is 8"})),
        "MODEL_CONTEXT_TOO_LONG"
    );
    assert_eq!(
        of(serde_json::json!({"code": 429, "message": "slow"})),
        "MODEL_RATE_LIMITED"
    );
    assert_eq!(of(serde_json::json!("boom")), "MODEL_OVERLOADED");
    assert_eq!(
        of(serde_json::json!({"type": "invalid_request_error", "message": "no"})),
        "MODEL_REQUEST_REJECTED"
    );
    for (kind, expected) in [
        ("overloaded_error", "MODEL_OVERLOADED"),
        ("api_error", "MODEL_OVERLOADED"),
        ("rate_limit_error", "MODEL_RATE_LIMITED"),
        ("authentication_error", "MODEL_CREDENTIAL_REFUSED"),
        ("permission_error", "MODEL_CREDENTIAL_REFUSED"),
        ("billing_error", "MODEL_QUOTA_EXHAUSTED"),
        ("not_found_error", "MODEL_REQUEST_REJECTED"),
        ("request_too_large", "MODEL_CONTEXT_TOO_LONG"),
    ] {
        assert_eq!(
            of(serde_json::json!({"type": kind, "message": "x"})),
            expected,
            "{kind}"
        );
    }
}

#[test]
fn a_peers_reason_gives_the_class_back() {
    for reason in [
        "MODEL_RATE_LIMITED",
        "MODEL_QUOTA_EXHAUSTED",
        "MODEL_CONTEXT_TOO_LONG",
        "MODEL_CREDENTIAL_REFUSED",
        "MODEL_REQUEST_REJECTED",
        "MODEL_OVERLOADED",
        "MODEL_UNREACHABLE",
        "MODEL_TIMED_OUT",
        "MODEL_ANSWER_BROKEN_OFF",
        "MODEL_ANSWER_UNREADABLE",
        "MODEL_ANSWER_TOO_LARGE",
        "MODEL_ANSWER_EMPTY",
        "MODEL_REQUEST_INVALID",
        "MODEL_NOT_AVAILABLE",
    ] {
        let error = ModelError::from_reason(reason, "x", None).expect(reason);
        assert_eq!(error.reason(), reason);
    }
    assert_eq!(ModelError::from_reason("STALE_FENCE", "x", None), None);
}
