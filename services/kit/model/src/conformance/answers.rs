//! What comes out of good answers, and what goes back with the next request.

use steward_testkit::{ModelServer, Reply as Scripted, ScriptedBlock, ScriptedCall};

use super::{KEY, Rig, config, for_each_protocol, request, result, said};
use crate::config::ProviderKind;
use crate::message::{Message, ToolChoice};
use crate::native::Continuation;
use crate::prefix::{PrefixState, PrefixVerdict, check, extends_all};
use crate::provider::{FinishReason, collect};
use crate::usage::Usage;

for_each_protocol!(
    a_streamed_answer_arrives_whole_however_it_is_cut,
    a_conversation_only_ever_extends,
    parallel_calls_stay_separate_and_their_results_go_back_in_order,
    arguments_go_back_as_the_text_that_came,
    the_same_call_id_twice_becomes_two,
    a_call_without_arguments_can_go_back,
    an_answer_in_one_document_is_read_too,
    a_missing_end_marker_is_fine,
    an_empty_answer_is_no_error_and_is_empty,
    what_must_be_called_is_said,
    the_key_is_sent_in_a_header,
);

async fn a_streamed_answer_arrives_whole_however_it_is_cut(kind: ProviderKind) {
    for piece in [1, 2, 7, 4096] {
        let calls = [
            ScriptedCall::new("a", "look", r#"{"n":9007199254740993}"#),
            ScriptedCall::new("b", "look", "{}"),
        ];
        let script = Scripted::text_and_calls("Grüße, 世界", calls);
        let rig = Rig::new(kind, [script.usage(20, 12, 4).cache_write(3).in_pieces(piece)]).await;
        let reply = rig.ask_anything().await.expect("an answer");
        assert_eq!(reply.content, "Grüße, 世界");
        assert_eq!(reply.tool_calls[0].arguments, r#"{"n":9007199254740993}"#);
        assert_eq!((reply.tool_calls.len(), reply.tool_calls[1].id.as_str()), (2, "b"));
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        let usage = Usage {
            input: Some(20),
            cached_input: Some(12),
            cache_write: Some(3),
            output: Some(4),
            reasoning: None,
        };
        assert_eq!(reply.usage, usage);
    }
}

async fn a_conversation_only_ever_extends(kind: ProviderKind) {
    let server = ModelServer::scripted(|request| match request.index % 2 {
        0 => Scripted::text_and_calls("I look.", [ScriptedCall::new("", "look", r#"{"at": 1.0}"#)]),
        _ => Scripted::text("Seen."),
    })
    .await;
    let rig = Rig::on(kind, server);
    let (mut messages, mut state) = (Vec::new(), None);
    for turn in 0..3 {
        messages.push(Message::user(format!("question {turn}")));
        for _ in 0..2 {
            let rendered = rig
                .provider
                .rendered(&request(&messages), &Continuation::default())
                .expect("renders");
            assert!(!matches!(check(state.as_ref(), &rendered), PrefixVerdict::Broken(_)));
            state = Some(PrefixState::of(&rendered));
            let reply = rig.ask(&messages).await.expect("an answer");
            let sent = rig.server.bodies().pop().expect("a request");
            assert_eq!(sent, rendered.body, "what is judged is what is sent");
            let calls = reply.tool_calls.clone();
            messages.push(said(reply));
            messages.extend(calls.iter().map(|call| result(&call.id, "a thing")));
        }
        // What a person adds while results come in, and what stays when a request failed.
        messages.push(Message::user("and hurry"));
    }
    assert_eq!(extends_all(&rig.server.bodies()), Ok(()));
}

async fn parallel_calls_stay_separate_and_their_results_go_back_in_order(kind: ProviderKind) {
    let named = |id: &str| ScriptedCall::new(id, "look", format!(r#"{{"note":"{id}"}}"#));
    let mut nameless = named("c");
    nameless.id = None;
    let calls = Scripted::calls([named("a"), named("b"), nameless]);
    let rig = Rig::new(kind, [calls, Scripted::text("done")]).await;
    let question = Message::user("look thrice");
    let reply = rig.ask(std::slice::from_ref(&question)).await.expect("calls");
    let arguments: Vec<&str> = reply.tool_calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"note":"a"}"#, r#"{"note":"b"}"#, r#"{"note":"c"}"#]);
    let ids: Vec<String> = reply.tool_calls.iter().map(|call| call.id.clone()).collect();
    assert_eq!((ids[0].as_str(), ids[1].as_str(), ids[2].is_empty()), ("a", "b", false));
    let results = ids.iter().map(|id| result(id, &format!("seen {id}")));
    let messages: Vec<Message> = [question, said(reply)].into_iter().chain(results).collect();
    rig.ask(&messages).await.expect("an answer");
    let expected: Vec<(String, String)> = ids.iter().map(|id| (id.clone(), format!("seen {id}"))).collect();
    assert_eq!(rig.server.requests()[1].tool_results(), expected);
}

async fn arguments_go_back_as_the_text_that_came(kind: ProviderKind) {
    let arguments = r#"{ "z":9007199254740993, "a" : 1.0, "é":"\u00e9" }"#;
    let rig = Rig::new(kind, [Scripted::call("look", arguments), Scripted::text("done")]).await;
    let reply = rig.ask_anything().await.expect("a call");
    assert_eq!(reply.tool_calls[0].arguments, arguments);
    let messages = [Message::user("hi"), said(reply), result("call_1", "seen")];
    rig.ask(&messages).await.expect("an answer");
    let sent = rig.server.requests()[1].text();
    let escaped = serde_json::to_string(arguments).expect("a string");
    assert!(sent.contains(arguments) || sent.contains(&escaped), "{sent}");
}

async fn the_same_call_id_twice_becomes_two(kind: ProviderKind) {
    let twice = || Scripted::calls(["1", "2"].map(|n| ScriptedCall::new("same", "look", format!("{{\"n\":{n}}}"))));
    let rig = Rig::new(kind, [twice(), twice()]).await;
    let mut messages = vec![Message::user("hi")];
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let reply = rig.ask(&messages).await.expect("calls");
        let arguments: Vec<&str> = reply.tool_calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"n":1}"#, r#"{"n":2}"#]);
        let new: Vec<String> = reply.tool_calls.iter().map(|call| call.id.clone()).collect();
        messages.push(said(reply));
        messages.extend(new.iter().map(|id| result(id, "seen")));
        ids.extend(new);
    }
    assert_eq!(ids.len(), 4, "{ids:?}");
}

async fn a_call_without_arguments_can_go_back(kind: ProviderKind) {
    let rig = Rig::new(kind, [Scripted::call("look", ""), Scripted::text("done")]).await;
    let reply = rig.ask_anything().await.expect("a call");
    assert!(matches!(reply.tool_calls[0].arguments.as_str(), "" | "{}"));
    let mut call = reply.tool_calls[0].clone();
    call.arguments = String::new();
    let called = Message::Assistant {
        content: String::new(),
        tool_calls: vec![call],
    };
    let messages = [Message::user("hi"), called, result("call_1", "")];
    assert_eq!(rig.ask(&messages).await.expect("an answer").content, "done");
    assert_eq!(
        rig.server.requests()[1].tool_results(),
        [("call_1".to_owned(), String::new())]
    );
}

/// Some servers do not stream, whatever they are asked.
async fn an_answer_in_one_document_is_read_too(kind: ProviderKind) {
    let document = match kind {
        ProviderKind::OpenAi => {
            r#"{"choices":[{"message":{"role":"assistant","content":"whole","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"n\":9007199254740993}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3}}"#
        }
        ProviderKind::Anthropic => {
            r#"{"type":"message","content":[{"type":"text","text":"whole"},{"type":"tool_use","id":"a","name":"look","input":{"n":9007199254740993}}],"stop_reason":"tool_use","usage":{"input_tokens":3}}"#
        }
    };
    let reply = Scripted::garbage(document).header("content-type", "application/json; charset=utf-8");
    let rig = Rig::new(kind, [reply]).await;
    let reply = rig.ask_anything().await.expect("an answer");
    assert_eq!((reply.content.as_str(), reply.usage.input), ("whole", Some(3)));
    assert_eq!(reply.tool_calls[0].arguments, r#"{"n":9007199254740993}"#);
    assert_eq!(reply.finish, FinishReason::ToolCalls);
}

async fn a_missing_end_marker_is_fine(kind: ProviderKind) {
    let rig = Rig::new(kind, [Scripted::text("fine").without_done()]).await;
    assert_eq!(rig.ask_anything().await.expect("an answer").content, "fine");
}

async fn an_empty_answer_is_no_error_and_is_empty(kind: ProviderKind) {
    let rig = Rig::new(kind, [Scripted::text(""), Scripted::blocks([])]).await;
    for _ in 0..2 {
        let reply = rig.ask_anything().await.expect("an answer");
        assert!(reply.is_empty() && reply.finish == FinishReason::Stop);
    }
    let only_reasoning = ScriptedBlock::Thinking {
        text: "Hm.".to_owned(),
        signature: "s".to_owned(),
    };
    let rig = Rig::new(kind, [Scripted::blocks([only_reasoning])]).await;
    assert!(rig.ask_anything().await.expect("an answer").is_empty());
}

async fn what_must_be_called_is_said(kind: ProviderKind) {
    let rig = Rig::new(kind, [Scripted::text("a"), Scripted::text("b")]).await;
    for choice in [ToolChoice::Required, ToolChoice::Tool("look".to_owned())] {
        let mut request = request(&[Message::user("hi")]);
        request.tool_choice = choice;
        request.max_output_tokens = Some(77);
        let stream = rig.provider.stream(request).await.expect("it begins");
        collect(stream, |_| {}).await.expect("an answer");
    }
    let choices: Vec<String> = rig
        .server
        .requests()
        .iter()
        .map(|request| request.json()["tool_choice"].to_string())
        .collect();
    match kind {
        ProviderKind::OpenAi => assert_eq!(choices[0], r#""required""#),
        ProviderKind::Anthropic => assert_eq!(choices[0], r#"{"type":"any"}"#),
    }
    assert!(choices[1].contains(r#""name":"look""#));
    assert_eq!(rig.server.requests()[0].json()["max_tokens"], 77);
}

async fn the_key_is_sent_in_a_header(kind: ProviderKind) {
    let rig = Rig::new(kind, [Scripted::text("ok")]).await;
    rig.ask_anything().await.expect("an answer");
    let request = &rig.server.requests()[0];
    let sent = match kind {
        ProviderKind::OpenAi => request
            .header("authorization")
            .map(|value| value.replace("Bearer ", "")),
        ProviderKind::Anthropic => request.header("x-api-key").map(str::to_owned),
    };
    assert_eq!(sent.as_deref(), Some(KEY));
    assert!(!request.path.contains(KEY) && !request.text().contains(KEY));
    let mut config = config(kind, &rig.server);
    config.base_url = "ftp://somewhere".to_owned();
    assert!(config.build().is_err());
}
