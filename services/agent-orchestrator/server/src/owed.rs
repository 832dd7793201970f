//! What a team's external memory is still to be told, kept so that no end of the process loses it (`M-15`).
//!
//! A turn is owed from before its first message is stored until the memory has it, or it turns out that there is nothing to
//! tell; what was said is read from the session then. Delivery is at least once, under the turn's id, so that the memory knows
//! a turn again. In the order of a session: nothing is told of it before all that came earlier.

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::SessionKey;

use crate::signer::Person;

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A turn, by its id.
    Turn(String),
    /// That the session is over.
    End,
}

/// Something that is owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Debt {
    pub(crate) key: SessionKey,
    pub(crate) person: Person,
    pub(crate) what: What,
    pub(crate) since: Timestamp,
}

/// Where it is kept.
#[async_trait]
pub(crate) trait Owed: std::fmt::Debug + Send + Sync {
    /// Keeps it, durable when answered. What is owed already stays as it is.
    async fn owe(&self, debt: Debt) -> Result<(), Error>;

    /// What is owed of a session, in order.
    async fn of(&self, key: &SessionKey) -> Result<Vec<Debt>, Error>;

    /// Sessions of which something is owed, the longest first, at most `limit`.
    async fn sessions(&self, limit: u32) -> Result<Vec<SessionKey>, Error>;

    /// It was told, or there is nothing to tell.
    async fn settle(&self, key: &SessionKey, what: &What) -> Result<(), Error>;
}

/// Keeps it in memory, for tests.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct InMemoryOwed(std::sync::Mutex<Vec<Debt>>);

#[cfg(test)]
impl InMemoryOwed {
    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Debt>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
#[async_trait]
impl Owed for InMemoryOwed {
    async fn owe(&self, debt: Debt) -> Result<(), Error> {
        let mut kept = self.kept();
        if kept.iter().all(|one| (&one.key, &one.what) != (&debt.key, &debt.what)) {
            kept.push(debt);
        }
        Ok(())
    }

    async fn of(&self, key: &SessionKey) -> Result<Vec<Debt>, Error> {
        let kept = self.kept();
        Ok(kept.iter().filter(|one| one.key == *key).cloned().collect())
    }

    async fn sessions(&self, limit: u32) -> Result<Vec<SessionKey>, Error> {
        let mut keys: Vec<SessionKey> = Vec::new();
        for debt in &*self.kept() {
            if !keys.contains(&debt.key) {
                keys.push(debt.key.clone());
            }
        }
        keys.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(keys)
    }

    async fn settle(&self, key: &SessionKey, what: &What) -> Result<(), Error> {
        self.kept().retain(|one| (&one.key, &one.what) != (key, what));
        Ok(())
    }
}

/// What every place must do where it is kept.
#[cfg(test)]
pub(crate) async fn contract(owed: &dyn Owed) {
    use steward_base::Role;
    use steward_base::names::{SessionId, TeamId, UserId};

    let key = |team: &str, session: &str| SessionKey {
        team: TeamId::parse(team).unwrap(),
        id: SessionId::parse(session).unwrap(),
    };
    let debt = |key: &SessionKey, what: What, at: i64| Debt {
        person: Person {
            team: key.team.clone(),
            user: UserId::parse("ann").unwrap(),
            role: Role::Maintainer,
        },
        key: key.clone(),
        what,
        since: Timestamp::from_secs(at),
    };
    let (one, two, other) = (key("red", "s1"), key("red", "s2"), key("blue", "s1"));
    let turn = |id: &str| What::Turn(id.to_owned());
    for (key, what, at) in [
        (&two, turn("t9"), 1),
        (&one, turn("t2"), 2),
        (&one, turn("t1"), 3),
        (&other, turn("t1"), 4),
        (&one, What::End, 5),
        (&one, turn("t2"), 6),
    ] {
        owed.owe(debt(key, what, at)).await.unwrap();
    }
    let expected = [
        debt(&one, turn("t2"), 2),
        debt(&one, turn("t1"), 3),
        debt(&one, What::End, 5),
    ];
    assert_eq!(owed.of(&one).await.unwrap(), expected, "as it came, each once");
    assert_eq!(
        owed.sessions(9).await.unwrap(),
        [two.clone(), one.clone(), other.clone()]
    );
    assert_eq!(owed.sessions(1).await.unwrap(), std::slice::from_ref(&two));
    for _ in 0..2 {
        owed.settle(&one, &turn("t2")).await.unwrap();
        owed.settle(&two, &turn("t9")).await.unwrap();
    }
    assert_eq!(owed.of(&one).await.unwrap(), expected[1..]);
    assert_eq!(owed.sessions(9).await.unwrap(), [one, other]);
    assert!(owed.of(&two).await.unwrap().is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_keeps_what_is_owed() {
        contract(&InMemoryOwed::default()).await;
    }
}
