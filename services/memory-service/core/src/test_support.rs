//! Callers, names and books for the tests of this crate.

use std::collections::BTreeSet;

use steward_base::names::{EntryId, TeamId, UserId};
use steward_base::{Caller, Identity, JobRef, Origin, Role, Timestamp};

use crate::book::Book;
use crate::entry::{Entry, Provenance};
use crate::owner::{Owner, StoreName, Target};

pub(crate) fn team(id: &str) -> TeamId {
    TeamId::parse(id).unwrap()
}

pub(crate) fn person(id: &str) -> Owner {
    Owner::Person(UserId::parse(id).unwrap())
}

pub(crate) fn project(id: &str) -> Owner {
    Owner::project(id).unwrap()
}

pub(crate) fn store(team_id: &str, owner: Owner, target: Target) -> StoreName {
    StoreName {
        team: team(team_id),
        owner,
        target,
    }
}

fn caller(team_id: &str, user: &str, role: Role, origin: Origin, identity: Identity) -> Caller {
    let user = Some(UserId::parse(user).unwrap());
    Caller {
        team: Some(team(team_id)),
        user,
        role,
        origin,
        identity,
        token_id: "token".to_owned(),
    }
}

pub(crate) fn user(team_id: &str, user: &str, role: Role) -> Caller {
    caller(team_id, user, role, Origin::Foreground, Identity::User)
}

pub(crate) fn turn(team_id: &str, user: &str, turn: &str) -> Caller {
    let capabilities = BTreeSet::from(["memory".to_owned()]);
    let identity = Identity::Turn {
        session: "s1".to_owned(),
        turn: turn.to_owned(),
        capabilities,
    };
    caller(team_id, user, Role::Member, Origin::Foreground, identity)
}

pub(crate) fn reviewer(team_id: &str, user: &str, fence: u64) -> Caller {
    let capabilities = BTreeSet::from(["memory".to_owned()]);
    let job = JobRef {
        id: "job1".to_owned(),
        fence,
    };
    let identity = Identity::Job {
        job,
        session: Some("s1".to_owned()),
        capabilities,
    };
    caller(team_id, user, Role::Member, Origin::Review, identity)
}

pub(crate) fn provenance() -> Provenance {
    Provenance::of(&user("red", "ann", Role::Member), None, String::new())
}

/// A book with these entries, `e1`, `e2`, …
pub(crate) fn book(contents: &[&str]) -> Book {
    let mut book = Book {
        revision: contents.len() as u64,
        ..Book::default()
    };
    for (at, content) in contents.iter().enumerate() {
        let at_time = Timestamp::from_secs(i64::try_from(at).unwrap());
        book.insert(Entry {
            id: EntryId::parse(format!("e{}", at + 1)).unwrap(),
            content: (*content).to_owned(),
            revision: 1,
            created: at_time,
            changed: at_time,
            provenance: provenance(),
            failed_check: None,
        });
    }
    book
}
