//! Looks around one message.

use steward_base::names::SessionId;

use super::bounds::Budget;
use super::{Answer, Asker, MESSAGE_CHARS, Search};
use crate::error::Error;
use crate::message::{Message, Role};
use crate::store::{MessageRange, Taken, Visibility};

/// Which message, and how far around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scroll {
    /// The session.
    pub session: SessionId,
    /// The anchor.
    pub around_seq: u64,
    /// Messages on each side.
    pub window: u32,
    /// Only these roles.
    pub roles: Vec<Role>,
}

impl Search {
    /// The anchor and its neighbours that can be shown. The first or last number of the answer is the next anchor.
    pub async fn scroll(&self, asker: &Asker, scroll: &Scroll) -> Result<Answer, Error> {
        let session = self.readable(asker, &scroll.session).await?;
        let anchor = scroll.around_seq;
        let is_current = asker.current.as_ref() == Some(&session.id);
        let visibility = if is_current {
            Visibility::OutOfContext
        } else {
            Visibility::Searchable
        };
        let range = |from, to, taken, limit, roles: &[Role], visibility| MessageRange {
            from,
            to,
            visibility,
            roles: roles.to_vec(),
            taken,
            limit,
        };
        let store = &self.store;
        let found = store
            .messages(
                &asker.team,
                &session.id,
                &range(anchor, anchor, Taken::First, 1, &[], Visibility::Searchable),
            )
            .await?;
        let Some(found) = found.into_iter().next() else {
            return Err(Error::MessageNotFound {
                session: session.name(),
                seq: anchor,
            });
        };
        if is_current && !found.compacted {
            return Err(Error::InContext {
                session: session.name(),
            });
        }
        let before = range(
            0,
            anchor.saturating_sub(1),
            Taken::Last,
            scroll.window,
            &scroll.roles,
            visibility,
        );
        let after = range(
            anchor.saturating_add(1),
            u64::MAX,
            Taken::First,
            scroll.window,
            &scroll.roles,
            visibility,
        );
        let mut messages: Vec<Message> = store.messages(&asker.team, &session.id, &before).await?;
        if scroll.roles.is_empty() || scroll.roles.contains(&found.body.role) {
            messages.push(found);
        }
        messages.extend(store.messages(&asker.team, &session.id, &after).await?);
        let mut budget = Budget::new();
        let messages = budget.show_all(&messages, MESSAGE_CHARS);
        Ok(Answer {
            messages,
            truncated: budget.is_truncated(),
            ..Answer::default()
        })
    }
}
