//! A message that begins a turn: the session is read, or stands as its last turn here left it; the message is stored with
//! the turn's lease; and while it is stored, the first request is made ready.

use std::sync::Arc;

use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Append, Appended, Message, Opened, SessionKey, Turn, TurnState, TurnUpdate};
use steward_orchestrator_core::turn::{Beside as With, Closing, Event, UserMessage, title_of};
use steward_runtime::failpoint;

use super::Turns;
use super::beside::{Composed, has_provider, may_be_command};
use super::live::LiveTurn;
use super::ready::Ready;
use super::start::{Ask, Begun, Launch};
use crate::model::Chosen;

/// A session whose message is stored.
struct Stored {
    opened: Opened,
    fence: u64,
    ready: Option<Ready>,
}

impl Turns {
    pub(super) async fn begin_message(&self, ask: Ask, message: &UserMessage) -> Result<Begun, Error> {
        // Before the session is read: nothing begins in it here while its lock is held.
        let running = self.registry().running(&ask.key);
        if running.is_none()
            && let Some(stored) = self.store_as_kept(&ask, message).await
        {
            return self.begun(ask, stored).await;
        }
        let mut opened = self.open(&ask.person, &ask.key, &ask.request).await?;
        if let Some(turn) = opened.turn.take() {
            let first = opened.history.iter().find(|message| message.seq == turn.first_seq);
            // A message that is no longer in the context cannot be compared; its id is evidence enough.
            if first.is_some_and(|first| !message.is_stored_as(&first.body, &ask.person.user)) {
                return Err(Error::request_id_reused(&ask.request));
            }
            return self.take_up(ask, turn, opened, 0).await;
        }
        if let Some(live) = running {
            return Err(Error::TurnRunning {
                turn: live.id().to_owned(),
            });
        }
        let model = self.parts().models.for_turns(&opened.session.model)?;
        if let Some(open) = opened.session.open_turn.clone() {
            self.close_turn(&opened.session, &open, Closing::NewMessage).await?;
            opened = self.open(&ask.person, &ask.key, &ask.request).await?;
        }
        let composed = self
            .compose(&ask.person, &opened.session, &ask.request, message)
            .await?;
        let stored = match self.store_as_read(&ask, opened, &model, composed.clone()).await {
            // Another process was here in between, and its turn is over already.
            Err(Error::SessionChanged { .. }) => {
                let opened = self.open(&ask.person, &ask.key, &ask.request).await?;
                self.store_as_read(&ask, opened, &model, composed).await?
            }
            outcome => outcome?,
        };
        self.begun(ask, stored).await
    }

    /// The message is stored: the turn runs.
    async fn begun(&self, ask: Ask, stored: Stored) -> Result<Begun, Error> {
        let Stored { opened, fence, ready } = stored;
        let live = Arc::new(LiveTurn::new(ask.key.clone(), ask.request.clone(), Vec::new()));
        live.log().push(Event::Started { segment: 1 });
        if let Some(message) = opened.history.last() {
            self.after_message(&ask.person, &opened.session, &live, message);
        }
        let mut launch = Launch::new(live, new_turn(&ask.request), opened, fence);
        launch.ready = ready;
        self.launch(ask, launch).await
    }

    /// Stores the message on the session as it was after its last turn here, if nothing changed since, which recall decides
    /// in the transaction. `None`: the session is to be read, and whatever is wrong is found then.
    async fn store_as_kept(&self, ask: &Ask, message: &UserMessage) -> Option<Stored> {
        let opened = self.kept().take(&ask.key, self.parts().clock.now())?;
        let session = &opened.session;
        let is_own = ask.key.team == ask.person.team && session.user == ask.person.user;
        // What asks another service before the message is stored does so once, on what was read.
        let is_plain = !has_provider(session) && !may_be_command(&message.text);
        let is_new = opened.history.iter().all(|said| said.body.turn != ask.request);
        if !is_own || !is_plain || !is_new || session.etag.is_empty() {
            return None;
        }
        let model = self.parts().models.for_turns(&session.model).ok()?;
        let composed = Composed {
            message: message.stored(&ask.person.user, &ask.request, &With::default()).ok()?,
            exposures: Vec::new(),
        };
        // Under an id of its own. A turn of this id may have run elsewhere since, and be over: under the usual id, this would
        // be taken for its message once more and answered as such, before anything is compared.
        let request_id = format!("{}/on-{}/user", ask.request, session.etag);
        let append = Append {
            request_id,
            ..self.beginning(&opened, &ask.request, &composed)
        };
        match self.store_and_prepare(opened, &model, composed, append).await {
            Ok(stored) => Some(stored),
            Err(error) => {
                tracing::debug!(session.id = %ask.key.id, error.reason = steward_base::Fault::reason(&error), "the session is read after all");
                None
            }
        }
    }

    /// Stores the message on the session as it was read.
    async fn store_as_read(
        &self,
        ask: &Ask,
        opened: Opened,
        model: &Chosen,
        mut composed: Composed,
    ) -> Result<Stored, Error> {
        let shown = &opened.session.exposures;
        composed.exposures.retain(|exposure| !shown.contains(exposure));
        let append = self.beginning(&opened, &ask.request, &composed);
        self.store_and_prepare(opened, model, composed, append).await
    }

    /// What stores the message that begins a turn, together with the lease under which the turn runs.
    fn beginning(&self, opened: &Opened, turn: &str, composed: &Composed) -> Append {
        let session = &opened.session;
        let title = if session.title.is_empty() {
            title_of(&composed.message.text)
        } else {
            String::new()
        };
        Append {
            lease: Some(self.lease(turn)),
            expected_seq: session.last_seq,
            // What the turn's requests begin with is what was read.
            expected_etag: session.etag.clone(),
            request_id: format!("{turn}/user"),
            messages: vec![composed.message.clone()],
            turn: Some(TurnUpdate {
                id: turn.to_owned(),
                state: TurnState::Running,
                iterations: 0,
                segments: 1,
                error_reason: String::new(),
                error_message: String::new(),
            }),
            title,
            exposures: composed.exposures.clone(),
            ..Append::default()
        }
    }

    async fn store_and_prepare(
        &self,
        mut opened: Opened,
        model: &Chosen,
        composed: Composed,
        append: Append,
    ) -> Result<Stored, Error> {
        failpoint::hit("turn.user_message.before");
        let Composed { message, exposures } = composed;
        let turn = message.turn.clone();
        // The request is made ready while the store is at work: nothing of it is sent before the message is durable.
        let (appended, ready) = tokio::join!(self.append_with_lease(&opened.session.key, &turn, append), async {
            Ready::of(&opened, &message, model)
        });
        let appended = appended?;
        failpoint::hit("turn.user_message.after");
        let session = &mut opened.session;
        session.exposures.extend(exposures);
        session.last_seq = appended.last_seq;
        session.open_turn = Some(turn);
        opened.history.push(Message {
            seq: appended.last_seq,
            body: message,
            created: self.parts().clock.now(),
        });
        Ok(Stored {
            opened,
            fence: appended.fence,
            ready,
        })
    }

    async fn append_with_lease(&self, key: &SessionKey, turn: &str, append: Append) -> Result<Appended, Error> {
        match self.store().append(key, append.clone()).await {
            Err(Error::TurnRunning { .. }) => self.append_under_taken_lease(key, turn, append).await,
            outcome => outcome,
        }
    }

    /// The lease is held: by a turn of another process, or by one of this very service from before it was killed.
    async fn append_under_taken_lease(&self, key: &SessionKey, turn: &str, append: Append) -> Result<Appended, Error> {
        let fence = self.take_lease(key, turn).await?;
        let append = Append {
            fence,
            lease: None,
            ..append
        };
        let appended = self.store().append(key, append).await;
        if appended.is_err() {
            self.give_up_lease(key, fence).await;
        }
        appended
    }
}

fn new_turn(id: &str) -> Turn {
    Turn {
        id: id.to_owned(),
        state: TurnState::Running,
        first_seq: 0,
        last_seq: 0,
        iterations: 0,
        segments: 1,
        error_reason: String::new(),
        error_message: String::new(),
    }
}
