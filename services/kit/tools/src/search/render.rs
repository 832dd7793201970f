//! Setting a search answer as text. What was recalled stands in spans of its own, together with everything about it
//! that depends on its words (its length, the cut mark), so that hiding a span hides all that it says.

use std::fmt::Write as _;

use steward_base::names::UserId;
use steward_base::{Integrity, Span, SpanOrigin, Timestamp};
use steward_proto::recall::v1::{self as pb, search_request::Shape};

use crate::answer::{ToolAnswer, count, offset};
use crate::context::integrity_from_pb;
use crate::definitions::SESSION_SEARCH;

pub(super) fn answer(user: &UserId, shape: &Shape, response: &pb::SearchResponse) -> ToolAnswer {
    let mut page = Page::new(user);
    let summary = match shape {
        Shape::Discover(_) => discovered(&mut page, response),
        Shape::Browse(_) => browsed(&mut page, response),
        Shape::Read(read) => listed(&mut page, response, &read.session),
        Shape::Scroll(scroll) => listed(&mut page, response, &scroll.session),
    };
    if response.truncated {
        page.say("\n(The answer was cut to its bound; ask for less at a time.)\n");
    }
    let (content, spans) = page.finish();
    ToolAnswer {
        spans,
        ..ToolAnswer::success(SESSION_SEARCH, content, summary)
    }
}

fn discovered(page: &mut Page<'_>, response: &pb::SearchResponse) -> String {
    let found = response.conversations.len();
    if found == 0 {
        page.say("Nothing was found. Fewer or other words may find more.\n");
        return "Past sessions searched, nothing found".to_owned();
    }
    page.say(&format!("{} found, best first.", count(found, "conversation")));
    if response.widened {
        page.say(" Too little holds all words, so any of them was accepted.");
    }
    page.say("\n");
    for conversation in &response.conversations {
        heading(page, conversation);
        let session = short(&conversation.session);
        if let Some(hit) = &conversation.hit {
            page.say(&format!("Hit in message {}: ", hit.seq));
            let snippet = indented(&hit.snippet.replace(['\u{E000}', '\u{E001}'], "**"));
            page.recall(
                &snippet,
                SpanOrigin::Tool(SESSION_SEARCH.to_owned()),
                integrity_from_pb(hit.integrity),
            );
            page.say("\n");
        }
        part(page, "Around it", session, &conversation.around);
        let near = |message: &&pb::RecalledMessage| !conversation.around.iter().any(|other| other.seq == message.seq);
        let opening: Vec<_> = conversation.opening.iter().filter(near).cloned().collect();
        part(page, "How it began", session, &opening);
        let closing: Vec<_> = conversation
            .closing
            .iter()
            .filter(near)
            .filter(|message| !opening.iter().any(|other| other.seq == message.seq))
            .cloned()
            .collect();
        part(page, "How it ended", session, &closing);
    }
    format!("Past sessions searched, {} found", count(found, "conversation"))
}

fn browsed(page: &mut Page<'_>, response: &pb::SearchResponse) -> String {
    if response.conversations.is_empty() {
        page.say("There are no past conversations.\n");
        return "No past conversations".to_owned();
    }
    page.say("Recent conversations, latest first.\n");
    for conversation in &response.conversations {
        heading(page, conversation);
        for message in &conversation.opening {
            line(page, short(&conversation.session), message);
        }
    }
    format!("{} listed", count(response.conversations.len(), "conversation"))
}

fn listed(page: &mut Page<'_>, response: &pb::SearchResponse, session: &str) -> String {
    let session = short(session);
    page.say(&format!("Session {session}\n"));
    for message in &response.messages {
        line(page, session, message);
    }
    if response.messages.is_empty() {
        page.say("No messages there.\n");
    }
    if response.next_seq > 0 {
        page.say(&format!("(It goes on: read it with `from` {}.)\n", response.next_seq));
    }
    format!("{} of a past session read", count(response.messages.len(), "message"))
}

fn heading(page: &mut Page<'_>, conversation: &pb::Conversation) {
    let mut text = format!("\n## Session {}", short(&conversation.session));
    if let Some(at) = conversation.last_active_time {
        _ = write!(
            text,
            ", last active {}",
            Timestamp::from_parts(at.seconds, at.nanos).date()
        );
    }
    if conversation.source() == pb::SessionSource::Schedule {
        text.push_str(", run by a schedule");
    }
    page.say(&text);
    if !conversation.title.is_empty() {
        page.say(": ");
        page.say(&conversation.title.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    page.say("\n");
}

fn part(page: &mut Page<'_>, title: &str, session: &str, messages: &[pb::RecalledMessage]) {
    if messages.is_empty() {
        return;
    }
    page.say(&format!("{title}:\n"));
    for message in messages {
        line(page, session, message);
    }
}

fn line(page: &mut Page<'_>, session: &str, message: &pb::RecalledMessage) {
    let integrity = integrity_from_pb(message.integrity);
    let tools = message.tools.join(", ");
    let (speaker, own) = match message.role() {
        pb::MessageRole::User => ("user", SpanOrigin::User(page.user.to_string())),
        pb::MessageRole::Assistant | pb::MessageRole::Unspecified => ("assistant", SpanOrigin::Assistant),
        pb::MessageRole::Tool => ("tool", SpanOrigin::Tool(tools.clone())),
    };
    let origin = match integrity {
        Integrity::External => SpanOrigin::External(format!("session {session}, message {}", message.seq)),
        Integrity::UnknownTool | Integrity::Workspace | Integrity::Person | Integrity::Operator => own,
    };
    page.say(&format!("[{}] {speaker}", message.seq));
    if message.role() == pb::MessageRole::Tool && !tools.is_empty() {
        // Which tool it was may have been chosen by what it brought.
        page.recall(&format!(" {tools}"), origin.clone(), integrity);
    }
    page.say(": ");
    let shown = message.text.chars().count() as u64;
    let mut text = indented(&message.text);
    if message.text_chars > shown {
        _ = write!(text, " [cut: {shown} of {} characters]", message.text_chars);
    }
    if message.role() == pb::MessageRole::Assistant && !tools.is_empty() {
        _ = write!(text, "{}(calls {tools})", if text.is_empty() { "" } else { " " });
    }
    page.recall(&text, origin, integrity);
    page.say("\n");
}

/// Only the first line of what was recalled begins at the margin: the tool's own lines cannot be imitated from within.
fn indented(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\n  ")
}

fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Text that grows together with its spans.
struct Page<'a> {
    user: &'a UserId,
    text: String,
    spans: Vec<Span>,
}

impl<'a> Page<'a> {
    fn new(user: &'a UserId) -> Self {
        Self {
            user,
            text: String::new(),
            spans: Vec::new(),
        }
    }

    /// The tool's own words.
    fn say(&mut self, words: &str) {
        self.recall(words, SpanOrigin::Tool(SESSION_SEARCH.to_owned()), Integrity::Workspace);
    }

    /// Words from the past. No words of low standing leave a label without length: that there are none says something
    /// about them, too.
    fn recall(&mut self, words: &str, origin: SpanOrigin, integrity: Integrity) {
        if words.is_empty() && integrity >= Integrity::Workspace {
            return;
        }
        let start = offset(&self.text);
        self.text.push_str(words);
        let end = offset(&self.text);
        match self.spans.last_mut() {
            Some(last) if last.origin == origin && last.integrity == integrity => last.end = end,
            _ => self.spans.push(Span {
                start,
                end,
                origin,
                integrity,
            }),
        }
    }

    fn finish(self) -> (String, Vec<Span>) {
        (self.text, self.spans)
    }
}
