//! Finds conversations by words (`Q-3` to `Q-10`).

use std::ops::RangeInclusive;

use steward_base::Timestamp;
use steward_base::names::TeamId;

use super::bounds::Budget;
use super::rank::{DEPTH, WIDE_DEPTH};
use super::{
    Answer, Asker, CONTEXT_CHARS, Conversation, FoundHit, Hit, HitQuery, Look, Search, Snapshot, Sort, Surroundings,
    snippet,
};
use crate::error::Error;
use crate::message::{Message, Role};
use crate::query::{MAX_QUERY, Query};
use crate::session::SessionSource;
use crate::store::Visibility;

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
            depth: DEPTH,
        };
        self.store.discover(Question(wanted)).await
    }
}

/// What a store is asked, which answers it from what is there at one moment.
#[derive(Debug, Clone)]
pub struct Question(HitQuery);

impl Question {
    /// Whose sessions are searched.
    pub const fn team(&self) -> &TeamId {
        &self.0.asker.team
    }

    /// Finds conversations, and reads what is shown of them.
    pub fn answer(&self, at: &dyn Snapshot) -> Result<Answer, Error> {
        let Self(wanted) = self;
        let Found { hits, queries } = hits_or_wider(at, wanted)?;
        let looks: Vec<Look> = hits.iter().map(|(hit, _)| look(&wanted.asker, hit)).collect();
        let seen = at.look(self.team(), &looks)?;
        let mut budget = Budget::new();
        let mut conversations = Vec::with_capacity(hits.len());
        for ((hit, query), seen) in hits.iter().zip(seen) {
            conversations.extend(seen.and_then(|seen| show(hit, seen, &queries[*query], &mut budget)));
        }
        // The widest that found something; if nothing was found, the widest there is.
        let run = hits.last().map_or(queries.last(), |(_, query)| queries.get(*query));
        Ok(Answer {
            conversations,
            widened: hits.iter().any(|(_, query)| *query > 0),
            expression: run.unwrap_or(&wanted.query).to_text(),
            truncated: budget.is_truncated(),
            ..Answer::default()
        })
    }
}

/// Hits, each with the place of the query that found it.
struct Found {
    hits: Vec<(Hit, usize)>,
    /// As typed, then wider and wider.
    queries: Vec<Query>,
}

/// Hits for all words, filled up step by step by hits for any word where that finds too little and the caller did not
/// say otherwise (`Q-8`).
fn hits_or_wider(at: &dyn Snapshot, asked: &HitQuery) -> Result<Found, Error> {
    let (as_typed, limit) = (&asked.query, asked.limit);
    let exact = at.hits(asked)?;
    let too_few = exact.is_empty() || (as_typed.is_plain_list() && exact.len() < limit);
    let mut found = Found {
        hits: exact.into_iter().map(|hit| (hit, 0)).collect(),
        queries: vec![as_typed.clone()],
    };
    if !too_few {
        return Ok(found);
    }
    let mut wanted = asked.clone();
    wanted.depth = WIDE_DEPTH;
    for wider in as_typed.widened() {
        if found.hits.len() >= limit {
            break;
        }
        wanted.query = wider;
        wanted.limit = limit + found.hits.len();
        let place = found.queries.len();
        for hit in at.hits(&wanted)? {
            if found.hits.len() < limit && found.hits.iter().all(|(known, _)| known.root != hit.root) {
                found.hits.push((hit, place));
            }
        }
        found.queries.push(wanted.query.clone());
    }
    Ok(found)
}

/// What is shown of a hit's conversation.
fn look(asker: &Asker, hit: &Hit) -> Look {
    // Of the current session, what is in context already is not repeated.
    let visibility = if asker.current.as_ref() == Some(&hit.session) {
        Visibility::OutOfContext
    } else {
        Visibility::Searchable
    };
    Look {
        session: hit.session.clone(),
        visibility,
        hit: hit.seq,
        around: look_range(hit.seq),
        ends: BOOKEND,
        chars: u32::try_from(CONTEXT_CHARS).unwrap_or(u32::MAX),
    }
}

fn show(hit: &Hit, seen: Surroundings, query: &Query, budget: &mut Budget) -> Option<Conversation> {
    let Surroundings { session, messages } = seen;
    let found = &messages.iter().find(|glimpse| glimpse.message.seq == hit.seq)?.message;
    let shown = FoundHit {
        seq: hit.seq,
        snippet: best_snippet(found, query),
        score: hit.score,
        integrity: found.integrity,
    };
    let near = look_range(hit.seq);
    let around = messages.iter().filter(|glimpse| near.contains(&glimpse.message.seq));
    let ends = BOOKEND as usize;
    Some(Conversation {
        session,
        hit: Some(shown),
        around: budget.show_glimpses(around, CONTEXT_CHARS),
        opening: budget.show_glimpses(messages.iter().take(ends), CONTEXT_CHARS),
        closing: budget.show_glimpses(messages.iter().skip(messages.len().saturating_sub(ends)), CONTEXT_CHARS),
    })
}

fn look_range(seq: u64) -> RangeInclusive<u64> {
    seq.saturating_sub(AROUND)..=seq.saturating_add(AROUND)
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
