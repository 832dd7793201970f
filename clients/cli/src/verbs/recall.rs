//! `steward recall`: search, read, browse, around, check, backup, restore. Answers are what was said, word for word.

mod backups;

use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use steward_base::{Clock as _, SystemClock};
use steward_proto::recall::v1 as pb;
use steward_proto::recall::v1::search_request::Shape;

use crate::Said;
use crate::connect::Session;
use crate::fault::at_least_one;
use crate::output::{Cell, NAME, NOTICE, Output, SIDE, first_line, parse_time, printable, short, time, word};

/// Order of what is found.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Sort {
    /// Best match first.
    Relevance,
    /// Newest first.
    Newest,
    /// Oldest first.
    Oldest,
}

/// Who spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

impl From<Role> for i32 {
    fn from(role: Role) -> Self {
        match role {
            Role::User => pb::MessageRole::User,
            Role::Assistant => pb::MessageRole::Assistant,
            Role::Tool => pb::MessageRole::Tool,
        }
        .into()
    }
}

/// How a conversation came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// A person talked to the agent.
    Chat,
    /// A schedule ran it.
    Schedule,
    /// It was imported.
    Import,
}

impl From<Source> for i32 {
    fn from(source: Source) -> Self {
        match source {
            Source::Chat => pb::SessionSource::Chat,
            Source::Schedule => pb::SessionSource::Schedule,
            Source::Import => pb::SessionSource::Import,
        }
        .into()
    }
}

/// Verbs of `steward recall`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Find conversations by words; quotes, AND OR NOT and prefix* work.
    Search {
        /// What to look for.
        #[arg(required = true)]
        query: Vec<String>,
        /// At most this many conversations.
        #[arg(long, default_value_t = 3, value_parser = at_least_one::<i32>)]
        limit: i32,
        /// Order.
        #[arg(long, value_enum, default_value_t = Sort::Relevance)]
        sort: Sort,
        /// Only what this one said. May be repeated.
        #[arg(long, value_enum)]
        role: Vec<Role>,
        /// Only conversations that came to be so. May be repeated.
        #[arg(long, value_enum)]
        source: Vec<Source>,
        /// From this time on: 2026-11-30, 2026-11-30T08:15:00Z, or how long ago, such as 7d.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Before this time.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// Show more of what stands around a hit, and how each conversation begins and ends.
        #[arg(long)]
        full: bool,
    },
    /// Read a conversation from a message on.
    Read {
        /// Id or full name of the session.
        session: String,
        /// First message.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// At most this many messages.
        #[arg(long, default_value_t = 50, value_parser = at_least_one::<i32>)]
        limit: i32,
    },
    /// List recent conversations.
    Browse {
        /// At most this many.
        #[arg(long, default_value_t = 10, value_parser = at_least_one::<i32>)]
        limit: i32,
    },
    /// Look around one message.
    Around {
        /// Id or full name of the session.
        session: String,
        /// Number of the message.
        seq: u64,
        /// Messages before and after it.
        #[arg(long, default_value_t = 5, value_parser = at_least_one::<i32>)]
        window: i32,
        /// Only what this one said. May be repeated.
        #[arg(long, value_enum)]
        role: Vec<Role>,
    },
    /// Write a checked copy of the team's conversations to the server's folder for backups (admins).
    Backup,
    /// List the backups of the team, newest first (admins).
    Backups {
        /// At most this many.
        #[arg(long, default_value_t = 20, value_parser = at_least_one::<usize>)]
        limit: usize,
    },
    /// Put a backup in the place of the team's conversations (admins). What is there now is set aside as a backup.
    Restore {
        /// Id or full name of the backup.
        backup: String,
        /// Do not ask first.
        #[arg(long, short)]
        yes: bool,
    },
    /// Check the team's index against its rows (admins); exit code 1 when they disagree.
    Check {
        /// Build the index anew from the rows first.
        #[arg(long)]
        rebuild: bool,
    },
}

/// A check reads a team's whole file.
const CHECK_PATIENCE: Duration = Duration::from_mins(10);

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let mut whole = false;
    let shape = match verb {
        Verb::Backup => return backups::backup(session, output).await,
        Verb::Backups { limit } => return backups::list(limit, session, output).await,
        Verb::Restore { backup, yes } => return backups::restore(&backup, yes, session, output).await,
        Verb::Check { rebuild } => return check(rebuild, session, output).await,
        Verb::Search {
            query,
            limit,
            sort,
            role,
            source,
            since,
            until,
            full,
        } => {
            whole = full;
            let sort = match sort {
                Sort::Relevance => pb::SearchSort::Relevance,
                Sort::Newest => pb::SearchSort::Newest,
                Sort::Oldest => pb::SearchSort::Oldest,
            };
            let query = query.join(" ");
            Shape::Discover(pb::Discover {
                query,
                limit,
                sort: sort.into(),
                roles: role.into_iter().map(Into::into).collect(),
                sources: source.into_iter().map(Into::into).collect(),
                after: at(since.as_deref())?,
                before: at(until.as_deref())?,
            })
        }
        Verb::Read {
            session: name,
            from,
            limit,
        } => Shape::Read(pb::Read {
            session: session.session_name(&name),
            from_seq: from,
            limit,
        }),
        Verb::Browse { limit } => Shape::Browse(pb::Browse { limit }),
        Verb::Around {
            session: name,
            seq,
            window,
            role,
        } => Shape::Scroll(pb::Scroll {
            session: session.session_name(&name),
            around_seq: seq,
            window,
            roles: role.into_iter().map(Into::into).collect(),
        }),
    };
    let request = pb::SearchRequest {
        parent: session.user.clone(),
        shape: Some(shape),
        current_session: String::new(),
    };
    let answer = session.client.recall.search(request).await?;
    output.answer(&answer, |output, answer| show(output, answer, whole))?;
    // Nothing was found, and nobody knows whether there is something.
    if found_nothing(&answer) && !answer.incomplete.is_empty() {
        return Err(Said.into());
    }
    Ok(())
}

fn found_nothing(answer: &pb::SearchResponse) -> bool {
    answer.conversations.is_empty() && answer.messages.is_empty()
}

fn at(given: Option<&str>) -> anyhow::Result<Option<prost_types::Timestamp>> {
    let parsed = given.map(|given| parse_time(given, SystemClock.now())).transpose();
    Ok(parsed?)
}

async fn check(rebuild: bool, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::CheckIntegrityRequest {
        parent: session.team.clone(),
        rebuild,
    };
    let store = session.client.store.clone().with_timeout(Some(CHECK_PATIENCE));
    output.progress("reading the team's messages");
    let answer = store.check_integrity(request).await;
    output.progress("");
    let answer = answer?;
    output.answer(&answer, |output, answer| {
        for problem in &answer.problems {
            output.line(&printable(problem));
        }
        if answer.consistent {
            output.line(&format!("The index agrees with its {} messages.", answer.messages));
        } else {
            output.aside("`steward recall check --rebuild` builds the index anew");
        }
    })?;
    if answer.consistent { Ok(()) } else { Err(Said.into()) }
}

fn show(output: &mut Output, answer: &pb::SearchResponse, whole: bool) {
    for conversation in &answer.conversations {
        show_conversation(output, conversation, whole);
    }
    for message in &answer.messages {
        show_message(output, message);
    }
    if found_nothing(answer) {
        output.line(if answer.incomplete.is_empty() {
            "Nothing found."
        } else {
            "Nothing found in what could be searched."
        });
    }
    if answer.widened {
        output.aside("No conversation has all the words; these have some of them.");
    }
    if !answer.incomplete.is_empty() {
        output.warn(&format!("Incomplete: {}.", printable(&answer.incomplete)));
    }
    if answer.truncated {
        output.aside("The answer was cut to its bound.");
    }
    if answer.next_seq > 0 {
        output.aside(&format!("More: --from {}", answer.next_seq));
    }
}

fn show_conversation(output: &mut Output, conversation: &pb::Conversation, whole: bool) {
    let title = if conversation.title.is_empty() {
        String::new()
    } else {
        format!(" {}", conversation.title)
    };
    output.line(&format!(
        "{NAME}{}{NAME:#}{} {SIDE}{} {}{SIDE:#}",
        short(&conversation.session),
        printable(&title),
        time(conversation.last_active_time.as_ref()),
        word(conversation.source().as_str_name(), "SESSION_SOURCE_"),
    ));
    // A hit stands between the messages next to it; what is nearer says more.
    let around = |output: &mut Output, wanted: &dyn Fn(u64) -> bool| {
        for message in conversation.around.iter().filter(|message| wanted(message.seq)) {
            output.line(&format!("{SIDE}  {}{SIDE:#}", summary(message)));
        }
    };
    let hit = conversation.hit.as_ref().map_or(0, |hit| hit.seq);
    let near = |seq: u64| whole || seq.abs_diff(hit) <= 1;
    if whole {
        ends(output, "begins", &conversation.opening);
    }
    around(output, &|seq| seq < hit && near(seq));
    if let Some(hit) = &conversation.hit {
        output.line(&format!("  {NAME}#{}{NAME:#} {}", hit.seq, highlighted(&hit.snippet)));
    } else if !whole {
        for message in conversation.opening.iter().take(1) {
            output.line(&format!("{SIDE}  {}{SIDE:#}", summary(message)));
        }
    }
    around(output, &|seq| seq > hit && near(seq));
    if whole {
        ends(output, "ends", &conversation.closing);
    }
}

fn ends(output: &mut Output, word: &str, messages: &[pb::RecalledMessage]) {
    let rows = messages
        .iter()
        .map(|message| vec![Cell::side(word), Cell::side(summary(message))]);
    if !messages.is_empty() {
        output.table(&["", ""], rows.collect(), "");
    }
}

fn show_message(output: &mut Output, message: &pb::RecalledMessage) {
    let role = word(message.role().as_str_name(), "MESSAGE_ROLE_");
    let tools = if message.tools.is_empty() {
        String::new()
    } else {
        format!(" [{}]", message.tools.join(", "))
    };
    output.line(&format!(
        "{NAME}{:>4} {role}{}{NAME:#} {SIDE}{}{SIDE:#}",
        message.seq,
        printable(&tools),
        time(message.create_time.as_ref())
    ));
    output.line(&printable(&message.text));
    let shown = message.text.chars().count() as u64;
    if message.text_chars > shown {
        output.aside(&format!("cut: {shown} of {} characters", message.text_chars));
    }
}

/// The server marks matches with two private-use characters.
fn highlighted(snippet: &str) -> String {
    printable(&snippet.replace('\n', " "))
        .replace('\u{e000}', &NOTICE.render().to_string())
        .replace('\u{e001}', &NOTICE.render_reset().to_string())
}

fn summary(message: &pb::RecalledMessage) -> String {
    let role = word(message.role().as_str_name(), "MESSAGE_ROLE_");
    let text = first_line(&printable(&message.text), 100);
    if text.is_empty() && !message.tools.is_empty() {
        // Words are missing where tools were called only.
        return format!("{} {role} [{}]", message.seq, printable(&message.tools.join(", ")));
    }
    format!("{} {role}: {text}", message.seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_only_calls_tools_is_shown_by_their_names() {
        let mut message = pb::RecalledMessage {
            seq: 2,
            role: pb::MessageRole::Assistant.into(),
            tools: vec!["memory".to_owned(), "shell".to_owned()],
            ..pb::RecalledMessage::default()
        };
        assert_eq!(summary(&message), "2 assistant [memory, shell]");
        "Done.".clone_into(&mut message.text);
        assert_eq!(summary(&message), "2 assistant: Done.");
    }
}
