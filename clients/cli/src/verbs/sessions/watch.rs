//! A turn that runs, seen from beside it: followed, or told something.

use anyhow::{anyhow, bail};
use steward_client::ErrorOrigin;
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::run_turn_request::Input;
use steward_proto::agent::v1::turn_event::Event;

use crate::chat::events::{Cursor, End};
use crate::connect::{Session, request_id};
use crate::output::{Output, counted, short};

/// How often a broken stream is taken up again.
const REATTACH: u32 = 5;

/// Shows a turn from its first event to the end of its segment.
pub(super) async fn follow(
    name: &str,
    turn: Option<String>,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let turn = match turn {
        Some(turn) => turn,
        None => open_turn(name, session).await?,
    };
    let mut cursor = Cursor::new();
    let mut broken = 0;
    loop {
        let request = pb::WatchTurnRequest {
            session: name.to_owned(),
            turn: turn.clone(),
            after_event: 0,
        };
        cursor.attach();
        let mut stream = session.client.agent.watch_turn(request).await?;
        loop {
            match stream.message().await {
                Ok(Some(item)) => {
                    let Some(event) = item.event else { continue };
                    match cursor.take(event, output)? {
                        None => {}
                        Some(End::Completed(_)) => return Ok(()),
                        Some(End::Calls(calls)) => {
                            output.aside(&format!(
                                "waits for {}; `steward chat --session {}` answers",
                                counted(calls.len(), "call"),
                                short(name)
                            ));
                            return Ok(());
                        }
                    }
                }
                Ok(None) => bail!("the server ended the stream without an end of the turn"),
                Err(error) if error.origin == ErrorOrigin::Transport && broken < REATTACH => {
                    broken += 1;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

async fn open_turn(name: &str, session: &Session) -> anyhow::Result<String> {
    let request = pb::GetSessionRequest { name: name.to_owned() };
    let answer = session.client.sessions.get_session(request).await?;
    let turn = answer.session.map(|session| session.open_turn).unwrap_or_default();
    if turn.is_empty() {
        bail!("no turn is open in this session; `steward sessions messages` prints what was said");
    }
    Ok(turn)
}

/// Says something to the running turn, and waits until it was heard.
pub(super) async fn steer(name: &str, text: String, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let message = pb::UserMessage {
        text,
        attachments: Vec::new(),
    };
    let request = pb::RunTurnRequest {
        session: name.to_owned(),
        request_id: request_id(),
        input: Some(Input::UserMessage(message)),
        steer: true,
    };
    let mut stream = session.client.agent.run_turn(request).await?;
    // The stream begins when the server has taken the text.
    output.aside("said; the model hears it with its next call");
    while let Some(item) = stream.message().await? {
        if let Some(event) = item.event
            && let Some(Event::Steered(_)) = &event.event
        {
            return output.item(&event, |output, _| output.line("Heard."));
        }
    }
    Err(anyhow!(
        "the turn ended before its next model call and did not hear it; say it with `steward chat --session {}`",
        short(name)
    ))
}
