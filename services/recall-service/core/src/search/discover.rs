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
        let (hits, run) = self.hits_or_wider(wanted).await?;
        let widened = hits.iter().any(|(_, query)| query == &run) && run.is_widening();
        let mut budget = Budget::new();
        let mut conversations = Vec::with_capacity(hits.len());
        for (hit, query) in hits {
            if let Some(conversation) = self.show(asker, hit, query.query(), &mut budget).await? {
                conversations.push(conversation);
            }
        }
        let expression = run.query().to_match();
        Ok(Answer {
            conversations,
            widened,
            expression,
            truncated: budget.is_truncated(),
            ..Answer::default()
        })
    }

    /// Hits for all words, filled up by hits for any word where that finds too little and the caller did not say
    /// otherwise (`Q-8`). Each hit comes with the query that found it.
    async fn hits_or_wider(&self, wanted: HitQuery) -> Result<(Vec<(Hit, Run)>, Run), Error> {
        let exact = self.store.hits(&wanted).await?;
        let run = Run::AsTyped(wanted.query.clone());
        let too_few = exact.is_empty() || (wanted.query.is_plain_list() && exact.len() < wanted.limit);
        let wider = wanted.query.widened().filter(|_| too_few);
        let mut hits: Vec<(Hit, Run)> = exact.into_iter().map(|hit| (hit, run.clone())).collect();
        let Some(wider) = wider else { return Ok((hits, run)) };
        let limit = wanted.limit;
        let more = HitQuery {
            query: wider.clone(),
            limit: limit + hits.len(),
            ..wanted
        };
        let run = Run::Widened(wider);
        for hit in self.store.hits(&more).await? {
            if hits.len() < limit && hits.iter().all(|(known, _)| known.root != hit.root) {
                hits.push((hit, run.clone()));
            }
        }
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
        let is_current = asker.current.as_ref() == Some(&hit.session);
        let range = |from: u64, to: u64, taken: Taken, limit: u32| MessageRange {
            from,
            to,
            visibility: Visibility::Searchable,
            roles: Vec::new(),
            taken,
            limit,
        };
        let (from, to) = (hit.seq.saturating_sub(AROUND), hit.seq.saturating_add(AROUND));
        let mut around = self
            .store
            .messages(&asker.team, &hit.session, &range(from, to, Taken::First, u32::MAX))
            .await?;
        let mut opening = self
            .store
            .messages(&asker.team, &hit.session, &range(1, end, Taken::First, BOOKEND))
            .await?;
        let mut closing = self
            .store
            .messages(&asker.team, &hit.session, &range(1, end, Taken::Last, BOOKEND))
            .await?;
        if is_current {
            // What is in context already is not repeated.
            for part in [&mut around, &mut opening, &mut closing] {
                part.retain(|message| message.compacted);
            }
        }
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

/// A query and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Run {
    AsTyped(Query),
    Widened(Query),
}

impl Run {
    fn query(&self) -> &Query {
        match self {
            Self::AsTyped(query) | Self::Widened(query) => query,
        }
    }

    fn is_widening(&self) -> bool {
        matches!(self, Self::Widened(_))
    }
}

/// From what was said; from tool text where only that matches.
fn best_snippet(message: &Message, query: &Query) -> String {
    let said = snippet(message.said_text(), query);
    if said.contains(super::MATCH_START) || message.tool_text().is_empty() {
        return said;
    }
    snippet(&message.tool_text(), query)
}
