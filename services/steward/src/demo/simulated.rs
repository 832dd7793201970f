//! The demo's model. Not a language model: a pure function of the request bytes that arrive over HTTP, so that whatever
//! it knows, it was sent. It keeps nothing between two requests.
//!
//! Its one piece of behaviour: it releases services through the tool `release`. The release desk wants a window code. If
//! the code stands anywhere in the request, it uses it; if not, it tries without and reports the refusal. As a reviewer it
//! keeps the code that a person stated.

use std::convert::Infallible;
use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use regex::Regex;
use serde_json::{Value, json};
use steward_runtime::{Policy, StartError, Tasks};

/// Name under which the simulated model is configured.
pub(super) const MODEL: &str = "simulated-model";

/// Name of the skill that the simulated reviewer writes.
pub(super) const SKILL: &str = "release-a-service";

/// A window code as the release desk gives it out: `osprey-1f0c22ab`.
static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b[a-z]{4,10}-[0-9a-f]{8}\b").ok());

/// Where the reviewer is told the ids of spans: an id, and the words that the span opens with.
static STATED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)\b(s\d+(?:\.\d+)?)\b[^\n]*From now on").ok());

/// Serves the model on a free port of this machine and gives its base URL.
pub(super) async fn serve(tasks: &Tasks) -> Result<String, StartError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| StartError::new("bind the simulated model", error))?;
    let address = listener
        .local_addr()
        .map_err(|error| StartError::new("bind the simulated model", error))?;
    let router = axum::Router::new().route("/v1/chat/completions", post(answer));
    let stop = tasks.stopping();
    tasks.spawn("demo/simulated-model", Policy::DISPOSABLE, async move {
        axum::serve(listener, router)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await?;
        Ok(())
    });
    Ok(format!("http://{address}/v1"))
}

async fn answer(body: Bytes) -> Result<Response, Infallible> {
    let stream = sse(&reply(&body), body.len());
    Ok(([(CONTENT_TYPE, "text/event-stream")], stream).into_response())
}

/// A reply as chat completions stream it.
fn sse(reply: &Reply, request_bytes: usize) -> String {
    let chunk = |delta: &Value, finish: Option<&str>| {
        json!({"object": "chat.completion.chunk", "model": MODEL,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut events = vec![chunk(&json!({"role": "assistant", "content": ""}), None)];
    events.extend(
        reply
            .text
            .split_inclusive(' ')
            .map(|word| chunk(&json!({"content": word}), None)),
    );
    for (index, call) in reply.calls.iter().enumerate() {
        let call = json!({"index": index, "id": format!("call_{}_{index}", reply.salt), "type": "function",
            "function": {"name": call.tool, "arguments": call.arguments.to_string()}});
        events.push(chunk(&json!({"tool_calls": [call]}), None));
    }
    let finish = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(chunk(&json!({}), Some(finish)));
    // Four characters a token is near enough for a model that counts nothing.
    let (prompt, completion) = (request_bytes / 4, reply.text.len() / 4 + 1);
    events.push(json!({"object": "chat.completion.chunk", "model": MODEL, "choices": [],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}));
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .chain(["data: [DONE]\n\n".to_owned()])
        .collect()
}

/// What the model says.
#[derive(Debug, Default, PartialEq)]
struct Reply {
    text: String,
    calls: Vec<Call>,
    /// Number of messages in the request: makes call ids unique in a session.
    salt: usize,
}

#[derive(Debug, PartialEq)]
struct Call {
    tool: &'static str,
    arguments: Value,
}

impl Reply {
    fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    fn call(tool: &'static str, arguments: Value) -> Self {
        Self {
            calls: vec![Call { tool, arguments }],
            ..Self::default()
        }
    }
}

fn reply(body: &[u8]) -> Reply {
    let Ok(request) = serde_json::from_slice::<Value>(body) else {
        return Reply::text("The request is not JSON.");
    };
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last_user = messages
        .iter()
        .rposition(|message| message["role"] == "user")
        .unwrap_or(0);
    let asked = messages.get(last_user).map(content).unwrap_or_default();
    let since = messages.get(last_user + 1..).unwrap_or_default();
    let mut reply = if asked.contains("<review_data>") {
        review(&asked, messages, since)
    } else {
        work(&asked, &request, since)
    };
    reply.salt = messages.len();
    reply
}

fn content(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

fn code_in(text: &str) -> Option<String> {
    CODE.as_ref()?.find(text).map(|found| found.as_str().to_owned())
}

/// A turn: release what was asked for.
fn work(asked: &str, request: &Value, since: &[Value]) -> Reply {
    let sent = request["messages"].to_string();
    let service = if asked.contains("shop") { "shop" } else { "billing" };
    let last = since.last().filter(|message| message["role"] == "tool").map(content);
    match (last, code_in(&sent)) {
        (Some(result), _) if result.starts_with("released ") => Reply::text(format!("Done: {service} is released.")),
        (Some(result), _) if result.starts_with("refused ") => Reply::text(format!(
            "I could not release {service}: the release desk refused, because it wants a window code and I know none."
        )),
        // A skill that covers this is read before the work is begun.
        (None, _) if sent.contains(SKILL) => Reply::call("skill_view", json!({"name": SKILL})),
        (_, Some(code)) => Reply::call("release", json!({"service": service, "code": code})),
        (_, None) => Reply::call("release", json!({"service": service})),
    }
}

/// A review: keep the code that a person stated, once as a fact and once as a way of working.
fn review(asked: &str, messages: &[Value], since: &[Value]) -> Reply {
    let said: String = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .map(content)
        .collect::<Vec<_>>()
        .join("\n");
    let span = STATED
        .as_ref()
        .and_then(|pattern| pattern.captures(asked))
        .map(|found| found[1].to_owned());
    let lesson = code_in(&said).zip(span);
    let Some((code, span)) = lesson else {
        return Reply::text(
            json!({"result": "no_change", "writes": [], "used_skills": [],
            "rejected": [{"candidate": "none", "reason": "nobody stated a lasting rule"}]})
            .to_string(),
        );
    };
    if !since.is_empty() {
        return Reply::text(json!({"result": "changed", "writes": [], "used_skills": [], "rejected": []}).to_string());
    }
    let why = "Next time, when a service is released, the agent will give the window code instead of trying without.";
    let skill = format!(
        "---\nname: {SKILL}\ndescription: Release a service through the release desk\n---\n\n# Release a service\n\n\
         1. Call `release` with the service and the window code `{code}`; without it the desk refuses.\n\
         2. The answer must say `released`.\n"
    );
    let mut reply = Reply::default();
    let cited = |mut arguments: Value| {
        arguments["evidence"] = json!([span]);
        arguments["basis"] = json!("stated");
        arguments["why"] = json!(why);
        arguments
    };
    reply.calls.push(Call {
        tool: "memory",
        arguments: cited(json!({"action": "add", "target": "notes",
            "content": format!("The release desk accepts the window code {code}.")})),
    });
    reply.calls.push(Call {
        tool: "skill_manage",
        arguments: cited(json!({"action": "create", "name": SKILL, "content": skill})),
    });
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(messages: &Value) -> Reply {
        reply(json!({"model": MODEL, "messages": messages}).to_string().as_bytes())
    }

    #[test]
    fn what_it_was_not_sent_it_does_not_know() {
        let asked =
            json!([{"role": "system", "content": "s"}, {"role": "user", "content": "Release the shop service."}]);
        assert_eq!(ask(&asked).calls[0].arguments, json!({"service": "shop"}));
    }

    #[test]
    fn a_code_in_the_prompt_is_used() {
        let asked = json!([{"role": "system", "content": "code osprey-1f0c22ab"},
            {"role": "user", "content": "Release the shop service."}]);
        assert_eq!(
            ask(&asked).calls[0].arguments,
            json!({"service": "shop", "code": "osprey-1f0c22ab"})
        );
    }

    #[test]
    fn a_refusal_is_reported_and_not_retried() {
        let asked = json!([{"role": "user", "content": "Release the shop service."},
            {"role": "assistant", "content": "", "tool_calls": []},
            {"role": "tool", "content": "refused shop: a window code is needed"}]);
        let reply = ask(&asked);
        assert!(reply.calls.is_empty() && reply.text.contains("could not"));
    }

    #[test]
    fn a_review_without_a_stated_rule_keeps_nothing() {
        let asked = json!([{"role": "user", "content": "hi"}, {"role": "user", "content": "<review_data>s1 hi"}]);
        assert!(ask(&asked).text.contains("no_change"));
    }
}
