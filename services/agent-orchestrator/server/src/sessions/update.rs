//! `UpdateSession`: a title, another model, other client tools, between two turns. The last two assemble the prompt anew with
//! what is known now; the break of the prefix is planned and says why (`P-3`).

use serde_json::value::RawValue;
use steward_base::FieldViolations;
use steward_base::hash::sha256_hex;
use steward_model::parse_tools;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    Anew, ClientToolSpec, Exposure, KeptSetup, Session, SessionKey, SessionUpdate, check_client_tools, check_tool_names,
};

use super::{Assembly, Sessions, canonical, check_request_id, check_title, client_tools, stable_bytes, tool_list};
use crate::signer::Person;

/// What is to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The session as the caller read it; empty: however it is.
    pub(crate) etag: String,
    pub(crate) request_id: String,
    pub(crate) title: Option<String>,
    /// Empty: the one for turns.
    pub(crate) model: Option<String>,
    /// All client tools from now on.
    pub(crate) client_tools: Option<Vec<ClientToolSpec>>,
}

impl Change {
    fn check(&self) -> Result<(), Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&self.request_id, &mut violations);
        if let Some(title) = &self.title {
            check_title(title, &mut violations);
        }
        let tools = self.client_tools.as_deref().unwrap_or_default();
        check_client_tools("client_tools", tools, &mut violations);
        violations.into_result()?;
        check_tool_names(tools, steward_tools::is_builtin)
    }

    /// The same for the same request.
    fn fingerprint(&self) -> Result<String, Error> {
        let parts = (&self.etag, &self.title, &self.model, &self.client_tools);
        let parts = serde_json::to_vec(&parts).map_err(|error| Error::internal("write a request down", error))?;
        Ok(sha256_hex(&parts))
    }
}

impl Sessions {
    /// Changes a session. The same request id again changes nothing more.
    pub(crate) async fn update(&self, person: &Person, key: &SessionKey, change: Change) -> Result<Session, Error> {
        change.check()?;
        // No turn of this process begins in the meantime.
        let lock = self.locks.of(key);
        let _decided = lock.lock().await;
        let session = self.get(person, key).await?;
        let kept = KeptSetup::read(&session.setup)?;
        let fingerprint = change.fingerprint()?;
        if let Some(known) = kept.as_ref().and_then(|kept| kept.change(&change.request_id)) {
            return if known == fingerprint {
                Ok(session)
            } else {
                Err(Error::request_id_reused(&change.request_id))
            };
        }
        let model = change.model.as_deref().map(|model| self.models.for_turns(model));
        let model = model
            .transpose()?
            .map_or_else(|| session.model.clone(), |chosen| chosen.name);
        let known_tools = specs_of(&session)?;
        let tools = change.client_tools.clone().unwrap_or_else(|| known_tools.clone());
        let reason = if model != session.model {
            "model"
        } else if tools != known_tools {
            "tools"
        } else {
            return self.retitle(session, change).await;
        };
        check_idle(&session, &change.etag)?;
        let Some(mut kept) = kept else {
            return Err(Error::field(
                "session.name",
                "was made before sessions kept what their prompt comes from; begin a new one",
            ));
        };
        kept.remember(change.request_id.clone(), fingerprint);
        let anew = self.begin_anew(person, &session, reason, model, &tools, kept).await?;
        let update = SessionUpdate {
            // What was assembled belongs to the session as it was read here.
            etag: session.etag,
            request_id: change.request_id,
            title: change.title,
            anew: Some(anew),
        };
        let updated = self.store.update_session(key, update).await?;
        tracing::info!(session.id = %key.id, reason, "a session begins anew");
        Ok(updated)
    }

    async fn begin_anew(
        &self,
        person: &Person,
        session: &Session,
        reason: &'static str,
        model: String,
        client_specs: &[ClientToolSpec],
        mut kept: KeptSetup,
    ) -> Result<Anew, Error> {
        let provider = self.knowledge.provider(person, &session.key.id, &session.project);
        let offered = provider.await;
        kept.provider = offered.there;
        let setup = kept.write()?;
        let tools = tool_list(client_specs, &session.project, &offered.tools)?;
        let assembly = Assembly {
            key: &session.key,
            project: &session.project,
            model: &model,
            date: &session.created.date(),
            kept: &kept,
            tools: &tools,
            offered: &offered,
        };
        let (prompt, known) = self.assemble(person, assembly).await?;
        Ok(Anew {
            reason,
            system_prompt: prompt.text.to_string(),
            stable_prompt_bytes: stable_bytes(&prompt),
            model,
            tools_json: canonical(&tools)?,
            client_tools: client_tools(client_specs),
            exposures: with_opened(session, known.exposures),
            setup,
        })
    }

    /// Nothing of the prefix changes.
    async fn retitle(&self, session: Session, change: Change) -> Result<Session, Error> {
        if change.title.is_none() {
            check_idle(&session, &change.etag)?;
            return Ok(session);
        }
        let update = SessionUpdate {
            etag: change.etag,
            request_id: change.request_id,
            title: change.title,
            anew: None,
        };
        self.store.update_session(&session.key, update).await
    }
}

fn check_idle(session: &Session, etag: &str) -> Result<(), Error> {
    if let Some(turn) = &session.open_turn {
        return Err(Error::TurnRunning { turn: turn.clone() });
    }
    if etag.is_empty() || etag == session.etag {
        return Ok(());
    }
    Err(Error::SessionChanged {
        session: session.key.name(),
        expected: etag.to_owned(),
        current: session.etag.clone(),
    })
}

/// The client tools of a session, read back from its tool list.
fn specs_of(session: &Session) -> Result<Vec<ClientToolSpec>, Error> {
    let tools = parse_tools(&session.tools_json).map_err(|error| Error::internal("read a session's tools", error))?;
    let specs = session.client_tools.iter().filter_map(|client| {
        let tool = tools.iter().find(|tool| tool.name == client.name)?;
        Some(ClientToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: RawValue::get(&tool.input_schema).to_owned(),
            integrity: Some(client.integrity),
        })
    });
    Ok(specs.collect())
}

/// What the new beginning shows, and what was opened in the session before: it stands in messages that stay.
fn with_opened(session: &Session, mut shown: Vec<Exposure>) -> Vec<Exposure> {
    for before in &session.exposures {
        if before.stage == "loaded" && !shown.contains(before) {
            shown.push(before.clone());
        }
    }
    shown
}
