//! Lists recent conversations, one per lineage.

use super::bounds::Budget;
use super::{Answer, Asker, CONTEXT_CHARS, Conversation, RecentQuery, Search};
use crate::error::Error;
use crate::message::Role;
use crate::store::{MessageRange, Taken, Visibility};

impl Search {
    /// The most recently active conversations, each with the person's first message. Demoted sources come last.
    pub async fn browse(&self, asker: &Asker, limit: usize) -> Result<Answer, Error> {
        let query = RecentQuery {
            asker: asker.clone(),
            limit,
        };
        let mut budget = Budget::new();
        let mut conversations = Vec::new();
        for session in self.store.recent(&query).await? {
            let first = MessageRange {
                from: 1,
                to: u64::MAX,
                visibility: Visibility::Searchable,
                roles: vec![Role::User],
                taken: Taken::First,
                limit: 1,
            };
            let opening = self.store.messages(&asker.team, &session.id, &first).await?;
            conversations.push(Conversation {
                session,
                hit: None,
                around: Vec::new(),
                opening: budget.show_all(&opening, CONTEXT_CHARS),
                closing: Vec::new(),
            });
        }
        Ok(Answer {
            conversations,
            truncated: budget.is_truncated(),
            ..Answer::default()
        })
    }
}
