//! One session in memory, with what belongs to it.

use std::collections::HashMap;

use steward_base::Timestamp;

use super::is_visible;
use crate::append_messages::{ANSWER_RETENTION, Appended, RequestKey};
use crate::error::Error;
use crate::get_session::MessagePage;
use crate::message::Message;
use crate::session::Session;
use crate::store::MessageRange;
use crate::turn::Turn;

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) session: Session,
    pub(super) messages: Vec<Message>,
    pub(super) turns: HashMap<String, Turn>,
    pub(super) answers: HashMap<String, Answered>,
}

/// The first answer to a request.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) hash: String,
    /// `None`: the request changed the session and is answered with it.
    pub(super) appended: Option<Appended>,
    pub(super) at: Timestamp,
}

impl Kept {
    /// The answer that was given to this request before.
    pub(super) fn first_answer(&mut self, request: &RequestKey, now: Timestamp) -> Result<Option<&Answered>, Error> {
        self.answers
            .retain(|_, answered| answered.at > now.minus(ANSWER_RETENTION));
        let answered = self.answers.get(&request.id);
        if let Some(answered) = answered {
            same_request(&answered.hash, request)?;
        }
        Ok(answered)
    }

    pub(super) fn keep_answer(&mut self, request: RequestKey, appended: Option<Appended>, at: Timestamp) {
        let hash = request.hash;
        self.answers.insert(request.id, Answered { hash, appended, at });
    }

    /// In the order of their positions.
    pub(super) fn in_range(&self, range: &MessageRange) -> Vec<&Message> {
        let asked_for = self
            .messages
            .iter()
            .filter(|message| (range.from..=range.to).contains(&range.position(message)))
            .filter(|message| is_visible(message, range.visibility))
            .filter(|message| range.roles.is_empty() || range.roles.contains(&message.body.role));
        let mut found: Vec<&Message> = asked_for.collect();
        found.sort_by_key(|message| range.position(message));
        found
    }

    pub(super) fn page(&self, range: &MessageRange) -> MessagePage {
        let mut page = MessagePage::default();
        for message in self.in_range(range) {
            if page.offer(range, message.clone()).is_break() {
                break;
            }
        }
        page
    }

    pub(super) fn open_turn(&self) -> Option<&Turn> {
        self.session.open_turn.as_ref().and_then(|turn| self.turns.get(turn))
    }
}

pub(super) fn same_request(known: &str, request: &RequestKey) -> Result<(), Error> {
    if known == request.hash {
        Ok(())
    } else {
        Err(Error::request_id_reused(&request.id))
    }
}
