//! Sessions in SQLite: a file per team, whose index follows the rows.
//!
//! Rules are not here; they are asked from inside the transaction. What is here is loading, writing and searching.

mod activity;
mod answers;
mod backups;
mod catch_up;
mod failure;
mod files;
mod follow;
mod index;
mod lifecycle;
mod messages;
mod outbox;
mod rows;
mod scan;
mod search;
mod sessions;
mod teams;
#[cfg(test)]
mod tests;
mod trouble;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::{SessionId, TeamId};
use steward_base::{Timestamp, error_chain};
use steward_recall_core::append_messages::{Append, Appended};
use steward_recall_core::create_session::NewSession;
use steward_recall_core::delete_session::Deletion;
use steward_recall_core::fork_session::Fork;
use steward_recall_core::get_session::{MessagePage, SessionRead, SessionView};
use steward_recall_core::import_session::WholeSession;
use steward_recall_core::lease::{Grant, LeaseRequest};
use steward_recall_core::mark_compacted::Compaction;
use steward_recall_core::message::Message;
use steward_recall_core::rewind_session::Rewind;
use steward_recall_core::search::{Answer, Question, RecentQuery};
use steward_recall_core::session::Session;
use steward_recall_core::sessions::DueReviewRef;
use steward_recall_core::store::{IntegrityReport, MessageRange, SessionList, SessionStore};
use steward_recall_core::team_activity::{ActivityPage, TeamActivity};
use steward_recall_core::turn::{DueReview, ExpiredTurn, Turn};
use steward_recall_core::update_session::SessionUpdate;
use steward_recall_core::{Error, tokenizer as words};
use steward_store::Sqlite;
use tokio::sync::watch;

use failure::Failure;
use follow::Behind;
use outbox::TeamsWith;
use search::{By, Moment};
use teams::{Missing, TeamFile, Teams};

/// Most messages that are read where the caller is.
const AT_ONCE: u32 = 64;

/// How long a search waits for what was written before it to come into the index.
const PATIENCE: Duration = Duration::from_secs(2);

/// All teams' sessions.
#[derive(Debug)]
pub(crate) struct SqliteSessionStore {
    teams: Teams,
    with_due: TeamsWith,
    with_waiting: TeamsWith,
    /// Teams whose index was rebuilt since the process began.
    mended: Mutex<BTreeSet<TeamId>>,
    /// Teams whose index is not what it should be, and why.
    troubled: Mutex<BTreeMap<TeamId, String>>,
    /// Whether there are none of those.
    sound: watch::Sender<bool>,
    /// Open files whose messages wait for the index.
    behind: Behind,
    /// See [`PATIENCE`].
    patience: Duration,
    /// Where backups are kept: a folder per team.
    backups: PathBuf,
}

impl SqliteSessionStore {
    /// Opens the folder, and looks into every file for due reviews that were left by an earlier process. A damaged file
    /// keeps its own team from working and no other.
    pub(crate) async fn open(folder: PathBuf, backups: PathBuf, max_open: usize) -> Result<Self, Error> {
        let store = Self {
            troubled: Mutex::default(),
            sound: watch::Sender::new(true),
            behind: Behind::default(),
            patience: PATIENCE,
            backups,
            teams: Teams::new(folder, max_open),
            with_due: TeamsWith::default(),
            with_waiting: TeamsWith::default(),
            mended: Mutex::default(),
        };
        for team in store.teams.known().await? {
            match store.due_of(&team, 1).await {
                Ok(due) if due.is_empty() => {}
                Ok(_) => store.with_due.add(&team),
                Err(error @ Error::Damaged { .. }) => {
                    tracing::error!(team = %team, error = error_chain(&error), "the sessions of a team cannot be read");
                    store.with_due.add(&team);
                }
                Err(error) => return Err(error),
            }
            // What waits is found out when it is asked for.
            store.with_waiting.add(&team);
        }
        Ok(store)
    }

    /// The oldest due reviews of one team.
    async fn due_of(&self, team: &TeamId, limit: u32) -> Result<Vec<DueReview>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        let found = sqlite.view(|db| outbox::list(db, limit)).await?;
        if found.is_empty() && self.with_due.holds(team) {
            forget_if_empty(&sqlite, &self.with_due, team.clone()).await?;
        }
        Ok(found)
    }

    async fn try_delete(&self, deletion: Deletion, now: Timestamp) -> Result<(), Error> {
        let sqlite = self.existing(&deletion.team, &deletion.session).await?;
        Ok(sqlite.update(move |db| lifecycle::delete(db, &deletion, now)).await?)
    }

    async fn try_rewind(&self, rewind: Rewind, now: Timestamp) -> Result<Session, Error> {
        let sqlite = self.existing(&rewind.team, &rewind.session).await?;
        Ok(sqlite.update(move |db| lifecycle::rewind(db, &rewind, now)).await?)
    }

    /// Turns of one team whose client did not come in time. A team in which nothing waits is not asked again.
    async fn expired_of(&self, team: &TeamId, now: Timestamp) -> Result<Vec<ExpiredTurn>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        if let Some(expired) = sqlite.view(|db| lifecycle::expired(db, now)).await? {
            return Ok(expired);
        }
        let (team, with_waiting) = (team.clone(), self.with_waiting.clone());
        let read = sqlite.update(move |db| {
            let expired = lifecycle::expired(db, now)?;
            if expired.is_none() {
                with_waiting.remove(&team);
            }
            Ok::<_, Failure>(expired.unwrap_or_default())
        });
        Ok(read.await?)
    }

    /// Closes every file; later calls open them again.
    pub(crate) async fn close(&self) {
        self.teams.close().await;
    }

    async fn team(&self, team: &TeamId) -> Result<Option<Arc<TeamFile>>, Failure> {
        self.teams.get(team, Missing::Leave).await
    }

    async fn activity_of(&self, team: &TeamId) -> Result<Option<TeamActivity>, Failure> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(None);
        };
        let team = team.clone();
        sqlite.view_beside(move |db| activity::of_team(db, &team)).await
    }

    /// The file of a team which is said to have a session.
    async fn existing(&self, team: &TeamId, session: &SessionId) -> Result<Arc<TeamFile>, Failure> {
        self.team(team).await?.ok_or_else(|| sessions::missing(team, session))
    }

    /// Changes the lease of a session in a transaction.
    async fn change_lease<T: Send + 'static>(
        &self,
        team: &TeamId,
        session: &SessionId,
        change: impl FnOnce(&mut Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let sqlite = self.existing(team, session).await?;
        let (team, session) = (team.clone(), session.clone());
        let changed = sqlite.update(move |db| {
            let found = sessions::summary(db, &team, &session)?;
            let mut found = found.ok_or_else(|| sessions::missing(&team, &session))?;
            let answer = change(&mut found.session)?;
            sessions::save_lease(db, found.number, &found.session.lease)?;
            Ok::<_, Failure>(answer)
        });
        Ok(changed.await?)
    }
}

/// Does it, and once more if that met a damaged index which could be made anew.
macro_rules! mending {
    ($store:expr, $team:expr, $work:expr) => {
        match $work.await {
            Err(damage @ Error::Damaged { .. }) if $store.mend($team, &damage).await => $work.await,
            outcome => outcome,
        }
    };
}

#[async_trait]
impl SessionStore for SqliteSessionStore {
    async fn create_session(&self, new: NewSession, now: Timestamp) -> Result<Session, Error> {
        let team = new.team.clone();
        let sqlite = self.teams.get(&team, Missing::Create).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&team, &new.id))?;
        Ok(sqlite.update(move |db| sessions::create(db, new, now)).await?)
    }

    async fn session(&self, team: &TeamId, session: &SessionId) -> Result<Option<Session>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(None);
        };
        let found = sqlite.view(|db| sessions::load(db, team, session)).await?;
        Ok(found.map(|found| found.session))
    }

    async fn sessions(&self, list: &SessionList) -> Result<Vec<Session>, Error> {
        let Some(sqlite) = self.team(&list.team).await? else {
            return Ok(Vec::new());
        };
        let list = list.clone();
        Ok(sqlite.view_beside(move |db| sessions::list(db, &list)).await?)
    }

    async fn view(&self, team: &TeamId, session: &SessionId, read: &SessionRead) -> Result<Option<SessionView>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(None);
        };
        Ok(view::view(&sqlite, team, session, read).await?)
    }

    async fn update_session(&self, update: SessionUpdate, now: Timestamp) -> Result<Session, Error> {
        let sqlite = self.existing(&update.team, &update.session).await?;
        Ok(sqlite.update(move |db| sessions::update(db, update, now)).await?)
    }

    async fn acquire_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        request: LeaseRequest,
        now: Timestamp,
    ) -> Result<Grant, Error> {
        let acquire = move |found: &mut Session| {
            let expires = found.lease.acquire(&request, now)?;
            let interrupted_turn = found.open_turn.clone().filter(|open| *open != request.turn);
            Ok(Grant {
                fence: found.lease.fence,
                expires,
                interrupted_turn,
            })
        };
        self.change_lease(team, session, acquire).await
    }

    async fn renew_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        fence: u64,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        self.change_lease(team, session, move |found| found.lease.renew(fence, ttl, now))
            .await
    }

    async fn release_lease(&self, team: &TeamId, session: &SessionId, fence: u64) -> Result<(), Error> {
        let release = move |found: &mut Session| {
            found.lease.release(fence);
            Ok(())
        };
        self.change_lease(team, session, release).await
    }

    async fn append(&self, append: Append, now: Timestamp) -> Result<Appended, Error> {
        let team = append.team.clone();
        let sqlite = self.existing(&team, &append.session).await?;
        let (with_due, with_waiting) = (self.with_due.clone(), self.with_waiting.clone());
        let (progress, of) = (sqlite.progress.clone(), team.clone());
        let write = sqlite.update(move |db| {
            progress.wrote();
            if append.open_calls.has_any() {
                with_waiting.add(&of);
            }
            let appended = messages::append(db, append, now)?;
            if appended.due_review.is_some() {
                with_due.add(&of);
            }
            Ok::<_, Failure>(appended)
        });
        let appended = write.await?;
        self.behind.add(&team, &sqlite);
        Ok(appended)
    }

    async fn messages(&self, team: &TeamId, session: &SessionId, range: &MessageRange) -> Result<Vec<Message>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        if range.limit > AT_ONCE {
            let (team, session, range) = (team.clone(), session.clone(), range.clone());
            let read = sqlite.view_beside(move |db| messages::list_of(db, &team, &session, &range));
            return Ok(read.await?);
        }
        Ok(sqlite.view(|db| messages::list_of(db, team, session, range)).await?)
    }

    async fn page(
        &self,
        team: &TeamId,
        session: &SessionId,
        range: &MessageRange,
    ) -> Result<Option<MessagePage>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(None);
        };
        Ok(view::page(&sqlite, team, session, range).await?)
    }

    async fn delete_session(&self, deletion: Deletion, now: Timestamp) -> Result<(), Error> {
        let team = deletion.team.clone();
        mending!(self, &team, self.try_delete(deletion.clone(), now))
    }

    async fn rewind_session(&self, rewind: Rewind, now: Timestamp) -> Result<Session, Error> {
        let team = rewind.team.clone();
        mending!(self, &team, self.try_rewind(rewind.clone(), now))
    }

    async fn fork_session(&self, fork: Fork, now: Timestamp) -> Result<Session, Error> {
        let sqlite = self.existing(&fork.team, &fork.parent).await?;
        let (progress, team) = (sqlite.progress.clone(), fork.team.clone());
        let write = sqlite.update(move |db| {
            progress.wrote();
            lifecycle::fork(db, fork, now)
        });
        let forked = write.await?;
        self.behind.add(&team, &sqlite);
        Ok(forked)
    }

    async fn mark_compacted(&self, compaction: Compaction, now: Timestamp) -> Result<Appended, Error> {
        let sqlite = self.existing(&compaction.team, &compaction.session).await?;
        let (progress, team) = (sqlite.progress.clone(), compaction.team.clone());
        let write = sqlite.update(move |db| {
            progress.wrote();
            lifecycle::compact(db, compaction, now)
        });
        let compacted = write.await?;
        self.behind.add(&team, &sqlite);
        Ok(compacted)
    }

    async fn import_session(&self, whole: WholeSession) -> Result<bool, Error> {
        let team = whole.session.team.clone();
        let sqlite = self.teams.get(&team, Missing::Create).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&team, &whole.session.id))?;
        let (with_waiting, progress, of) = (self.with_waiting.clone(), sqlite.progress.clone(), team.clone());
        let write = sqlite.update(move |db| {
            progress.wrote();
            if !whole.session.open_calls.is_empty() {
                with_waiting.add(&of);
            }
            lifecycle::import(db, whole)
        });
        let taken = write.await?;
        self.behind.add(&team, &sqlite);
        Ok(taken)
    }

    async fn turns(&self, team: &TeamId, session: &SessionId) -> Result<Vec<Turn>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        Ok(sqlite.view(|db| lifecycle::turns(db, team, session)).await?)
    }

    fn index_trouble(&self, team: &TeamId) -> Option<String> {
        self.trouble_of(team)
    }

    async fn expired_turns(
        &self,
        team: Option<&TeamId>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<ExpiredTurn>, Error> {
        let mut expired = Vec::new();
        let mut waiting = self.with_waiting.all();
        waiting.retain(|one| team.is_none_or(|wanted| wanted == one));
        for team in waiting {
            match self.expired_of(&team, now).await {
                Ok(found) => expired.extend(found),
                Err(error) => {
                    tracing::error!(team = %team, error = error_chain(&error), "the waiting turns of a team cannot be read");
                }
            }
        }
        expired.sort_by(|one, two| (one.expired, &one.session).cmp(&(two.expired, &two.session)));
        expired.truncate(limit as usize);
        Ok(expired)
    }

    async fn turn(&self, team: &TeamId, session: &SessionId, turn: &str) -> Result<Option<Turn>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(None);
        };
        Ok(sqlite.view(|db| messages::load_turn(db, team, session, turn)).await?)
    }

    async fn due_reviews(&self, team: Option<&TeamId>, limit: u32) -> Result<Vec<DueReview>, Error> {
        let (mut due, mut unread) = (Vec::new(), None);
        for one in self.with_due.all() {
            if team.is_some_and(|wanted| *wanted != one) {
                continue;
            }
            match self.due_of(&one, limit).await {
                Ok(found) => due.extend(found),
                Err(error) => {
                    tracing::error!(team = %one, error = error_chain(&error), "the due reviews of a team cannot be read");
                    unread = Some(error);
                }
            }
        }
        if let Some(error) = unread.filter(|_| due.is_empty()) {
            return Err(error);
        }
        due.sort_by(|one, two| (one.created, &one.review.id).cmp(&(two.created, &two.review.id)));
        due.truncate(limit as usize);
        Ok(due)
    }

    async fn team_activity(&self, after: Option<&TeamId>, limit: u32) -> Result<ActivityPage, Error> {
        let known = self.teams.known().await?;
        let mut behind = known.into_iter().filter(|team| after.is_none_or(|after| team > after));
        let looked_at: Vec<TeamId> = behind.by_ref().take(limit as usize).collect();
        let next = behind.next().and_then(|_| looked_at.last().cloned());
        let mut teams = Vec::new();
        for team in looked_at {
            match self.activity_of(&team).await {
                Ok(activity) => teams.extend(activity),
                Err(Failure(error)) => {
                    tracing::error!(team = %team, error = error_chain(&error), "the activity of a team cannot be read");
                }
            }
        }
        Ok(ActivityPage { teams, next })
    }

    async fn acknowledge(&self, reviews: Vec<DueReviewRef>) -> Result<u32, Error> {
        let mut by_team: BTreeMap<TeamId, Vec<DueReviewRef>> = BTreeMap::new();
        for review in reviews {
            by_team.entry(review.team.clone()).or_default().push(review);
        }
        let mut removed = 0;
        for (team, reviews) in by_team {
            if let Some(sqlite) = self.team(&team).await? {
                removed += sqlite.update(move |db| outbox::acknowledge(db, &reviews)).await?;
            }
        }
        Ok(removed)
    }

    async fn check_integrity(&self, team: &TeamId, rebuild: bool) -> Result<IntegrityReport, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(IntegrityReport {
                tokenizer_version: words::VERSION,
                ..IntegrityReport::default()
            });
        };
        if rebuild {
            self.trouble(team, Some("the index is made anew right now"));
            if let Err(Failure(error)) = index::rebuild(&sqlite).await {
                self.trouble(team, Some("the index could not be made anew"));
                return Err(error);
            }
        }
        let report = index::check(&sqlite, &sqlite.progress).await?;
        let found = "the index was found damaged; a check with a rebuild mends it";
        self.trouble(team, (!report.problems.is_empty()).then_some(found));
        Ok(report)
    }

    async fn discover(&self, question: Question) -> Result<Answer, Error> {
        let team = question.team().clone();
        let (answer, incomplete) = self.search(&team, move |moment| question.answer(moment)).await?;
        Ok(Answer { incomplete, ..answer })
    }

    async fn recent(&self, query: &RecentQuery) -> Result<Vec<Session>, Error> {
        let Some(sqlite) = self.team(&query.asker.team).await? else {
            return Ok(Vec::new());
        };
        let query = query.clone();
        Ok(sqlite.view_beside(move |db| search::recent(db, &query)).await?)
    }
}

impl SqliteSessionStore {
    /// Runs a search in a snapshot of the team, once more if it met a damaged index that could be made anew, and over the
    /// newest rows if it could not. Why the answer may miss messages comes with it.
    async fn search<T: Default + Send + 'static>(
        &self,
        team: &TeamId,
        search: impl Fn(&Moment<'_>) -> Result<T, Error> + Clone + Send + 'static,
    ) -> Result<(T, Option<String>), Error> {
        let found = match mending!(self, team, self.try_search(team, By::Index, search.clone())) {
            // The answer says that it is incomplete, and why.
            Err(Error::Damaged { .. }) if self.trouble_of(team).is_some() => {
                self.try_search(team, By::NewestRows, search).await
            }
            outcome => outcome,
        };
        let (found, late) = found?;
        Ok((found, self.trouble_of(team).or(late)))
    }

    async fn try_search<T: Default + Send + 'static>(
        &self,
        team: &TeamId,
        by: By,
        search: impl Fn(&Moment<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<(T, Option<String>), Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok((T::default(), None));
        };
        let late = match by {
            By::Index => self.refresh(team, &sqlite).await?,
            By::NewestRows => None,
        };
        let found = sqlite.view_beside(move |db| search(&Moment { db, by }).map_err(Failure::from));
        Ok((found.await?, late))
    }
}

/// Takes the team out of those with due reviews, unless one was committed meanwhile.
async fn forget_if_empty(sqlite: &Sqlite, with_due: &TeamsWith, team: TeamId) -> Result<(), Failure> {
    let with_due = with_due.clone();
    let write = sqlite.update(move |db| {
        if outbox::list(db, 1)?.is_empty() {
            with_due.remove(&team);
        }
        Ok(())
    });
    write.await
}
