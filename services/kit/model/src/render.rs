//! The bytes of a chat completions request. Written by hand in a fixed order, so that the same request always gives the
//! same bytes and a longer conversation only ever appends (`P-4`).

use std::ops::Range;

use bytes::Bytes;

use crate::body::Body;
use crate::error::ModelError;
use crate::message::{Message, ModelRequest, ToolCall, ToolChoice};
use crate::tools::parse_tools;

/// What differs between servers of the same protocol. None of it lies inside a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireOptions {
    /// Ask for token counts at the end of the stream.
    pub usage_in_stream: bool,
    /// Name of the field that bounds the answer: `max_tokens` or `max_completion_tokens`.
    pub max_tokens_field: &'static str,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self {
            usage_in_stream: true,
            max_tokens_field: "max_tokens",
        }
    }
}

/// Where the three segments lie in the plain body. Each is contiguous; brackets and commas between them belong to none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments {
    /// The tool array, brackets included; empty when there are no tools.
    pub tools: Range<usize>,
    /// The system message, in whatever form the protocol has for it; empty when there is none.
    pub system: Range<usize>,
    /// The messages, without closing brackets: those of the next request begin with these bytes.
    pub messages: Range<usize>,
}

/// A request, ready to send.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The whole body, as it is sent.
    pub body: Bytes,
    /// The three segments of the plain body.
    pub segments: Segments,
    plain: Bytes,
}

impl Rendered {
    /// Ends a body whose cache markers, if any, read `marker`.
    pub(crate) fn new(body: Body, segments: Segments, marker: &str) -> Self {
        let (body, plain) = body.finish(marker);
        Self { body, segments, plain }
    }

    /// The body without cache markers. They move along with the conversation and say nothing to the model, so that segments
    /// are compared without them (`P-4`).
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Bytes of the tool list.
    pub fn tools(&self) -> &[u8] {
        &self.plain[self.segments.tools.clone()]
    }

    /// Bytes of the system message.
    pub fn system(&self) -> &[u8] {
        &self.plain[self.segments.system.clone()]
    }

    /// Bytes of the messages.
    pub fn messages(&self) -> &[u8] {
        &self.plain[self.segments.messages.clone()]
    }
}

/// Renders with the default options.
///
/// # Errors
/// [`ModelError::InvalidRequest`] when the tool list is not readable.
pub fn render(request: &ModelRequest) -> Result<Rendered, ModelError> {
    render_with(request, &WireOptions::default())
}

/// Renders for a server with these options.
///
/// # Errors
/// [`ModelError::InvalidRequest`] when the tool list is not readable.
pub fn render_with(request: &ModelRequest, options: &WireOptions) -> Result<Rendered, ModelError> {
    let tools = parse_tools(&request.tools_json)?;
    let mut body = Body::default();
    body.raw("{\"model\":").json(&request.model)?;
    body.raw(",\"stream\":true");
    if options.usage_in_stream {
        body.raw(",\"stream_options\":{\"include_usage\":true}");
    }
    if let Some(limit) = request.max_output_tokens {
        body.raw(",").json(options.max_tokens_field)?.raw(":").json(&limit)?;
    }
    let mut tools_at = 0..0;
    if !tools.is_empty() {
        tool_choice(&mut body, &request.tool_choice)?;
        body.raw(",\"tools\":");
        let start = body.len();
        for (index, tool) in tools.iter().enumerate() {
            body.raw(if index == 0 { "[" } else { "," });
            body.raw("{\"type\":\"function\",\"function\":{\"name\":")
                .json(&tool.name)?;
            body.raw(",\"description\":").json(&tool.description)?;
            body.raw(",\"parameters\":").raw(tool.input_schema.get()).raw("}}");
        }
        body.raw("]");
        tools_at = start..body.len();
    }
    body.raw(",\"messages\":[");
    let start = body.len();
    if !request.system.is_empty() {
        body.raw("{\"role\":\"system\",\"content\":")
            .json(&*request.system)?
            .raw("}");
    }
    let system_at = start..body.len();
    if !request.system.is_empty() && !request.messages.is_empty() {
        body.raw(",");
    }
    let start = body.len();
    for (index, message) in request.messages.iter().enumerate() {
        body.raw(if index == 0 { "" } else { "," });
        write_message(&mut body, message)?;
    }
    let messages_at = start..body.len();
    body.raw("]}");
    let segments = Segments {
        tools: tools_at,
        system: system_at,
        messages: messages_at,
    };
    Ok(Rendered::new(body, segments, ""))
}

fn tool_choice(body: &mut Body, choice: &ToolChoice) -> Result<(), ModelError> {
    match choice {
        ToolChoice::Auto => {}
        ToolChoice::None => {
            body.raw(",\"tool_choice\":\"none\"");
        }
        ToolChoice::Required => {
            body.raw(",\"tool_choice\":\"required\"");
        }
        ToolChoice::Tool(name) => {
            body.raw(",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":")
                .json(name)?
                .raw("}}");
        }
    }
    Ok(())
}

fn write_message(body: &mut Body, message: &Message) -> Result<(), ModelError> {
    match message {
        Message::User { content } => {
            body.raw("{\"role\":\"user\",\"content\":").json(content)?.raw("}");
        }
        Message::Assistant { content, tool_calls } => write_assistant(body, content, tool_calls)?,
        Message::Tool { call_id, content, .. } => {
            body.raw("{\"role\":\"tool\",\"tool_call_id\":").json(call_id)?;
            body.raw(",\"content\":").json(content)?.raw("}");
        }
    }
    Ok(())
}

fn write_assistant(body: &mut Body, content: &str, calls: &[ToolCall]) -> Result<(), ModelError> {
    body.raw("{\"role\":\"assistant\",\"content\":");
    if content.is_empty() && !calls.is_empty() {
        body.raw("null");
    } else {
        body.json(content)?;
    }
    for (index, call) in calls.iter().enumerate() {
        body.raw(if index == 0 { ",\"tool_calls\":[" } else { "," });
        body.raw("{\"id\":")
            .json(&call.id)?
            .raw(",\"type\":\"function\",\"function\":{\"name\":")
            .json(&call.name)?;
        body.raw(",\"arguments\":").json(&call.arguments)?.raw("}}");
    }
    body.raw(if calls.is_empty() { "}" } else { "]}" });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            system: "be \"good\"".into(),
            tools_json:
                r#"[{"name":"t","description":"d","input_schema":{"type":"object","n":9007199254740993,"b":1,"a":2}}]"#
                    .into(),
            messages: vec![Message::user("hi")],
            tool_choice: ToolChoice::Auto,
            max_output_tokens: Some(7),
        }
    }

    #[test]
    fn the_body_is_the_protocol_and_its_segments_are_where_they_say() {
        let rendered = render(&request()).expect("renders");
        let expected = concat!(
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"tools":[{"type":"function","#,
            r#""function":{"name":"t","description":"d","parameters":{"type":"object","n":9007199254740993,"b":1,"a":2}}}],"#,
            r#""messages":[{"role":"system","content":"be \"good\""},{"role":"user","content":"hi"}]}"#
        );
        assert_eq!(rendered.body, expected.as_bytes());
        assert!(rendered.tools().starts_with(b"[{") && rendered.tools().ends_with(b"}]"));
        assert_eq!(rendered.system(), br#"{"role":"system","content":"be \"good\""}"#);
        assert_eq!(rendered.messages(), br#"{"role":"user","content":"hi"}"#);
    }

    #[test]
    fn arguments_go_back_as_the_text_that_came() {
        let mut longer = request();
        let arguments = r#"{ "z":9007199254740993, "a" : 1.0 }"#.to_owned();
        let call = ToolCall {
            id: "c1".to_owned(),
            name: "t".to_owned(),
            arguments: arguments.clone(),
        };
        longer.messages.push(Message::Assistant {
            content: String::new(),
            tool_calls: vec![call],
        });
        longer.messages.push(Message::Tool {
            call_id: "c1".to_owned(),
            name: "t".to_owned(),
            content: "ok".to_owned(),
        });
        let rendered = render(&longer).expect("renders");
        let body: serde_json::Value = serde_json::from_slice(&rendered.body).expect("valid JSON");
        assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["arguments"], arguments);
        assert_eq!(body["messages"][3]["tool_call_id"], "c1");
        let shorter = render(&request()).expect("renders");
        let whole_prefix = &shorter.body[..shorter.body.len() - 2];
        assert!(
            rendered.body.starts_with(whole_prefix),
            "with equal options even the bodies extend each other"
        );
    }

    #[test]
    fn nothing_is_left_of_what_is_not_there() {
        let bare = ModelRequest {
            system: "".into(),
            tools_json: "[]".into(),
            max_output_tokens: None,
            ..request()
        };
        let rendered = render(&bare).expect("renders");
        assert!(rendered.tools().is_empty() && rendered.system().is_empty());
        assert!(
            rendered
                .body
                .ends_with(br#""messages":[{"role":"user","content":"hi"}]}"#)
        );
        let forced = ModelRequest {
            tool_choice: ToolChoice::Tool("t".to_owned()),
            ..request()
        };
        let body: serde_json::Value = serde_json::from_slice(&render(&forced).expect("renders").body).expect("JSON");
        assert_eq!(body["tool_choice"]["function"]["name"], "t");
    }
}
