//! The server is itself a piece of test equipment, so its promises are tested over real HTTP.

use super::*;
use crate::install_crypto;

fn client() -> reqwest::Client {
    install_crypto();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

fn body(stream: bool) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],"stream":{stream}}}"#)
}

async fn post(server: &ModelServer, stream: bool) -> reqwest::Result<reqwest::Response> {
    let url = format!("{}/chat/completions", server.base_url());
    client()
        .post(url)
        .header("authorization", "Bearer k")
        .body(body(stream))
        .send()
        .await
}

#[tokio::test]
async fn records_bytes_and_headers_and_answers_by_script() {
    let server = ModelServer::scripted(|request| Reply::text(format!("you said {}", request.last_message().1))).await;
    let whole = post(&server, false)
        .await
        .expect("an answer")
        .text()
        .await
        .expect("text");
    assert!(whole.contains("you said hi"));
    let streamed = post(&server, true)
        .await
        .expect("an answer")
        .text()
        .await
        .expect("text");
    assert!(streamed.ends_with("data: [DONE]\n\n") && streamed.contains("you said hi"));
    assert_eq!(server.bodies()[1], body(true).as_bytes());
    let requests = server.requests();
    assert_eq!(requests[0].header("Authorization"), Some("Bearer k"));
    assert_eq!(
        (requests[1].index, requests[1].path.as_str()),
        (1, "/v1/chat/completions")
    );
}

#[tokio::test]
async fn replies_come_in_order_and_then_end_visibly() {
    let server = ModelServer::with_replies([
        Reply::error(429, "slow down").header("retry-after", "2"),
        Reply::dropped(),
    ])
    .await;
    let first = post(&server, true).await.expect("an answer");
    assert_eq!(
        (first.status().as_u16(), first.headers()["retry-after"].to_str().ok()),
        (429, Some("2"))
    );
    assert!(post(&server, true).await.is_err());
    assert_eq!(post(&server, true).await.expect("an answer").status().as_u16(), 418);
}

#[tokio::test]
async fn a_cut_is_an_error_for_the_reader_and_a_hang_ends_when_released() {
    let server = ModelServer::with_replies([
        Reply::text("half").cut_after(20),
        Reply::text("late").in_pieces(3).hang_after(7),
    ])
    .await;
    assert!(post(&server, true).await.expect("headers arrive").text().await.is_err());
    let hanging = post(&server, true).await.expect("headers arrive");
    server.wait_for_requests(2).await;
    server.release();
    assert!(hanging.text().await.expect("the rest arrives").contains("late"));
}

#[tokio::test]
async fn one_script_speaks_the_protocol_of_each_request() {
    let server = ModelServer::scripted(|request| match request.index {
        0 => Reply::text_and_calls("hello", [ScriptedCall::new("a", "look", "{}")]).usage(9, 4, 2),
        _ => Reply::failure(529, "overloaded_error", "busy"),
    })
    .await;
    let ask = || {
        let body = r#"{"model":"m","system":[{"type":"text","text":"be good"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"seen"}]}],"tools":[{"name":"look"}],"stream":true}"#;
        client()
            .post(format!("{}/messages", server.base_url()))
            .body(body)
            .send()
    };
    let streamed = ask().await.expect("an answer").text().await.expect("text");
    for part in [
        "event: message_start\n",
        "event: ping\n",
        "\"partial_json\":\"{}\"",
        "\"stop_reason\":\"tool_use\"",
    ] {
        assert!(streamed.contains(part), "{part} in {streamed}");
    }
    assert!(streamed.contains(r#""input_tokens":5"#) && streamed.ends_with("data: {\"type\":\"message_stop\"}\n\n"));
    let refused = ask().await.expect("an answer");
    assert_eq!(refused.status().as_u16(), 529);
    assert!(
        refused
            .text()
            .await
            .expect("text")
            .contains(r#""type":"overloaded_error""#)
    );
    let request = &server.requests()[0];
    assert_eq!(
        (request.system().as_str(), request.tool_names()),
        ("be good", vec!["look".to_owned()])
    );
    assert_eq!(request.tool_results(), [("x".to_owned(), "seen".to_owned())]);
}
