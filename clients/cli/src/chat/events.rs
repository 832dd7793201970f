//! What happens in a turn, shown as it comes: text by the piece, tools by the line, and how the segment ended.

use anyhow::anyhow;
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::turn_event::Event;
use steward_proto::skill::v1::SecretRequest;

use crate::output::{NOTICE, Output, SIDE, printable};

/// How a segment ended.
#[derive(Debug)]
pub(crate) enum End {
    /// With the final answer.
    Completed(pb::TurnCompleted),
    /// With calls for the client.
    Calls(Vec<pb::PendingCall>),
}

/// What was seen and shown of the segment, so that a stream that is taken up again shows nothing twice. A server that was
/// started again numbers its events anew and gives text in one piece; so events are compared, and text by its characters.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    seen: Vec<pb::TurnEvent>,
    /// Events of the present stream that were seen before, in the same order.
    known: usize,
    renumbered: bool,
    printed: String,
    replayed: String,
    at_line_start: bool,
    /// Values that a person is to be asked for.
    wanted: Vec<SecretRequest>,
}

impl Cursor {
    /// Nothing was seen yet.
    pub(crate) fn new() -> Self {
        Self {
            at_line_start: true,
            ..Self::default()
        }
    }

    /// A stream begins, from the first event of the segment.
    pub(crate) fn attach(&mut self) {
        self.known = 0;
        self.renumbered = false;
        self.replayed.clear();
    }

    /// Whether the event was seen before; remembers it if not.
    fn is_known(&mut self, item: &pb::TurnEvent) -> bool {
        if !self.renumbered && self.known < self.seen.len() {
            if self.seen[self.known] == *item {
                self.known += 1;
                return true;
            }
            self.renumbered = true;
        }
        if self.renumbered && self.seen.iter().any(|seen| seen.event == item.event) {
            return true;
        }
        self.seen.push(item.clone());
        self.known = self.seen.len();
        false
    }

    /// The part of a text that was not shown yet.
    fn unseen(&mut self, text: &str) -> String {
        self.replayed.push_str(text);
        if self.printed.starts_with(&self.replayed) {
            return String::new();
        }
        let new = self.replayed.strip_prefix(&self.printed).unwrap_or(text).to_owned();
        self.printed.clone_from(&self.replayed);
        new
    }

    /// Shows an event once; gives the end when it is one. An end is never passed over.
    pub(crate) fn take(&mut self, item: pb::TurnEvent, output: &mut Output) -> anyhow::Result<Option<End>> {
        let known = self.is_known(&item);
        if output.is_json() && !known {
            output.item(&item, |_, _| {})?;
        }
        let Some(event) = item.event else { return Ok(None) };
        match event {
            Event::Completed(completed) => {
                if !output.is_json() {
                    self.end_line(output);
                    if completed.prefix.is_some_and(|prefix| prefix.unplanned_breaks > 0) {
                        output.aside("this session's requests did not extend each other; please report this");
                    }
                }
                Ok(Some(End::Completed(completed)))
            }
            Event::RequiresAction(action) => {
                self.end_line(output);
                Ok(Some(End::Calls(action.calls)))
            }
            Event::Failed(failed) => {
                self.end_line(output);
                let again = if failed.retryable {
                    "; the same message may work later"
                } else {
                    ""
                };
                Err(anyhow!(
                    "the turn failed ({}): {}{again}",
                    failed.reason,
                    failed.message
                ))
            }
            Event::Interrupted(_) => {
                self.end_line(output);
                Err(anyhow!("the turn was stopped"))
            }
            Event::TextDelta(delta) => {
                let text = self.unseen(&delta.text);
                if !output.is_json() && !text.is_empty() {
                    output.piece(&printable(&text));
                    self.at_line_start = text.ends_with('\n');
                }
                Ok(None)
            }
            Event::SecretRequest(request) => {
                if !known {
                    self.wanted.push(request);
                }
                Ok(None)
            }
            event => {
                if !output.is_json() && !known {
                    self.show(&event, output);
                }
                Ok(None)
            }
        }
    }

    fn show(&mut self, event: &Event, output: &mut Output) {
        match event {
            Event::ToolFinished(tool) => {
                self.end_line(output);
                let said = if tool.summary.is_empty() {
                    &tool.tool
                } else {
                    &tool.summary
                };
                let mark = if tool.is_error { " (refused)" } else { "" };
                output.line(&format!("{SIDE}· {}{mark}{SIDE:#}", printable(said)));
            }
            Event::ModelRetry(retry) => {
                self.end_line(output);
                output.line(&format!("{NOTICE}model: {}, trying again{NOTICE:#}", retry.reason));
            }
            Event::Steered(steered) => {
                self.end_line(output);
                output.line(&format!("{SIDE}· added: {}{SIDE:#}", printable(&steered.text)));
            }
            _ => {}
        }
    }

    /// What the person is to be asked for, since the last time.
    pub(crate) fn take_wanted(&mut self) -> Vec<SecretRequest> {
        std::mem::take(&mut self.wanted)
    }

    fn end_line(&mut self, output: &mut Output) {
        if !self.at_line_start && !output.is_json() {
            output.line("");
        }
        self.at_line_start = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event_id: u64, text: &str) -> pb::TurnEvent {
        let event = Some(Event::TextDelta(pb::TextDelta { text: text.to_owned() }));
        pb::TurnEvent {
            event_id,
            turn: "t".to_owned(),
            event,
        }
    }

    fn completed(event_id: u64) -> pb::TurnEvent {
        let event = Some(Event::Completed(pb::TurnCompleted {
            text: "Hello there".to_owned(),
            ..Default::default()
        }));
        pb::TurnEvent {
            event_id,
            turn: "t".to_owned(),
            event,
        }
    }

    #[test]
    fn a_stream_that_is_taken_up_again_shows_each_character_once() {
        let mut cursor = Cursor::default();
        cursor.attach();
        assert_eq!(cursor.unseen("Hel"), "Hel");
        cursor.attach();
        assert_eq!(cursor.unseen("Hel"), "");
        assert_eq!(cursor.unseen("lo"), "lo");
        // Started again: the whole text in one piece.
        cursor.attach();
        assert_eq!(cursor.unseen("Hello there"), " there");
    }

    #[test]
    fn an_end_with_a_lower_number_is_still_an_end() {
        let (mut cursor, mut output) = (Cursor::default(), Output::new(true));
        cursor.attach();
        for id in 1..=5 {
            assert!(cursor.take(text(id, "Hello "), &mut output).unwrap().is_none());
        }
        cursor.attach();
        assert!(matches!(
            cursor.take(completed(2), &mut output).unwrap(),
            Some(End::Completed(_))
        ));
    }
}
