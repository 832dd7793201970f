//! `steward recall`: search, read, browse, around, check. Answers are what was said, word for word.

use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use steward_proto::recall::v1 as pb;
use steward_proto::recall::v1::search_request::Shape;

use crate::Said;
use crate::connect::Session;
use crate::output::{NAME, NOTICE, Output, SIDE, first_line, printable, short, time, word};

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

/// Verbs of `steward recall`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Find conversations by words; quotes, AND OR NOT and prefix* work.
    Search {
        /// What to look for.
        query: Vec<String>,
        /// At most this many conversations.
        #[arg(long, default_value_t = 3)]
        limit: i32,
        /// Order.
        #[arg(long, value_enum, default_value_t = Sort::Relevance)]
        sort: Sort,
    },
    /// Read a conversation from a message on.
    Read {
        /// Id or full name of the session.
        session: String,
        /// First message.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// At most this many messages.
        #[arg(long, default_value_t = 0)]
        limit: i32,
    },
    /// List recent conversations.
    Browse {
        /// At most this many.
        #[arg(long, default_value_t = 10)]
        limit: i32,
    },
    /// Look around one message.
    Around {
        /// Id or full name of the session.
        session: String,
        /// Number of the message.
        seq: u64,
        /// Messages before and after it.
        #[arg(long, default_value_t = 5)]
        window: i32,
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
    let shape = match verb {
        Verb::Check { rebuild } => return check(rebuild, session, output).await,
        Verb::Search { query, limit, sort } => {
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
                ..pb::Discover::default()
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
        } => Shape::Scroll(pb::Scroll {
            session: session.session_name(&name),
            around_seq: seq,
            window,
            roles: Vec::new(),
        }),
    };
    let request = pb::SearchRequest {
        parent: session.user.clone(),
        shape: Some(shape),
        current_session: String::new(),
    };
    output.answer(&session.client.recall.search(request).await?, show)
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

fn show(output: &mut Output, answer: &pb::SearchResponse) {
    for conversation in &answer.conversations {
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
        if let Some(hit) = &conversation.hit {
            output.line(&format!("  #{} {}", hit.seq, highlighted(&hit.snippet)));
        }
        for message in conversation.around.iter().chain(&conversation.opening).take(3) {
            output.aside(&format!("    {}", summary(message)));
        }
    }
    for message in &answer.messages {
        let role = word(message.role().as_str_name(), "MESSAGE_ROLE_");
        output.line(&format!("{NAME}{:>4} {role}{NAME:#}", message.seq));
        output.line(&printable(&message.text));
        let shown = message.text.chars().count() as u64;
        if message.text_chars > shown {
            output.aside(&format!("cut: {shown} of {} characters", message.text_chars));
        }
    }
    if answer.conversations.is_empty() && answer.messages.is_empty() {
        output.line("Nothing found.");
    }
    if answer.widened {
        output.aside("No conversation has all the words; these have some of them.");
    }
    if answer.truncated {
        output.aside("The answer was cut to its bound.");
    }
    if answer.next_seq > 0 {
        output.aside(&format!("More: --from {}", answer.next_seq));
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
    format!("{} {role}: {}", message.seq, first_line(&printable(&message.text), 100))
}
