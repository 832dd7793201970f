//! Finds conversations by words (`Q-3` to `Q-10`).

use steward_base::Timestamp;

use super::bounds::Budget;
use super::{Answer, Asker, CONTEXT_CHARS, Conversation, FoundHit, Hit, HitQuery, Search, Sort, snippet};
use crate::error::Error;
use crate::message::{Message, Role};
use crate::query::{MAX_QUERY, Query};
use crate::session::{Frozen, SessionSource};
use crate::store::{MessageRange, Taken, Visibility};

/// Messages shown on each side of a hit.
const AROUND: u64 = 5;
/// Messages shown from each end of a session.
const BOOKEND: u32 = 3;

/// A question in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discover {
    /// What was typed.
    pub query: String,
    /// At most this many conversations.
    pub limit: usize,
    /// Order.
    pub sort: Sort,
    /// Only hits of these roles; empty means all.
    pub roles: Vec<Role>,
    /// Only sessions of these sources; empty means all that are not hidden. Hidden ones are never shown.
    pub sources: Vec<SessionSource>,
    /// Only messages from this time on.
    pub after: Option<Timestamp>,
    /// Only messages before this time.
    pub before: Option<Timestamp>,
}

impl Search {
    /// Finds conversations. A text in which nothing can be searched for finds none.
    pub async fn discover(&self, asker: &Asker, discover: Discover) -> Result<Answer, Error> {
        if discover.query.chars().count() > MAX_QUERY {
            return Err(Error::field(
                "discover.query",
                format!("must have at most {MAX_QUERY} characters"),
            ));
        }
        let Some(query) = Query::parse(&discover.query) else {
            return Ok(Answer::default());
        };
        let sources = match discover.sources {
            sources if sources.is_empty() => SessionSource::visible(),
            sources => sources.into_iter().filter(|source| !source.is_hidden()).collect(),
        };
        let wanted = HitQuery {
            asker: asker.clone(),
            query,
            roles: discover.roles,
            sources,
            after: discover.after,
            before: discover.before,
            sort: discover.sort,
            limit: discover.limit,
        };
        let as_typed = wanted.query.clone();
        let (hits, run) = self.hits_or_wider(wanted).await?;
        let widened = hits.iter().any(|(_, query)| *query != as_typed);
        let mut budget = Budget::new();
        let mut conversations = Vec::with_capacity(hits.len());
        for (hit, query) in hits {
            if let Some(conversation) = self.show(asker, hit, &query, &mut budget).await? {
                conversations.push(conversation);
            }
        }
        Ok(Answer {
            conversations,
            widened,
            expression: run.to_match(),
            truncated: budget.is_truncated(),
            ..Answer::default()
        })
    }

    /// Hits for all words, filled up step by step by hits for any word where that finds too little and the caller did not
    /// say otherwise (`Q-8`). Each hit comes with the query that found it; the widest of them comes too.
    async fn hits_or_wider(&self, mut wanted: HitQuery) -> Result<(Vec<(Hit, Query)>, Query), Error> {
        let as_typed = wanted.query.clone();
        let limit = wanted.limit;
        let exact = self.store.hits(&wanted).await?;
        let too_few = exact.is_empty() || (as_typed.is_plain_list() && exact.len() < limit);
        let mut hits: Vec<(Hit, Query)> = exact.into_iter().map(|hit| (hit, as_typed.clone())).collect();
        for wider in as_typed.widened() {
            if !too_few || hits.len() >= limit {
                break;
            }
            wanted.query = wider;
            wanted.limit = limit + hits.len();
            for hit in self.store.hits(&wanted).await? {
                if hits.len() < limit && hits.iter().all(|(known, _)| known.root != hit.root) {
                    hits.push((hit, wanted.query.clone()));
                }
            }
        }
        let run = hits.last().map_or(wanted.query, |(_, query)| query.clone());
        Ok((hits, run))
    }

    async fn show(
        &self,
        asker: &Asker,
        hit: Hit,
        query: &Query,
        budget: &mut Budget,
    ) -> Result<Option<Conversation>, Error> {
        let Some(mut session) = self.store.session(&asker.team, &hit.session).await? else {
            return Ok(None);
        };
        session.frozen = Frozen::default();
        let end = session.last_seq;
        // Of the current session, what is in context already is not repeated.
        let visibility = if asker.current.as_ref() == Some(&hit.session) {
            Visibility::OutOfContext
        } else {
            Visibility::Searchable
        };
        let range = |from: u64, to: u64, taken: Taken, limit: u32| MessageRange {
            from,
            to,
            visibility,
            roles: Vec::new(),
            taken,
            limit,
        };
        let messages = async |range| self.store.messages(&asker.team, &hit.session, &range).await;
        let (from, to) = (hit.seq.saturating_sub(AROUND), hit.seq.saturating_add(AROUND));
        let around = messages(range(from, to, Taken::First, u32::MAX)).await?;
        let opening = messages(range(1, end, Taken::First, BOOKEND)).await?;
        let closing = messages(range(1, end, Taken::Last, BOOKEND)).await?;
        // A rewind may have come between finding and showing.
        let Some(found) = around.iter().find(|message| message.seq == hit.seq) else {
            return Ok(None);
        };
        let snippet = best_snippet(found, query);
        let hit = FoundHit {
            seq: hit.seq,
            snippet,
            score: hit.score,
            integrity: found.integrity,
        };
        Ok(Some(Conversation {
            session,
            hit: Some(hit),
            around: budget.show_all(&around, CONTEXT_CHARS),
            opening: budget.show_all(&opening, CONTEXT_CHARS),
            closing: budget.show_all(&closing, CONTEXT_CHARS),
        }))
    }
}

/// From what was said; from tool text where only that matches.
fn best_snippet(message: &Message, query: &Query) -> String {
    let said = snippet(message.said_text(), query);
    let tool = message.tool_text();
    if said.contains(super::MATCH_START) || tool.is_empty() {
        said
    } else {
        snippet(&tool, query)
    }
}
