//! Sessions in memory: for tests of the rules, and the reference that other stores are held to.

mod found;
mod kept;
mod lifecycle;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, session_name};

use super::{IntegrityReport, MessageRange, SessionList, SessionStore, Taken, Visibility};
use crate::append_messages::{ANSWER_RETENTION, Append, Appended, Found, answer_again, decide};
use crate::create_session::NewSession;
use crate::delete_session::Deletion;
use crate::error::Error;
use crate::fork_session::Fork;
use crate::get_session::{MessagePage, SessionRead, SessionView};
use crate::import_session::WholeSession;
use crate::lease::{Grant, LeaseRequest};
use crate::mark_compacted::Compaction;
use crate::message::Message;
use crate::query::Query;
use crate::query::matching::{Searchable, satisfied};
use crate::rewind_session::Rewind;
use crate::search::rank::Candidate;
use crate::search::{Answer, HitQuery, Question, RecentQuery, Sort};
use crate::session::{Frozen, Session};
use crate::sessions::{DueReviewRef, not_found};
use crate::team_activity::{ActivityPage, MOST_USERS, TeamActivity};
use crate::tokenizer;
use crate::turn::{DueReview, ExpiredTurn, Turn};
use crate::update_session::{self, SessionUpdate};
use kept::{Kept, same_request};
use lifecycle::deleted;

/// Keeps sessions as long as it lives.
#[derive(Debug, Default)]
pub struct InMemorySessionStore {
    teams: Mutex<BTreeMap<TeamId, Team>>,
}

#[derive(Debug, Default)]
struct Team {
    sessions: BTreeMap<SessionId, Kept>,
    deleted: BTreeSet<SessionId>,
    created_by: HashMap<String, (String, SessionId)>,
    due_reviews: Vec<DueReview>,
}

impl InMemorySessionStore {
    fn teams(&self) -> MutexGuard<'_, BTreeMap<TeamId, Team>> {
        self.teams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(
        &self,
        team: &TeamId,
        session: &SessionId,
        change: impl FnOnce(&mut Kept) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut teams = self.teams();
        let kept = teams.get_mut(team).and_then(|found| found.sessions.get_mut(session));
        change(kept.ok_or_else(|| not_found(team, session))?)
    }
}

fn without_prompt(session: &Session) -> Session {
    Session {
        frozen: Frozen {
            model: session.frozen.model.clone(),
            ..Frozen::default()
        },
        ..session.clone()
    }
}

fn is_visible(message: &Message, visibility: Visibility) -> bool {
    match visibility {
        Visibility::All => true,
        Visibility::Searchable => !message.rewound,
        Visibility::OutOfContext => !message.rewound && message.compacted,
        Visibility::InContext => !message.rewound && !message.compacted,
    }
}

fn activity(team: &TeamId, kept: &Team) -> Option<TeamActivity> {
    let mut latest = BTreeMap::new();
    for kept in kept.sessions.values() {
        let at = latest
            .entry(kept.session.user.clone())
            .or_insert(kept.session.last_active);
        *at = kept.session.last_active.max(*at);
    }
    let mut users: Vec<_> = latest.into_iter().collect();
    users.sort_by_key(|(user, at)| (Reverse(*at), user.clone()));
    Some(TeamActivity {
        team: team.clone(),
        last_active: users.first()?.1,
        users: users.into_iter().take(MOST_USERS).map(|(user, _)| user).collect(),
    })
}

#[async_trait]
impl SessionStore for InMemorySessionStore {
    async fn create_session(&self, new: NewSession, now: Timestamp) -> Result<Session, Error> {
        let mut teams = self.teams();
        let team = teams.entry(new.team.clone()).or_default();
        let known = team.created_by.get(&new.request.id);
        let known = known.and_then(|(hash, id)| Some((hash, &team.sessions.get(id)?.session)));
        if let Some((hash, session)) = known.filter(|(_, session)| session.created > now.minus(ANSWER_RETENTION)) {
            same_request(hash, &new.request)?;
            return Ok(session.clone());
        }
        if team.deleted.contains(&new.id) {
            return Err(deleted(&new.team, &new.id));
        }
        if team.sessions.contains_key(&new.id) {
            return Err(Error::SessionExists {
                session: session_name(&new.team, &new.id),
            });
        }
        let root = match &new.lineage {
            Some(lineage) => {
                let parent = team.sessions.get(&lineage.parent);
                Some(
                    parent
                        .ok_or_else(|| not_found(&new.team, &lineage.parent))?
                        .session
                        .root
                        .clone(),
                )
            }
            None => None,
        };
        team.created_by
            .insert(new.request.id.clone(), (new.request.hash.clone(), new.id.clone()));
        let session = new.into_session(root, now);
        let kept = Kept {
            session: session.clone(),
            messages: Vec::new(),
            turns: HashMap::new(),
            answers: HashMap::new(),
        };
        team.sessions.insert(session.id.clone(), kept);
        Ok(session)
    }

    async fn session(&self, team: &TeamId, session: &SessionId) -> Result<Option<Session>, Error> {
        let teams = self.teams();
        Ok(teams
            .get(team)
            .and_then(|found| found.sessions.get(session))
            .map(|kept| kept.session.clone()))
    }

    async fn view(&self, team: &TeamId, session: &SessionId, read: &SessionRead) -> Result<Option<SessionView>, Error> {
        let teams = self.teams();
        let Some(kept) = teams.get(team).and_then(|found| found.sessions.get(session)) else {
            return Ok(None);
        };
        Ok(Some(SessionView {
            session: kept.session.clone(),
            turn: kept.turns.get(&read.turn).cloned(),
            messages: read.messages.as_ref().map(|range| kept.page(range)).unwrap_or_default(),
        }))
    }

    async fn page(
        &self,
        team: &TeamId,
        session: &SessionId,
        range: &MessageRange,
    ) -> Result<Option<MessagePage>, Error> {
        let teams = self.teams();
        let kept = teams.get(team).and_then(|found| found.sessions.get(session));
        Ok(kept.map(|kept| kept.page(range)))
    }

    async fn update_session(&self, update: SessionUpdate, now: Timestamp) -> Result<Session, Error> {
        let (team, id) = (update.team.clone(), update.session.clone());
        self.change(&team, &id, |kept| {
            if kept.first_answer(&update.request, now)?.is_some() {
                return Ok(kept.session.clone());
            }
            let request = update.request.clone();
            kept.session = update_session::decide(kept.session.clone(), update, now)?;
            kept.keep_answer(request, None, now);
            Ok(kept.session.clone())
        })
    }

    async fn sessions(&self, list: &SessionList) -> Result<Vec<Session>, Error> {
        let teams = self.teams();
        let kept = teams
            .get(&list.team)
            .into_iter()
            .flat_map(|team| team.sessions.values());
        let mut found: Vec<&Session> = kept
            .map(|kept| &kept.session)
            .filter(|session| session.user == list.user && list.sources.contains(&session.source))
            .filter(|session| {
                list.after
                    .as_ref()
                    .is_none_or(|(at, id)| (session.last_active, &session.id) < (*at, id))
            })
            .collect();
        found.sort_by_key(|session| Reverse((session.last_active, session.id.clone())));
        Ok(found
            .into_iter()
            .take(list.limit as usize)
            .map(without_prompt)
            .collect())
    }

    async fn acquire_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        request: LeaseRequest,
        now: Timestamp,
    ) -> Result<Grant, Error> {
        self.change(team, session, |kept| {
            let lease = &mut kept.session.lease;
            let expires = lease.acquire(&request, now)?;
            let fence = lease.fence;
            let left_open = kept.session.open_turn.clone().filter(|turn| *turn != request.turn);
            Ok(Grant {
                fence,
                expires,
                interrupted_turn: left_open,
            })
        })
    }

    async fn renew_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        fence: u64,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        self.change(team, session, |kept| kept.session.lease.renew(fence, ttl, now))
    }

    async fn release_lease(&self, team: &TeamId, session: &SessionId, fence: u64) -> Result<(), Error> {
        self.change(team, session, |kept| {
            kept.session.lease.release(fence);
            Ok(())
        })
    }

    async fn append(&self, append: Append, now: Timestamp) -> Result<Appended, Error> {
        let mut teams = self.teams();
        let team = teams
            .get_mut(&append.team)
            .ok_or_else(|| not_found(&append.team, &append.session))?;
        let kept = team.kept(&append.team, &append.session)?;
        if let Some(answered) = kept.first_answer(&append.request, now)? {
            let first = answered.appended.clone();
            let first = first.ok_or_else(|| Error::request_id_reused(&append.request.id))?;
            return answer_again(first, &append, &mut kept.session.lease, now);
        }
        let turn = append.turn_id().and_then(|id| kept.turns.get(id)).cloned();
        let other = kept
            .open_turn()
            .filter(|open| append.turn_id() != Some(open.id.as_str()))
            .cloned();
        let found = Found {
            session: kept.session.clone(),
            turn,
            other_open_turn: other,
        };
        let request = append.request.clone();
        let effects = decide(found, append, now)?;
        kept.session = effects.session;
        kept.messages.extend(effects.messages);
        kept.turns
            .extend(effects.turns.into_iter().map(|turn| (turn.id.clone(), turn)));
        kept.keep_answer(request, Some(effects.appended.clone()), now);
        team.due_reviews.extend(effects.due_review);
        Ok(effects.appended)
    }

    async fn messages(&self, team: &TeamId, session: &SessionId, range: &MessageRange) -> Result<Vec<Message>, Error> {
        let teams = self.teams();
        let kept = teams.get(team).and_then(|found| found.sessions.get(session));
        let mut found: Vec<Message> = kept
            .into_iter()
            .flat_map(|kept| kept.in_range(range))
            .cloned()
            .collect();
        let limit = range.limit as usize;
        match range.taken {
            Taken::First => found.truncate(limit),
            Taken::Last => drop(found.drain(..found.len().saturating_sub(limit))),
        }
        Ok(found)
    }

    async fn delete_session(&self, deletion: Deletion, now: Timestamp) -> Result<(), Error> {
        self.delete(&deletion, now)
    }

    async fn rewind_session(&self, rewind: Rewind, now: Timestamp) -> Result<Session, Error> {
        self.rewind(&rewind, now)
    }

    async fn fork_session(&self, fork: Fork, now: Timestamp) -> Result<Session, Error> {
        self.fork(fork, now)
    }

    async fn mark_compacted(&self, compaction: Compaction, now: Timestamp) -> Result<Appended, Error> {
        self.compact(compaction, now)
    }

    async fn expired_turns(
        &self,
        team: Option<&TeamId>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<ExpiredTurn>, Error> {
        Ok(self.expired(team, now, limit))
    }

    async fn import_session(&self, whole: WholeSession) -> Result<bool, Error> {
        self.import(whole)
    }

    async fn turns(&self, team: &TeamId, session: &SessionId) -> Result<Vec<Turn>, Error> {
        Ok(self.all_turns(team, session))
    }

    async fn turn(&self, team: &TeamId, session: &SessionId, turn: &str) -> Result<Option<Turn>, Error> {
        let teams = self.teams();
        Ok(teams
            .get(team)
            .and_then(|found| found.sessions.get(session))
            .and_then(|kept| kept.turns.get(turn))
            .cloned())
    }

    async fn due_reviews(&self, team: Option<&TeamId>, limit: u32) -> Result<Vec<DueReview>, Error> {
        let teams = self.teams();
        let mut due: Vec<DueReview> = teams
            .iter()
            .filter(|(id, _)| team.is_none_or(|wanted| wanted == *id))
            .flat_map(|(_, team)| team.due_reviews.iter().cloned())
            .collect();
        due.sort_by(|one, two| (one.created, &one.review.id).cmp(&(two.created, &two.review.id)));
        due.truncate(limit as usize);
        Ok(due)
    }

    async fn team_activity(&self, after: Option<&TeamId>, limit: u32) -> Result<ActivityPage, Error> {
        let teams = self.teams();
        let mut behind = teams.iter().filter(|(team, _)| after.is_none_or(|after| *team > after));
        let looked_at: Vec<_> = behind.by_ref().take(limit as usize).collect();
        let last = looked_at.last().map(|(team, _)| (*team).clone());
        let next = behind.next().and(last);
        let teams = looked_at
            .into_iter()
            .filter_map(|(team, kept)| activity(team, kept))
            .collect();
        Ok(ActivityPage { teams, next })
    }

    async fn acknowledge(&self, reviews: Vec<DueReviewRef>) -> Result<u32, Error> {
        let mut teams = self.teams();
        let mut removed = 0;
        for review in reviews {
            if let Some(team) = teams.get_mut(&review.team) {
                let before = team.due_reviews.len();
                team.due_reviews
                    .retain(|due| due.session != review.session || due.review.id != review.id);
                removed += u32::try_from(before - team.due_reviews.len()).unwrap_or(u32::MAX);
            }
        }
        Ok(removed)
    }

    async fn check_integrity(&self, team: &TeamId, _rebuild: bool) -> Result<IntegrityReport, Error> {
        let teams = self.teams();
        let kept = teams.get(team).into_iter().flat_map(|team| team.sessions.values());
        let messages = kept.map(|kept| kept.messages.len() as u64).sum();
        Ok(IntegrityReport {
            problems: Vec::new(),
            messages,
            tokenizer_version: tokenizer::VERSION,
        })
    }

    async fn discover(&self, question: Question) -> Result<Answer, Error> {
        question.answer(&*self.teams())
    }

    async fn recent(&self, query: &RecentQuery) -> Result<Vec<Session>, Error> {
        let teams = self.teams();
        let Some(team) = teams.get(&query.asker.team) else {
            return Ok(Vec::new());
        };
        let current = query.asker.current.as_ref().and_then(|id| team.sessions.get(id));
        let mut found: Vec<&Session> = team
            .sessions
            .values()
            .map(|kept| &kept.session)
            .filter(|session| session.user == query.asker.user && !session.source.is_hidden() && session.last_seq > 0)
            .filter(|session| current.is_none_or(|current| current.session.root != session.root))
            .collect();
        found.sort_by_key(|session| {
            (
                session.source.is_demoted(),
                Reverse((session.last_active, session.id.clone())),
            )
        });
        let mut roots = Vec::new();
        found.retain(|session| {
            let first = !roots.contains(&session.root);
            roots.push(session.root.clone());
            first
        });
        Ok(found.into_iter().take(query.limit).map(without_prompt).collect())
    }
}

fn is_asked_for(session: &Session, query: &HitQuery) -> bool {
    session.user == query.asker.user && query.sources.contains(&session.source)
}

fn may_hit(message: &Message, query: &HitQuery) -> bool {
    !message.rewound
        && (query.roles.is_empty() || query.roles.contains(&message.body.role))
        && query.after.is_none_or(|after| message.created >= after)
        && query.before.is_none_or(|before| message.created < before)
}

/// Whether the asker's context holds the message, or a copy that a branch or a continuation took along.
fn stands_in(current: Option<&Kept>, session: &Session, message: &Message) -> bool {
    let Some(current) = current else { return false };
    if current.session.id == session.id {
        return !message.compacted;
    }
    let is_copy = |copy: &&Message| {
        copy.body.role == message.body.role
            && copy.body.text == message.body.text
            && copy.tool_text() == message.tool_text()
    };
    let in_context = |copy: &&Message| is_visible(copy, Visibility::InContext);
    current.session.root == session.root && current.messages.iter().filter(in_context).any(|copy| is_copy(&copy))
}

/// The message of a session (its id, its root, whether it is demoted) with how often each term occurs in it, if it matches. A
/// plain measure, for stores without BM25 and for those that cannot ask their index.
pub fn candidate(
    (session, root, demoted): (&SessionId, &SessionId, bool),
    message: &Message,
    query: &Query,
) -> Option<Candidate> {
    let fields = [
        Searchable::new(message.said_text(), query),
        Searchable::new(&message.tool_text(), query),
        Searchable::new(&tokenizer::day_text(message.created), query),
    ];
    if !satisfied(query.expr(), &|term| fields.iter().any(|field| field.holds(term))) {
        return None;
    }
    let count = |term| fields.iter().map(|field| field.count_of(term)).sum::<usize>();
    let strengths = query
        .terms()
        .into_iter()
        .map(|term| f32::from(u16::try_from(count(term)).unwrap_or(u16::MAX)));
    Some(Candidate {
        session: session.clone(),
        root: root.clone(),
        seq: message.seq,
        role: message.body.role,
        demoted,
        created: message.created,
        strengths: strengths.collect(),
    })
}

/// As candidates are offered to a ranking.
pub fn order(one: &Candidate, two: &Candidate, sort: Sort) -> Ordering {
    let newer = two.created.cmp(&one.created).then(two.seq.cmp(&one.seq));
    let sum = |candidate: &Candidate| candidate.strengths.iter().sum::<f32>();
    match sort {
        Sort::Relevance => sum(two).total_cmp(&sum(one)).then(newer),
        Sort::Newest => one.demoted.cmp(&two.demoted).then(newer),
        Sort::Oldest => one.demoted.cmp(&two.demoted).then(newer.reverse()),
    }
}
