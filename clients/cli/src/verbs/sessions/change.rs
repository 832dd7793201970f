//! Changes of a conversation between two turns.

use anyhow::ensure;
use clap::Args;
use steward_client::ClientError;
use steward_proto::agent::v1 as pb;

use super::show;
use crate::connect::{Session, request_id};
use crate::output::Output;

/// Arguments of `steward sessions update`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Id or full name.
    session: String,
    /// New title; empty takes it away.
    #[arg(long)]
    title: Option<String>,
    /// Another model from the next turn on; `steward models list` shows which. The prompt is assembled anew.
    #[arg(long)]
    model: Option<String>,
    /// Only if the conversation is still as `sessions show --json` gave it.
    #[arg(long, default_value = "", hide_default_value = true)]
    etag: String,
}

/// Runs the verb.
pub(super) async fn run(arguments: Arguments, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    ensure!(
        arguments.title.is_some() || arguments.model.is_some(),
        "nothing to change: give --title, --model, or both"
    );
    let change = Change {
        title: arguments.title,
        model: arguments.model,
        etag: arguments.etag,
    };
    let answer = change.make(&session.session_name(&arguments.session), session).await?;
    output.answer(&answer, |output, answer| {
        if let Some(session) = &answer.session {
            show::session(output, session, false);
        }
    })
}

/// What is to be changed.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// New title.
    pub(crate) title: Option<String>,
    /// Another model.
    pub(crate) model: Option<String>,
    /// The state that is changed; empty for whatever it is.
    pub(crate) etag: String,
}

impl Change {
    /// Changes the session of this full name.
    pub(crate) async fn make(self, name: &str, session: &Session) -> Result<pb::UpdateSessionResponse, ClientError> {
        let mut paths = Vec::new();
        let mut wanted = pb::Session {
            name: name.to_owned(),
            etag: self.etag,
            ..pb::Session::default()
        };
        if let Some(title) = self.title {
            wanted.title = title;
            paths.push("title".to_owned());
        }
        if let Some(model) = self.model {
            wanted.model = model;
            paths.push("model".to_owned());
        }
        let request = pb::UpdateSessionRequest {
            session: Some(wanted),
            update_mask: Some(prost_types::FieldMask { paths }),
            request_id: request_id(),
            ..pb::UpdateSessionRequest::default()
        };
        session.client.sessions.update_session(request).await
    }
}
