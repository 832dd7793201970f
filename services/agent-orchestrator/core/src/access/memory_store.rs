//! A store of teams, users and tokens in memory, for tests. It obeys the same contract suite as the SQLite one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use steward_base::names::{TeamId, TokenId, UserId};
use steward_base::{Role, Timestamp};

use super::model::{AccessToken, Page, RequestKey, Revocation, Revoked, Team, User};
use super::store::{AccessStore, StoreFailure, UserUpdate, Written};

/// What an idempotent request answered.
#[derive(Debug, Clone)]
enum Answer {
    Team(Team, User),
    User(User),
}

#[derive(Debug, Default)]
struct State {
    home: Option<TeamId>,
    teams: BTreeMap<TeamId, Team>,
    users: BTreeMap<(TeamId, UserId), User>,
    tokens: BTreeMap<(TeamId, TokenId), AccessToken>,
    requests: BTreeMap<(TeamId, &'static str, String), (String, Answer)>,
}

impl State {
    /// The first answer of the request, `Err` when it was another request.
    fn answered(&self, request: Option<&RequestKey>) -> Result<Option<Answer>, ()> {
        let Some(key) = request else { return Ok(None) };
        match self.requests.get(&(key.team.clone(), key.scope, key.id.clone())) {
            Some((hash, answer)) if *hash == key.hash => Ok(Some(answer.clone())),
            Some(_) => Err(()),
            None => Ok(None),
        }
    }

    fn keep(&mut self, request: Option<&RequestKey>, answer: Answer) {
        if let Some(key) = request {
            self.requests.insert(
                (key.team.clone(), key.scope, key.id.clone()),
                (key.hash.clone(), answer),
            );
        }
    }
}

/// Everything in one process's memory.
#[derive(Debug, Default)]
pub struct InMemoryAccessStore(Mutex<State>);

impl InMemoryAccessStore {
    /// Empty.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn over(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1)
}

#[async_trait]
impl AccessStore for InMemoryAccessStore {
    async fn home_team(&self) -> Result<Option<TeamId>, StoreFailure> {
        Ok(self.state().home.clone())
    }

    async fn create_team(
        &self,
        team: &Team,
        admin: &User,
        home: bool,
        request: Option<&RequestKey>,
    ) -> Result<Written<(Team, User)>, StoreFailure> {
        let mut state = self.state();
        match state.answered(request) {
            Ok(Some(Answer::Team(team, admin))) => return Ok(Written::Done((team, admin))),
            Ok(None) => {}
            Ok(Some(Answer::User(_))) | Err(()) => return Ok(Written::RequestReused),
        }
        if state.teams.contains_key(&team.id) || (home && state.home.is_some()) {
            return Ok(Written::Exists);
        }
        if home {
            state.home = Some(team.id.clone());
        }
        state.teams.insert(team.id.clone(), team.clone());
        state.users.insert((team.id.clone(), admin.id.clone()), admin.clone());
        state.keep(request, Answer::Team(team.clone(), admin.clone()));
        Ok(Written::Done((team.clone(), admin.clone())))
    }

    async fn team(&self, team: &TeamId) -> Result<Option<Team>, StoreFailure> {
        Ok(self.state().teams.get(team).cloned())
    }

    async fn teams(&self, after: Option<&str>, limit: u32) -> Result<Page<Team>, StoreFailure> {
        let state = self.state();
        let later = state
            .teams
            .values()
            .filter(|team| after.is_none_or(|after| team.id.as_str() > after));
        Ok(Page::cut(later.take(over(limit)).cloned().collect(), limit, |team| {
            team.id.to_string()
        }))
    }

    async fn create_user(&self, user: &User, request: Option<&RequestKey>) -> Result<Written<User>, StoreFailure> {
        let mut state = self.state();
        match state.answered(request) {
            Ok(Some(Answer::User(user))) => return Ok(Written::Done(user)),
            Ok(None) => {}
            Ok(Some(Answer::Team(..))) | Err(()) => return Ok(Written::RequestReused),
        }
        if !state.teams.contains_key(&user.team) {
            return Ok(Written::Missing);
        }
        let key = (user.team.clone(), user.id.clone());
        if state.users.contains_key(&key) {
            return Ok(Written::Exists);
        }
        state.users.insert(key, user.clone());
        state.keep(request, Answer::User(user.clone()));
        Ok(Written::Done(user.clone()))
    }

    async fn user(&self, team: &TeamId, user: &UserId) -> Result<Option<User>, StoreFailure> {
        Ok(self.state().users.get(&(team.clone(), user.clone())).cloned())
    }

    async fn users(&self, team: &TeamId, after: Option<&str>, limit: u32) -> Result<Page<User>, StoreFailure> {
        let state = self.state();
        let later = state
            .users
            .values()
            .filter(|user| user.team == *team && after.is_none_or(|after| user.id.as_str() > after));
        Ok(Page::cut(later.take(over(limit)).cloned().collect(), limit, |user| {
            user.id.to_string()
        }))
    }

    async fn update_user(
        &self,
        team: &TeamId,
        user: &UserId,
        update: UserUpdate,
    ) -> Result<Written<User>, StoreFailure> {
        let mut state = self.state();
        let key = (team.clone(), user.clone());
        let Some(before) = state.users.get(&key).cloned() else {
            return Ok(Written::Missing);
        };
        let others = state
            .users
            .values()
            .filter(|other| other.team == *team && other.id != *user)
            .filter(|other| other.role >= Role::Admin && !other.disabled);
        if update.removes_admin(&before) && others.count() == 0 {
            return Ok(Written::LastAdmin);
        }
        let after = update.applied(&before);
        if update.lowers_role(&before) {
            for token in state
                .tokens
                .values_mut()
                .filter(|token| token.team == *team && token.user == *user)
            {
                token.revoked.get_or_insert(update.now);
            }
        }
        state.users.insert(key, after.clone());
        Ok(Written::Done(after))
    }

    async fn insert_token(&self, token: &AccessToken) -> Result<Written<()>, StoreFailure> {
        let mut state = self.state();
        if !state.users.contains_key(&(token.team.clone(), token.user.clone())) {
            return Ok(Written::Missing);
        }
        let key = (token.team.clone(), token.id.clone());
        if state.tokens.contains_key(&key) {
            return Ok(Written::Exists);
        }
        state.tokens.insert(key, token.clone());
        Ok(Written::Done(()))
    }

    async fn token(&self, team: &TeamId, token: &TokenId) -> Result<Option<AccessToken>, StoreFailure> {
        Ok(self.state().tokens.get(&(team.clone(), token.clone())).cloned())
    }

    async fn tokens(
        &self,
        team: &TeamId,
        user: Option<&UserId>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<AccessToken>, StoreFailure> {
        let state = self.state();
        let wanted = state.tokens.values().rev().filter(|token| {
            token.team == *team
                && user.is_none_or(|user| token.user == *user)
                && after.is_none_or(|after| token.id.as_str() < after)
        });
        Ok(Page::cut(wanted.take(over(limit)).cloned().collect(), limit, |token| {
            token.id.to_string()
        }))
    }

    async fn revoke_token(
        &self,
        team: &TeamId,
        token: &TokenId,
        now: Timestamp,
    ) -> Result<Written<AccessToken>, StoreFailure> {
        let mut state = self.state();
        let Some(record) = state.tokens.get_mut(&(team.clone(), token.clone())) else {
            return Ok(Written::Missing);
        };
        record.revoked.get_or_insert(now);
        Ok(Written::Done(record.clone()))
    }

    async fn revocations(&self, now: Timestamp) -> Result<Vec<Revocation>, StoreFailure> {
        let state = self.state();
        let tokens = state
            .tokens
            .values()
            .filter(|token| token.revoked.is_some() && token.expires > now)
            .map(|token| Revocation {
                subject: Revoked::Token(token.id.to_string()),
                expires: Some(token.expires),
            });
        let users = state
            .users
            .values()
            .filter(|user| user.disabled)
            .map(|user| Revocation {
                subject: Revoked::User(user.team.clone(), user.id.clone()),
                expires: None,
            });
        Ok(tokens.chain(users).collect())
    }
}
