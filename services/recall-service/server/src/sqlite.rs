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
use sqlx::Connection;
use steward_base::names::{SessionId, TeamId};
use steward_base::{Timestamp, error_chain};
use steward_recall_core::append_messages::{Append, Appended};
use steward_recall_core::create_session::NewSession;
use steward_recall_core::delete_session::Deletion;
use steward_recall_core::fork_session::Fork;
use steward_recall_core::get_session::{SessionRead, SessionView};
use steward_recall_core::import_session::WholeSession;
use steward_recall_core::lease::{Grant, LeaseRequest};
use steward_recall_core::mark_compacted::Compaction;
use steward_recall_core::message::Message;
use steward_recall_core::rewind_session::Rewind;
use steward_recall_core::search::{Hit, HitQuery, Look, RecentQuery, Surroundings};
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
use teams::{Missing, TeamFile, Teams};

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
    /// Teams whose last search went on without the newest messages.
    late: Mutex<BTreeSet<TeamId>>,
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
            late: Mutex::default(),
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
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        let found = outbox::list(&mut reader, limit).await?;
        drop(reader);
        if found.is_empty() && self.with_due.holds(team) {
            forget_if_empty(&sqlite, &self.with_due, team.clone()).await?;
        }
        Ok(found)
    }

    async fn try_append(&self, append: Append, now: Timestamp) -> Result<Appended, Error> {
        let team = append.team.clone();
        let sqlite = self
            .team(&team)
            .await?
            .ok_or_else(|| sessions::missing(&team, &append.session))?;
        let (with_due, with_waiting) = (self.with_due.clone(), self.with_waiting.clone());
        let (progress, of) = (sqlite.progress.clone(), team.clone());
        let write = sqlite.write_in_two(messages::ask(&append, now), move |connection, found| {
            Box::pin(async move {
                progress.wrote();
                if append.open_calls.has_any() {
                    with_waiting.add(&team);
                }
                let (appended, kept) = messages::append(connection, found, append, now).await?;
                if appended.due_review.is_some() {
                    with_due.add(&team);
                }
                Ok::<_, Failure>((appended, kept))
            })
        });
        let appended = write.await?;
        self.behind.add(&of, &sqlite);
        Ok(appended)
    }

    async fn try_import(&self, whole: WholeSession) -> Result<bool, Error> {
        let team = whole.session.team.clone();
        let sqlite = self.teams.get(&team, Missing::Create).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&team, &whole.session.id))?;
        let (with_waiting, progress, of) = (self.with_waiting.clone(), sqlite.progress.clone(), team.clone());
        let write = sqlite.write(move |connection| {
            Box::pin(async move {
                progress.wrote();
                if !whole.session.open_calls.is_empty() {
                    with_waiting.add(&team);
                }
                lifecycle::import(connection, whole).await
            })
        });
        let taken = write.await?;
        self.behind.add(&of, &sqlite);
        Ok(taken)
    }

    async fn try_delete(&self, deletion: Deletion, now: Timestamp) -> Result<(), Error> {
        let sqlite = self.team(&deletion.team).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&deletion.team, &deletion.session))?;
        let write = sqlite
            .write(move |connection| Box::pin(async move { lifecycle::delete(connection, &deletion, now).await }));
        Ok(write.await?)
    }

    async fn try_rewind(&self, rewind: Rewind, now: Timestamp) -> Result<Session, Error> {
        let sqlite = self.team(&rewind.team).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&rewind.team, &rewind.session))?;
        let write =
            sqlite.write(move |connection| Box::pin(async move { lifecycle::rewind(connection, rewind, now).await }));
        Ok(write.await?)
    }

    async fn try_fork(&self, fork: Fork, now: Timestamp) -> Result<Session, Error> {
        let sqlite = self.team(&fork.team).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&fork.team, &fork.parent))?;
        let (progress, team) = (sqlite.progress.clone(), fork.team.clone());
        let write = sqlite.write(move |connection| {
            Box::pin(async move {
                progress.wrote();
                lifecycle::fork(connection, fork, now).await
            })
        });
        let forked = write.await?;
        self.behind.add(&team, &sqlite);
        Ok(forked)
    }

    async fn try_compact(&self, compaction: Compaction, now: Timestamp) -> Result<Appended, Error> {
        let sqlite = self.team(&compaction.team).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&compaction.team, &compaction.session))?;
        let (progress, team) = (sqlite.progress.clone(), compaction.team.clone());
        let write = sqlite.write(move |connection| {
            Box::pin(async move {
                progress.wrote();
                lifecycle::compact(connection, compaction, now).await
            })
        });
        let compacted = write.await?;
        self.behind.add(&team, &sqlite);
        Ok(compacted)
    }

    /// Turns of one team whose client did not come in time. A team in which nothing waits is not asked again.
    async fn expired_of(&self, team: &TeamId, now: Timestamp) -> Result<Vec<ExpiredTurn>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        let (team, with_waiting) = (team.clone(), self.with_waiting.clone());
        let read = sqlite.write(move |connection| {
            Box::pin(async move {
                if !lifecycle::is_any_waiting(connection).await? {
                    with_waiting.remove(&team);
                    return Ok(Vec::new());
                }
                lifecycle::expired(connection, now).await
            })
        });
        Ok(read.await?)
    }

    async fn try_hits(&self, query: &HitQuery) -> Result<Vec<Hit>, Error> {
        let team = &query.asker.team;
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        self.refresh(team, &sqlite).await?;
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        Ok(search::hits(&mut reader, query).await?)
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
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        activity::of_team(&mut reader, team).await
    }

    /// Changes the lease of a session in a transaction.
    async fn change_lease<T: Send + 'static>(
        &self,
        team: &TeamId,
        session: &SessionId,
        change: impl FnOnce(&mut Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let sqlite = self.team(team).await?.ok_or_else(|| sessions::missing(team, session))?;
        let (team, session) = (team.clone(), session.clone());
        let changed = sqlite.write(move |connection| {
            Box::pin(async move {
                let found = sessions::summary(connection, &team, &session).await?;
                let mut found = found.ok_or_else(|| sessions::missing(&team, &session))?;
                let answer = change(&mut found.session)?;
                sessions::save_lease(connection, found.number, &found.session.lease).await?;
                Ok::<_, Failure>(answer)
            })
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
        let write =
            sqlite.write(move |connection| Box::pin(async move { sessions::create(connection, new, now).await }));
        Ok(write.await?)
    }

    async fn session(&self, team: &TeamId, session: &SessionId) -> Result<Option<Session>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(None);
        };
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        Ok(sessions::load(&mut reader, team, session).await?)
    }

    async fn sessions(&self, list: &SessionList) -> Result<Vec<Session>, Error> {
        let Some(sqlite) = self.team(&list.team).await? else {
            return Ok(Vec::new());
        };
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        Ok(sessions::list(&mut reader, list).await?)
    }

    async fn view(&self, team: &TeamId, session: &SessionId, read: &SessionRead) -> Result<Option<SessionView>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(None);
        };
        Ok(view::view(&sqlite, team, session, read).await?)
    }

    async fn update_session(&self, update: SessionUpdate, now: Timestamp) -> Result<Session, Error> {
        let sqlite = self.team(&update.team).await?;
        let sqlite = sqlite.ok_or_else(|| sessions::missing(&update.team, &update.session))?;
        let write =
            sqlite.write(move |connection| Box::pin(async move { sessions::update(connection, update, now).await }));
        Ok(write.await?)
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
        mending!(self, &team, self.try_append(append.clone(), now))
    }

    async fn messages(&self, team: &TeamId, session: &SessionId, range: &MessageRange) -> Result<Vec<Message>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        Ok(messages::list_of(&mut reader, team, session, range).await?)
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
        let team = fork.team.clone();
        mending!(self, &team, self.try_fork(fork.clone(), now))
    }

    async fn mark_compacted(&self, compaction: Compaction, now: Timestamp) -> Result<Appended, Error> {
        let team = compaction.team.clone();
        mending!(self, &team, self.try_compact(compaction.clone(), now))
    }

    async fn import_session(&self, whole: WholeSession) -> Result<bool, Error> {
        let team = whole.session.team.clone();
        mending!(self, &team, self.try_import(whole.clone()))
    }

    async fn turns(&self, team: &TeamId, session: &SessionId) -> Result<Vec<Turn>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(Vec::new());
        };
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        Ok(lifecycle::turns(&mut reader, team, session).await?)
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
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        Ok(messages::load_turn(&mut reader, team, session, turn).await?)
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
                let write = sqlite
                    .write(move |connection| Box::pin(async move { outbox::acknowledge(connection, &reviews).await }));
                removed += write.await?;
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

    async fn hits(&self, query: &HitQuery) -> Result<Vec<Hit>, Error> {
        let team = &query.asker.team;
        match mending!(self, team, self.try_hits(query)) {
            // The answer says that it is incomplete, and why.
            Err(Error::Damaged { .. }) if self.index_trouble(team).is_some() => self.scan(query).await,
            outcome => outcome,
        }
    }

    async fn look(&self, team: &TeamId, looks: &[Look]) -> Result<Vec<Option<Surroundings>>, Error> {
        let Some(sqlite) = self.team(team).await? else {
            return Ok(vec![None; looks.len()]);
        };
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        let mut snapshot = reader.begin().await.map_err(Failure::from)?;
        let seen = search::look(&mut snapshot, team, looks).await?;
        snapshot.commit().await.map_err(Failure::from)?;
        Ok(seen)
    }

    async fn recent(&self, query: &RecentQuery) -> Result<Vec<Session>, Error> {
        let Some(sqlite) = self.team(&query.asker.team).await? else {
            return Ok(Vec::new());
        };
        let mut reader = sqlite.read().await.map_err(Failure::from)?;
        Ok(search::recent(&mut reader, query).await?)
    }
}

/// Takes the team out of those with due reviews, unless one was committed meanwhile.
async fn forget_if_empty(sqlite: &Sqlite, with_due: &TeamsWith, team: TeamId) -> Result<(), Failure> {
    let with_due = with_due.clone();
    let write = sqlite.write(move |connection| {
        Box::pin(async move {
            if outbox::list(connection, 1).await?.is_empty() {
                with_due.remove(&team);
            }
            Ok::<_, Failure>(())
        })
    });
    write.await
}
