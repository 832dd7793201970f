//! What goes wrong, by class, and what is tried again (`T-10`, `D-36`, `D-37`, `D-77`).

use std::time::Duration;

use steward_base::Fault as _;
use steward_testkit::{Reply as Scripted, ScriptedCall};

use super::{KEY, Rig, config, for_each_protocol, request};
use crate::config::ProviderKind;
use crate::error::ModelError;
use crate::message::Message;
use crate::provider::{Delta, FinishReason, collect};

for_each_protocol!(
    a_rate_limit_says_when_to_come_back,
    retry_after_is_honoured_and_each_retry_is_visible,
    what_does_not_heal_ends_at_once,
    attempts_are_bounded,
    a_broken_stream_is_visible_and_no_finished_answer,
    nothing_is_retried_once_a_word_was_passed_on,
    malformed_arguments_are_handed_on_as_they_came,
    a_context_that_is_too_long_is_named_in_every_wording,
    a_refused_credential_is_named_and_not_shown,
    an_error_inside_the_stream_keeps_its_class,
    silence_ends_by_the_read_timeout,
    what_is_no_answer_is_an_error,
);

async fn a_rate_limit_says_when_to_come_back(kind: ProviderKind) {
    let limited = || Scripted::failure(429, "rate_limit_error", "slow down");
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let rig = Rig::new(
        kind,
        [
            limited().header("retry-after", "2"),
            limited()
                .header("retry-after", date)
                .header("date", "Sun, 06 Nov 1994 08:49:30 GMT"),
            limited(),
        ],
    )
    .await;
    for seconds in [Some(2), Some(7), None] {
        let error = rig.ask_anything().await.expect_err("limited");
        let expected = ModelError::RateLimited {
            message: "slow down".to_owned(),
            retry_after: seconds.map(Duration::from_secs),
        };
        assert_eq!(error, expected);
    }
}

async fn retry_after_is_honoured_and_each_retry_is_visible(kind: ProviderKind) {
    let rig = Rig::new(
        kind,
        [
            Scripted::failure(429, "rate_limit_error", "slow").header("retry-after", "2"),
            Scripted::failure(529, "overloaded_error", "busy"),
            Scripted::dropped(),
            Scripted::text("ok"),
        ],
    )
    .await;
    let asked = rig.ask_patiently().await;
    assert_eq!(asked.outcome.expect("the fourth attempt works").content, "ok");
    assert_eq!(asked.slept, [2, 2, 4].map(Duration::from_secs));
    assert_eq!(asked.visible, 3);
    let bodies = rig.server.bodies();
    assert!(
        bodies.windows(2).all(|pair| pair[0] == pair[1]),
        "the same request each time"
    );
}

async fn what_does_not_heal_ends_at_once(kind: ProviderKind) {
    for reply in [
        Scripted::failure(401, "authentication_error", "no"),
        Scripted::failure(429, "rate_limit_error", "quota used up, resets tomorrow"),
        Scripted::failure(400, "invalid_request_error", "prompt is too long"),
        Scripted::failure(400, "invalid_request_error", "Your credit balance is too low"),
        Scripted::failure(429, "rate_limit_error", "slow").header("retry-after", "3600"),
    ] {
        let rig = Rig::new(kind, [reply]).await;
        let asked = rig.ask_patiently().await;
        assert!(asked.outcome.is_err() && asked.slept.is_empty());
        assert_eq!(rig.server.requests().len(), 1);
    }
}

async fn attempts_are_bounded(kind: ProviderKind) {
    let server = steward_testkit::ModelServer::scripted(|_| Scripted::error(503, "<html>down</html>")).await;
    let rig = Rig::on(kind, server);
    let asked = rig.ask_patiently().await;
    let Err(ModelError::Overloaded {
        status: 503, message, ..
    }) = &asked.outcome
    else {
        panic!("{:?}", asked.outcome);
    };
    assert_eq!(message, "a web page instead of an answer");
    assert_eq!((rig.server.requests().len(), asked.slept.len()), (4, 3));
}

async fn a_broken_stream_is_visible_and_no_finished_answer(kind: ProviderKind) {
    let half_text = || Scripted::text("half of it, and silence").cut_before("and silence");
    let half_call = || Scripted::call("look", r#"{"a":"a long argument here"}"#).cut_before(" argument he");
    let rig = Rig::new(
        kind,
        [Scripted::dropped(), half_text(), half_call(), Scripted::text("works")],
    )
    .await;
    let error = rig.ask_anything().await.expect_err("dropped");
    assert!(matches!(error, ModelError::Unreachable { .. }));
    let (mut text, mut started, mut calls) = (String::new(), 0, 0);
    for _ in 0..2 {
        let stream = rig
            .provider
            .stream(request(&[Message::user("hi")]))
            .await
            .expect("it begins");
        let outcome = collect(stream, |delta| match delta {
            Delta::Text(more) => text.push_str(more),
            Delta::ToolCallStarted { .. } => started += 1,
            Delta::ToolCall(_) => calls += 1,
            Delta::Retrying { .. } | Delta::Finish { .. } => {}
        })
        .await;
        assert_eq!(outcome, Err(ModelError::BrokenOff));
    }
    assert_eq!((text.as_str(), started, calls), ("half of it, ", 1, 0));
    assert_eq!(rig.ask_anything().await.expect("an answer").content, "works");
}

async fn nothing_is_retried_once_a_word_was_passed_on(kind: ProviderKind) {
    let rig = Rig::new(
        kind,
        [Scripted::text("half of it, and silence").cut_before("and silence")],
    )
    .await;
    let asked = rig.ask_patiently().await;
    assert_eq!((asked.outcome, asked.slept.len()), (Err(ModelError::BrokenOff), 0));
}

async fn malformed_arguments_are_handed_on_as_they_came(kind: ProviderKind) {
    let cut = r#"{"path":"a.txt","text":"and th"#;
    let calls = |arguments: &str| Scripted::calls([ScriptedCall::new("a", "look", arguments)]);
    let rig = Rig::new(
        kind,
        [calls(cut).finish("length"), calls(cut), calls(r#"{"a":1}{"a":1}"#)],
    )
    .await;
    for (arguments, finish) in [
        (cut, FinishReason::Length),
        (cut, FinishReason::ToolCalls),
        (r#"{"a":1}{"a":1}"#, FinishReason::ToolCalls),
    ] {
        let reply = rig.ask_anything().await.expect("an answer");
        assert_eq!(
            (reply.tool_calls[0].arguments.as_str(), reply.finish),
            (arguments, finish)
        );
    }
    // Even a history that holds such arguments makes a request that can be read.
    let rig = Rig::new(kind, [calls(cut), Scripted::text("ok")]).await;
    let reply = rig.ask_anything().await.expect("an answer");
    let messages = [Message::user("hi"), super::said(reply), super::result("a", "cut off")];
    rig.ask(&messages).await.expect("an answer");
    assert!(rig.server.requests()[1].json().is_object());
}

async fn a_context_that_is_too_long_is_named_in_every_wording(kind: ProviderKind) {
    let replies = [
        (400, "prompt is too long: 209123 tokens > 200000 maximum"),
        (
            400,
            "input length and `max_tokens` exceed context limit: 199000 + 21333 > 200000",
        ),
        (400, "This model's maximum context length is 8192 tokens"),
        (413, "Request exceeds the maximum size"),
        (500, "context length exceeded"),
    ];
    let scripts = replies.map(|(status, message)| Scripted::failure(status, "invalid_request_error", message));
    let rig = Rig::new(kind, scripts).await;
    for (_, message) in replies {
        let error = rig.ask_anything().await.expect_err("too long");
        assert!(
            error.is_context_length() && !error.is_retryable(),
            "{message}: {error:?}"
        );
    }
}

async fn a_refused_credential_is_named_and_not_shown(kind: ProviderKind) {
    let message = format!("Incorrect API key provided: {KEY}");
    let scripts = [401, 403].map(|status| Scripted::failure(status, "authentication_error", &message));
    let rig = Rig::new(kind, scripts).await;
    for expected in [401, 403] {
        let error = rig.ask_anything().await.expect_err("refused");
        assert!(matches!(error, ModelError::CredentialRefused { status, .. } if status == expected));
        assert!(!format!("{error} {error:?}").contains(KEY));
    }
}

async fn an_error_inside_the_stream_keeps_its_class(kind: ProviderKind) {
    for (class, message, reason) in [
        ("overloaded_error", "Overloaded", "MODEL_OVERLOADED"),
        ("rate_limit_error", "slow down", "MODEL_RATE_LIMITED"),
        ("api_error", "Internal server error", "MODEL_OVERLOADED"),
        ("invalid_request_error", "prompt is too long", "MODEL_CONTEXT_TOO_LONG"),
        ("authentication_error", "invalid x-api-key", "MODEL_CREDENTIAL_REFUSED"),
    ] {
        let rig = Rig::new(kind, [Scripted::text("half of it").then_error(class, message)]).await;
        let stream = rig
            .provider
            .stream(request(&[Message::user("hi")]))
            .await
            .expect("it begins");
        let mut text = String::new();
        let outcome = collect(stream, |delta| {
            if let Delta::Text(more) = delta {
                text.push_str(more);
            }
        })
        .await;
        assert_eq!(
            (outcome.expect_err(class).reason(), text.as_str()),
            (reason, "half of it")
        );
    }
}

async fn silence_ends_by_the_read_timeout(kind: ProviderKind) {
    let rig = Rig::new(kind, [Scripted::text("late").hang_after(10)]).await;
    let mut config = config(kind, &rig.server);
    config.read_timeout = Duration::from_millis(50);
    let provider = config.build().expect("a provider");
    // On a busy machine even the headers may be late; it is the same silence.
    let outcome = match provider.stream(request(&[Message::user("hi")])).await {
        Ok(stream) => collect(stream, |_| {}).await,
        Err(error) => Err(error),
    };
    assert_eq!(outcome, Err(ModelError::TimedOut));
}

async fn what_is_no_answer_is_an_error(kind: ProviderKind) {
    let document = Scripted::garbage("[1,").header("content-type", "application/json");
    let rig = Rig::new(
        kind,
        [Scripted::garbage(""), Scripted::garbage("data: <\n\n"), document],
    )
    .await;
    assert_eq!(rig.ask_anything().await, Err(ModelError::BrokenOff));
    for _ in 0..2 {
        let garbage = rig.ask_anything().await.expect_err("garbage");
        assert!(matches!(garbage, ModelError::Unreadable { .. }));
    }
}
