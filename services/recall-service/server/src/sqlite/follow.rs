//! Who brings messages into the index: a search, before it looks, and the background, a moment after they were written.
//!
//! One task serves the files of all teams that are open, a bounded stretch of each in turn. A file that is closed is brought
//! up to date first where that is quick; where it is not, or the process dies, its rows wait for the next who opens it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use steward_base::error_chain;
use steward_base::names::TeamId;
use steward_recall_core::Error;
use steward_runtime::Tasks;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::SqliteSessionStore;
use super::catch_up::{self, Upkeep};
use super::failure::Failure;
use super::teams::TeamFile;

/// How long messages wait for more, so that a piece is worth its commit.
const GATHER: Duration = Duration::from_millis(250);
/// Pieces, and merges, of one team before the next has its turn.
const STRETCH: usize = 32;
/// How long a team rests whose index could not be written.
const REST: Duration = Duration::from_secs(5);

/// Files whose messages wait for the index.
#[derive(Debug, Default)]
pub(super) struct Behind {
    files: Mutex<VecDeque<(TeamId, Weak<TeamFile>)>>,
    added: Notify,
}

impl Behind {
    /// Notes that messages of an open file wait.
    pub(super) fn add(&self, team: &TeamId, file: &Arc<TeamFile>) {
        if file.progress.queue() {
            self.files().push_back((team.clone(), Arc::downgrade(file)));
            self.added.notify_one();
        }
    }

    /// Those that are open still. They are not on the list from here on.
    fn take(&self) -> Vec<(TeamId, Arc<TeamFile>)> {
        let listed = std::mem::take(&mut *self.files());
        let open = listed
            .into_iter()
            .filter_map(|(team, file)| Some((team, file.upgrade()?)));
        open.inspect(|(_, file)| file.progress.unqueue()).collect()
    }

    fn files(&self) -> MutexGuard<'_, VecDeque<(TeamId, Weak<TeamFile>)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Files whose index could not be written, until it is tried again. The others go on meanwhile.
#[derive(Debug, Default)]
struct Resting(VecDeque<(Instant, TeamId, Weak<TeamFile>)>);

impl Resting {
    /// The file counts as listed, so that an append does not list it before.
    fn add(&mut self, team: TeamId, file: &Arc<TeamFile>) {
        file.progress.queue();
        self.0.push_back((Instant::now() + REST, team, Arc::downgrade(file)));
    }

    /// Takes out those that have rested and are open still.
    fn rested(&mut self) -> Vec<(TeamId, Arc<TeamFile>)> {
        let now = Instant::now();
        let rested = self.0.iter().take_while(|(until, ..)| *until <= now).count();
        let rested = self.0.drain(..rested);
        rested
            .filter_map(|(_, team, file)| Some((team, file.upgrade()?)))
            .collect()
    }

    async fn first_has_rested(&self) {
        match self.0.front() {
            Some((until, ..)) => sleep_until(*until).await,
            None => std::future::pending().await,
        }
    }
}

/// What a stretch left.
enum Left {
    Nothing,
    More,
    Trouble(Error),
}

impl SqliteSessionStore {
    /// Keeps the indexes of open files near their messages, until the process stops.
    pub(crate) async fn follow(self: Arc<Self>, tasks: Tasks) {
        let stopping = tasks.stopping();
        let work = async {
            let mut resting = Resting::default();
            loop {
                tokio::select! {
                    () = self.behind.added.notified() => sleep(GATHER).await,
                    () = resting.first_has_rested() => {}
                }
                for (team, file) in resting.rested() {
                    file.progress.unqueue();
                    self.behind.add(&team, &file);
                }
                self.follow_all(&tasks, &mut resting).await;
            }
        };
        tokio::select! {
            () = stopping.cancelled() => {}
            () = work => {}
        }
    }

    async fn follow_all(&self, tasks: &Tasks, resting: &mut Resting) {
        for (team, file) in self.behind.take() {
            if tasks.is_stopping() {
                return;
            }
            match self.follow_one(&file).await {
                Left::Nothing => {}
                Left::More => self.behind.add(&team, &file),
                Left::Trouble(damage @ Error::Damaged { .. }) => {
                    self.mend(&team, &damage).await;
                }
                Left::Trouble(error) => {
                    tracing::warn!(team = %team, error = error_chain(&error), "messages wait for the index; trying again");
                    resting.add(team, &file);
                }
            }
        }
    }

    async fn follow_one(&self, file: &TeamFile) -> Left {
        match stretch(file).await {
            Ok(true) => Left::More,
            Ok(false) => Left::Nothing,
            Err(Failure(error)) => Left::Trouble(error),
        }
    }

    /// Brings in what was acknowledged before a search. Where that takes too long or cannot be written, the search goes on
    /// without, and what it misses is said; damage is an error.
    pub(super) async fn refresh(&self, team: &TeamId, file: &TeamFile) -> Result<Option<String>, Failure> {
        if !file.progress.is_behind() {
            return Ok(None);
        }
        let why = match timeout(self.patience, catch_up::bring(file, &file.progress)).await {
            Ok(Ok(())) => return Ok(None),
            Ok(Err(Failure(damage @ Error::Damaged { .. }))) => return Err(damage.into()),
            Ok(Err(Failure(error))) => error_chain(&error),
            Err(_) => "it took too long".to_owned(),
        };
        tracing::warn!(team = %team, error = why, "a search goes on without the newest messages");
        Ok(Some("the newest messages are not in the index yet".to_owned()))
    }
}

/// A bounded stretch of what waits, then of what is to be merged; whether there is more.
async fn stretch(file: &TeamFile) -> Result<bool, Failure> {
    for _ in 0..STRETCH {
        if catch_up::piece(file, &file.progress, Upkeep::Merge).await?.is_last() {
            break;
        }
    }
    for _ in 0..STRETCH {
        if file.progress.is_behind() {
            return Ok(true);
        }
        if !catch_up::merge(file).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
