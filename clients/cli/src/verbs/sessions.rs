//! `steward sessions`: list, show, messages, pending, stop.

use clap::Subcommand;
use steward_proto::agent::v1 as pb;

use crate::connect::Session;
use crate::output::{NAME, Output, SIDE, first_line, printable, short, time};

/// Verbs of `steward sessions`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List your conversations, most recently active first.
    List {
        /// At most this many.
        #[arg(long, default_value_t = 20)]
        limit: i32,
    },
    /// Show a conversation's settings and, with --prompt, the system prompt that was frozen with it.
    Show {
        /// Id or full name.
        session: String,
        /// Also print the system prompt.
        #[arg(long)]
        prompt: bool,
    },
    /// Print what was said.
    Messages {
        /// Id or full name.
        session: String,
    },
    /// List calls that wait for your client.
    Pending,
    /// Stop the running turn, or close one that waits.
    Stop {
        /// Id or full name.
        session: String,
    },
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let client = &session.client;
    match verb {
        Verb::List { limit } => {
            let request = pb::ListSessionsRequest {
                parent: session.user.clone(),
                page_size: limit,
                page_token: String::new(),
            };
            output.answer(&client.sessions.list_sessions(request).await?, show_list)
        }
        Verb::Show { session: name, prompt } => {
            let request = pb::GetSessionRequest {
                name: session.session_name(&name),
            };
            let answer = client.sessions.get_session(request).await?;
            output.answer(&answer, |output, answer| show(output, answer, prompt))
        }
        Verb::Messages { session: name } => messages(&session.session_name(&name), session, output).await,
        Verb::Pending => {
            let request = pb::ListPendingActionsRequest {
                parent: session.user.clone(),
            };
            output.answer(&client.agent.list_pending_actions(request).await?, show_pending)
        }
        Verb::Stop { session: name } => {
            let request = pb::InterruptTurnRequest {
                session: session.session_name(&name),
            };
            output.answer(&client.agent.interrupt_turn(request).await?, |output, answer| {
                output.line(if answer.turn.is_empty() {
                    "Nothing was running."
                } else {
                    "Stopped."
                });
            })
        }
    }
}

async fn messages(name: &str, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let mut request = pb::ListSessionMessagesRequest {
        parent: name.to_owned(),
        page_size: 0,
        page_token: String::new(),
    };
    // People read page by page; programs get one document.
    let mut whole = pb::ListSessionMessagesResponse::default();
    loop {
        let mut page = session.client.sessions.list_session_messages(request.clone()).await?;
        request.page_token = std::mem::take(&mut page.next_page_token);
        if output.is_json() {
            whole.messages.append(&mut page.messages);
        } else {
            show_messages(output, &page);
        }
        if request.page_token.is_empty() {
            break;
        }
    }
    if output.is_json() {
        output.answer(&whole, |_, _| {})?;
    }
    Ok(())
}

fn show_list(output: &mut Output, answer: &pb::ListSessionsResponse) {
    let rows = answer
        .sessions
        .iter()
        .map(|item| {
            let state = if item.open_turn.is_empty() { "" } else { "open" };
            vec![
                short(&item.name).to_owned(),
                time(item.last_active_time.as_ref()),
                item.last_seq.to_string(),
                state.to_owned(),
                first_line(&item.title, 60),
            ]
        })
        .collect();
    output.table(
        &["session", "last active", "messages", "turn", "title"],
        rows,
        "No conversations yet.",
    );
}

fn show(output: &mut Output, answer: &pb::GetSessionResponse, prompt: bool) {
    let Some(session) = &answer.session else { return };
    let usage = session.usage.unwrap_or_default();
    let tokens = |count: Option<u64>| count.map_or_else(|| "not reported".to_owned(), |count| count.to_string());
    let rows = vec![
        vec!["name".to_owned(), session.name.clone()],
        vec!["title".to_owned(), session.title.clone()],
        vec!["model".to_owned(), session.model.clone()],
        vec!["created".to_owned(), time(session.create_time.as_ref())],
        vec!["last active".to_owned(), time(session.last_active_time.as_ref())],
        vec!["messages".to_owned(), session.last_seq.to_string()],
        vec!["input tokens".to_owned(), tokens(usage.input_tokens)],
        vec!["of them cached".to_owned(), tokens(usage.cached_input_tokens)],
        vec!["output tokens".to_owned(), tokens(usage.output_tokens)],
        vec![
            "prefix breaks".to_owned(),
            format!("{} unplanned", session.unplanned_prefix_breaks),
        ],
        vec!["learned shown".to_owned(), session.exposures.len().to_string()],
    ];
    output.table(&["setting", "value"], rows, "");
    if prompt {
        output.line("");
        output.line(&printable(&session.system_prompt));
    }
}

fn show_messages(output: &mut Output, answer: &pb::ListSessionMessagesResponse) {
    for message in &answer.messages {
        let tools = if message.tools.is_empty() {
            String::new()
        } else {
            format!(" [{}]", message.tools.join(", "))
        };
        output.line(&format!(
            "{NAME}{:>4} {}{tools}{NAME:#} {SIDE}{}{SIDE:#}",
            message.seq,
            message.role,
            time(message.create_time.as_ref())
        ));
        if !message.text.is_empty() {
            output.line(&printable(&message.text));
        }
    }
}

fn show_pending(output: &mut Output, answer: &pb::ListPendingActionsResponse) {
    let rows = answer
        .actions
        .iter()
        .flat_map(|action| {
            action.calls.iter().map(|call| {
                vec![
                    short(&action.session).to_owned(),
                    call.tool.clone(),
                    first_line(&call.arguments_json, 60),
                ]
            })
        })
        .collect();
    output.table(&["session", "tool", "arguments"], rows, "Nothing waits for you.");
}
