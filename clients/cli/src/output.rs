//! What people and programs see. Tables and plain lines on standard output, problems on standard error; with `--json`,
//! messages of the contract in protobuf's JSON form. Colour only on a terminal; control characters in stored text are
//! shown, never sent to the terminal.

mod cell;
mod hints;
mod page;
mod text;

use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, ContentArrangement, Table, presets};
use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use steward_client::ClientError;

use crate::fault::{Fault, USAGE};

pub use cell::{Cell, Tone};
pub use hints::sentence;
pub use page::{ALL, Page, gather};
pub use text::{counted, first_line, parse_end, parse_time, printable, short, size, span, time, word};

/// Faint text, for what is said on the side.
pub const SIDE: Style = Tone::Side.style();
/// What needs attention.
pub const NOTICE: Style = Tone::Notice.style();
/// Names of things.
pub const NAME: Style = Tone::Name.style();
/// Heads of tables and of parts.
const HEAD: Style = Style::new().bold();
/// Places in a diff.
const PLACE: Style = AnsiColor::Magenta.on_default();

/// Where a verb prints.
#[derive(Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    /// For people, or for programs.
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether programs read this.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// An answer of the server: as JSON for programs, else through `show`.
    pub fn answer<M: Message + Name>(&mut self, message: &M, show: impl FnOnce(&mut Self, &M)) -> anyhow::Result<()> {
        if self.json {
            let json = json_of(message)?;
            self.line(&serde_json::to_string_pretty(&json)?);
        } else {
            show(self, message);
        }
        Ok(())
    }

    /// One item of a stream: a JSON document per line for programs, else through `show`.
    pub fn item<M: Message + Name>(&mut self, message: &M, show: impl FnOnce(&mut Self, &M)) -> anyhow::Result<()> {
        if self.json {
            self.line(&serde_json::to_string(&json_of(message)?)?);
        } else {
            show(self, message);
        }
        Ok(())
    }

    /// A line of text.
    pub fn line(&mut self, text: &str) {
        // A reader that went away ends the program quietly at the next write.
        let _ = writeln!(anstream::stdout().lock(), "{text}");
    }

    /// A piece of text without an end of line, at once.
    pub fn piece(&mut self, text: &str) {
        let mut out = anstream::stdout().lock();
        let _ = write!(out, "{text}");
        let _ = out.flush();
    }

    /// Something on the side: standard error, so that it never mixes with an answer.
    pub fn aside(&mut self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{SIDE}{text}{SIDE:#}");
    }

    /// A problem that does not end the verb, on standard error.
    pub fn warn(&mut self, text: &str) {
        let _ = writeln!(
            anstream::stderr().lock(),
            "{NOTICE}steward:{NOTICE:#} {}",
            printable(text)
        );
    }

    /// Why the verb failed, with what can be done about it.
    pub fn failure(&mut self, error: &anyhow::Error) {
        let client = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>());
        let said = format!("{error:#}");
        let said = client.map_or_else(|| said.clone(), |client| hints::with_cause(&said, client));
        if self.json {
            let own = Fault::in_chain(error).map_or("CLIENT", |fault| fault.reason);
            let reason = client.map_or(own, |client| client.reason);
            let fields: Vec<_> = client
                .map(|client| client.violations.as_slice())
                .unwrap_or_default()
                .iter()
                .map(|field| serde_json::json!({"field": field.field, "description": field.description}))
                .collect();
            let document = serde_json::json!({
                "error": {
                    "reason": reason,
                    "message": printable(&said),
                    "fields": fields,
                    "hint": client.and_then(|client| hints::hint(client)),
                }
            });
            self.line(&document.to_string());
            return;
        }
        let mut err = anstream::stderr().lock();
        let _ = writeln!(err, "{NOTICE}steward:{NOTICE:#} {}", printable(&said));
        if let Some(client) = client {
            // A single field is in the message already, with what is wrong about it.
            for field in &client.violations {
                let told = format!("{}: {}", field.field, field.description);
                if !said.ends_with(&told) {
                    let _ = writeln!(err, "  {}", printable(&told));
                }
            }
            if let Some(hint) = hints::hint(client) {
                let _ = writeln!(err, "{hint}");
            }
            let _ = writeln!(err, "{SIDE}reason {}{SIDE:#}", client.reason);
        } else if let Some(fault) = Fault::in_chain(error).filter(|fault| fault.reason != USAGE) {
            let _ = writeln!(err, "{SIDE}reason {}{SIDE:#}", fault.reason);
        }
    }

    /// A document of the command line's own, where no message of the contract is the answer.
    pub fn document(&mut self, document: &serde_json::Value) -> anyhow::Result<()> {
        self.line(&serde_json::to_string_pretty(document)?);
        Ok(())
    }

    /// How far long work has come, on a line of standard error that the next one replaces. Nothing without a terminal.
    pub fn progress(&mut self, text: &str) {
        if self.json || !std::io::stderr().is_terminal() {
            return;
        }
        let mut err = anstream::stderr().lock();
        let _ = write!(err, "\r\u{1b}[K{SIDE}{}{SIDE:#}", printable(text));
        let _ = err.flush();
    }

    /// A table with a head. Says so when there are no rows.
    pub fn table<C: Into<Cell>>(&mut self, head: &[&str], rows: Vec<Vec<C>>, empty: &str) {
        if rows.is_empty() {
            self.line(empty);
            return;
        }
        let mut table = plain_table();
        if head.iter().any(|title| !title.is_empty()) {
            let title = |title: &&str| match *title {
                // A style around nothing would keep the end of the line from being trimmed.
                "" => comfy_table::Cell::new(""),
                title => comfy_table::Cell::new(title.to_uppercase()).add_attribute(Attribute::Bold),
            };
            table.set_header(head.iter().map(title));
        }
        for row in rows {
            table.add_row(row.into_iter().map(|cell| {
                let cell: Cell = cell.into();
                cell.drawn(&printable(&cell.text))
            }));
        }
        self.drawn(&table);
    }

    /// One thing, property by property; those without a value are left out.
    pub fn record(&mut self, properties: Vec<(&str, Cell)>) {
        let mut table = plain_table();
        for (property, value) in properties.into_iter().filter(|(_, value)| !value.text.is_empty()) {
            let name = Cell::side(property);
            table.add_row([name.drawn(&name.text), value.drawn(&printable(&value.text))]);
        }
        if table.row_count() > 0 {
            self.drawn(&table);
        }
    }

    /// The title of a part of an answer.
    pub fn head(&mut self, title: &str) {
        self.line(&format!("{HEAD}{}{HEAD:#}", printable(title)));
    }

    /// Says that a list has more than it shows.
    pub fn more(&mut self, page: &impl Page) {
        if !page.next().is_empty() {
            self.aside("there are more; a higher --limit shows them");
        }
    }

    /// A unified diff.
    pub fn diff(&mut self, diff: &str) {
        self.diff_lines(diff.trim_end_matches('\n').split('\n'));
    }

    /// Lines of a diff, each with its sign.
    pub fn diff_lines<L: AsRef<str>>(&mut self, lines: impl Iterator<Item = L>) {
        for line in lines {
            let line = printable(line.as_ref());
            let style = match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => HEAD,
                [b'+', ..] => Tone::Good.style(),
                [b'-', ..] => Tone::Bad.style(),
                [b'@', b'@', ..] => PLACE,
                _ => Style::new(),
            };
            self.line(&format!("{style}{line}{style:#}"));
        }
    }

    fn drawn(&mut self, table: &Table) {
        let text = table.to_string();
        let trimmed: Vec<_> = text.lines().map(str::trim_end).collect();
        self.line(&trimmed.join("\n"));
    }
}

/// Without lines; as wide as the terminal, or as it needs where there is none. Styles are taken out again by the writer
/// where they are not wanted.
fn plain_table() -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .enforce_styling()
        .style_text_only();
    table
}

/// A message of the contract in protobuf's JSON form.
pub fn json_of<M: Message + Name>(message: &M) -> anyhow::Result<serde_json::Value> {
    static POOL: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    let pool = POOL
        .get_or_init(|| DescriptorPool::decode(steward_proto::FILE_DESCRIPTOR_SET).ok())
        .as_ref()
        .ok_or_else(|| anyhow::anyhow!("the contract's descriptors cannot be read"))?;
    let name = M::full_name();
    let descriptor = pool
        .get_message_by_name(&name)
        .ok_or_else(|| anyhow::anyhow!("{name} is not in the contract"))?;
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())?;
    let options = SerializeOptions::new()
        .skip_default_fields(false)
        .stringify_64_bit_integers(false);
    Ok(dynamic.serialize_with_options(serde_json::value::Serializer, &options)?)
}

#[cfg(test)]
mod tests {
    use steward_proto::memory::v1::{Budget, Entry, ListEntriesResponse};
    use tonic_types::StatusExt as _;

    use super::*;

    #[test]
    fn json_is_the_contract_in_protobufs_form() {
        let answer = ListEntriesResponse {
            entries: vec![Entry {
                name: "teams/a/memory/notes/entries/x".into(),
                revision: 3,
                ..Entry::default()
            }],
            budget: Some(Budget { used: 5, limit: 2200 }),
            ..ListEntriesResponse::default()
        };
        let json = json_of(&answer).unwrap();
        assert_eq!(json["entries"][0]["revision"], 3);
        assert_eq!(json["budget"]["limit"], 2200);
        assert_eq!(json["nextPageToken"], "");
    }

    #[test]
    fn a_refusal_names_the_verb_that_comes_next() {
        let refused = |code, reason: &str, domain: &str| {
            let advice = [("advice".to_owned(), "unpin it first".to_owned())];
            let details = tonic_types::ErrorDetails::with_error_info(reason, domain, advice);
            let status = tonic::Status::with_error_details(code, "no", details);
            hints::hint(&ClientError::from(status)).map(str::to_owned)
        };
        let session = refused(tonic::Code::NotFound, "SESSION_NOT_FOUND", "agent.steward.dev");
        assert!(session.unwrap().contains("steward sessions list"));
        let memory = refused(tonic::Code::FailedPrecondition, "NO_MATCH", "memory.steward.dev");
        assert!(memory.unwrap().contains("steward memory list"));
        assert_eq!(
            refused(tonic::Code::FailedPrecondition, "NO_MATCH", "skill.steward.dev"),
            None
        );
        assert_eq!(refused(tonic::Code::Internal, "INTERNAL", "skill.steward.dev"), None);
        let details = tonic_types::ErrorDetails::with_error_info(
            "FETCH_TIMEOUT",
            "hub.steward.dev",
            [("problem".to_owned(), "no whole answer in time".to_owned())],
        );
        let status =
            tonic::Status::with_error_details(tonic::Code::DeadlineExceeded, "github did not deliver", details);
        let late = ClientError::from(status);
        let whole = "github did not deliver: no whole answer in time";
        assert_eq!(sentence(&late), whole, "the cause is said, not only its reason");
        assert_eq!(hints::with_cause(whole, &late), whole, "and once");
        let gate = refused(tonic::Code::PermissionDenied, "GATE_REFUSED", "skill.steward.dev");
        assert_eq!(gate.as_deref(), Some("unpin it first"), "a gate says itself what helps");
    }
}
