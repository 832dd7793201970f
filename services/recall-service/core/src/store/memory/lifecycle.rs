//! What becomes of a session as a whole, in memory: deleted, rewound, forked, compacted, waiting for too long.

use std::collections::HashMap;

use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, session_name};

use super::{InMemorySessionStore, Kept, Team, same_request};
use crate::append_messages::{ANSWER_RETENTION, Appended};
use crate::delete_session::{self, Deletion};
use crate::error::Error;
use crate::fork_session::{self, Fork};
use crate::import_session::WholeSession;
use crate::mark_compacted::{self, Compaction};
use crate::message::Message;
use crate::rewind_session::{self, Rewind, is_restored};
use crate::session::Session;
use crate::sessions::not_found;
use crate::store::MessageRange;
use crate::turn::{ExpiredTurn, Turn};

/// Refuses what comes late.
pub(super) fn deleted(team: &TeamId, session: &SessionId) -> Error {
    Error::SessionDeleted {
        session: session_name(team, session),
    }
}

impl Team {
    /// A session that is to be written to.
    pub(super) fn kept(&mut self, team: &TeamId, session: &SessionId) -> Result<&mut Kept, Error> {
        let is_deleted = self.deleted.contains(session);
        self.sessions.get_mut(session).ok_or_else(|| {
            if is_deleted {
                deleted(team, session)
            } else {
                not_found(team, session)
            }
        })
    }
}

impl InMemorySessionStore {
    pub(super) fn delete(&self, deletion: &Deletion, now: Timestamp) -> Result<(), Error> {
        let (team_id, id) = (&deletion.team, &deletion.session);
        let mut teams = self.teams();
        let team = teams.get_mut(team_id).ok_or_else(|| not_found(team_id, id))?;
        if team.deleted.contains(id) {
            return Ok(());
        }
        delete_session::decide(&team.kept(team_id, id)?.session, deletion, now)?;
        team.sessions.remove(id);
        team.due_reviews.retain(|due| due.session != *id);
        team.deleted.insert(id.clone());
        Ok(())
    }

    pub(super) fn rewind(&self, rewind: &Rewind, now: Timestamp) -> Result<Session, Error> {
        self.change(&rewind.team, &rewind.session, |kept| {
            if kept.first_answer(&rewind.request, now)?.is_some() {
                return Ok(kept.session.clone());
            }
            let first_cut = kept
                .messages
                .iter()
                .find(|message| message.seq > rewind.to && !message.rewound);
            kept.session = rewind_session::decide(kept.session.clone(), rewind, first_cut, now)?;
            let before = kept.messages.clone();
            for message in &mut kept.messages {
                if is_restored(message, rewind.to, &before) {
                    message.compacted = false;
                }
                message.rewound |= message.seq > rewind.to;
            }
            kept.keep_answer(rewind.request.clone(), None, now);
            Ok(kept.session.clone())
        })
    }

    pub(super) fn fork(&self, fork: Fork, now: Timestamp) -> Result<Session, Error> {
        let mut teams = self.teams();
        let missing = || not_found(&fork.team, &fork.parent);
        let team = teams.get_mut(&fork.team).ok_or_else(missing)?;
        let known = team.created_by.get(&fork.request.id);
        let known = known.and_then(|(hash, id)| Some((hash, &team.sessions.get(id)?.session)));
        if let Some((hash, session)) = known.filter(|(_, session)| session.created > now.minus(ANSWER_RETENTION)) {
            same_request(hash, &fork.request)?;
            return Ok(session.clone());
        }
        let parent = team.sessions.get(&fork.parent).ok_or_else(missing)?;
        if team.deleted.contains(&fork.id) {
            return Err(deleted(&fork.team, &fork.id));
        }
        if team.sessions.contains_key(&fork.id) {
            return Err(Error::SessionExists {
                session: session_name(&fork.team, &fork.id),
            });
        }
        let whole = MessageRange::in_context(0, u64::MAX, u32::MAX);
        let context: Vec<Message> = parent.in_range(&whole).into_iter().cloned().collect();
        let request = fork.request.clone();
        let (session, messages) = fork_session::decide(&parent.session, context, fork, now)?;
        let kept = Kept {
            session: session.clone(),
            messages,
            turns: HashMap::new(),
            answers: HashMap::new(),
        };
        team.created_by.insert(request.id, (request.hash, session.id.clone()));
        team.sessions.insert(session.id.clone(), kept);
        Ok(session)
    }

    pub(super) fn compact(&self, compaction: Compaction, now: Timestamp) -> Result<Appended, Error> {
        let mut teams = self.teams();
        let missing = || not_found(&compaction.team, &compaction.session);
        let team = teams.get_mut(&compaction.team).ok_or_else(missing)?;
        let kept = team.kept(&compaction.team, &compaction.session)?;
        if let Some(answered) = kept.first_answer(&compaction.request, now)? {
            let first = answered.appended.clone();
            return first.ok_or_else(|| Error::request_id_reused(&compaction.request.id));
        }
        let range = MessageRange::in_context(compaction.range.from, compaction.range.to, u32::MAX);
        let replaced: Vec<Message> = kept.in_range(&range).into_iter().cloned().collect();
        let request = compaction.request.clone();
        let compacted = mark_compacted::decide(kept.session.clone(), &replaced, compaction, now)?;
        for message in &mut kept.messages {
            message.compacted |= replaced.iter().any(|gone| gone.seq == message.seq);
        }
        kept.session = compacted.session;
        kept.messages.push(compacted.summary);
        kept.keep_answer(request, Some(compacted.appended.clone()), now);
        Ok(compacted.appended)
    }

    pub(super) fn import(&self, whole: WholeSession) -> Result<bool, Error> {
        let WholeSession {
            session,
            turns,
            messages,
        } = whole;
        let mut teams = self.teams();
        let team = teams.entry(session.team.clone()).or_default();
        if let Some(known) = team.sessions.get(&session.id) {
            if known.session.user == session.user {
                return Ok(false);
            }
            return Err(Error::SessionExists {
                session: session.name(),
            });
        }
        team.deleted.remove(&session.id);
        let kept = Kept {
            messages,
            turns: turns.into_iter().map(|turn| (turn.id.clone(), turn)).collect(),
            answers: HashMap::new(),
            session: session.clone(),
        };
        team.sessions.insert(session.id, kept);
        Ok(true)
    }

    pub(super) fn all_turns(&self, team: &TeamId, session: &SessionId) -> Vec<Turn> {
        let teams = self.teams();
        let kept = teams.get(team).and_then(|found| found.sessions.get(session));
        let mut turns: Vec<Turn> = kept.into_iter().flat_map(|kept| kept.turns.values().cloned()).collect();
        turns.sort_by(|one, two| (one.first_seq, &one.id).cmp(&(two.first_seq, &two.id)));
        turns
    }

    pub(super) fn expired(&self, team: Option<&TeamId>, now: Timestamp, limit: u32) -> Vec<ExpiredTurn> {
        let teams = self.teams();
        let wanted = teams.iter().filter(|(id, _)| team.is_none_or(|team| team == *id));
        let sessions = wanted.flat_map(|(_, team)| team.sessions.values());
        let mut expired: Vec<_> = sessions.filter_map(|kept| kept.session.expired_turn(now)).collect();
        expired.sort_by(|one, two| (one.expired, &one.session).cmp(&(two.expired, &two.session)));
        expired.truncate(limit as usize);
        expired
    }
}
