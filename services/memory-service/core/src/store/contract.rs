//! What every [`MemoryStore`] must do: one suite for the in-memory store and for SQL.
//!
//! Each case gets a fresh store from the maker and panics with a sentence when the contract is broken.
#![expect(clippy::unwrap_used, reason = "a broken contract must stop the suite where it is")]

mod people;

use std::future::Future;
use std::sync::Arc;

use steward_base::names::{EntryId, SessionId, TeamId, UserId};
use steward_base::{Integrity, JobRef, Origin, Timestamp};

use crate::access::Waiting;
use crate::book::Refusals;
use crate::edit::Operation;
use crate::entry::{Action, Basis, Entry, Evidence, Provenance, Revision};
use crate::error::Error;
use crate::freshness::Holds;
use crate::owner::{Owner, StoreName, Target};
use crate::proposal::{Decided, Proposal, ProposalId, State};
use crate::store::{Decision, Frame, MemoryStore, ProposalQuery, RequestKey, Visible, listed_id};

/// Runs all cases, each on a store of its own.
pub async fn all<M, F>(make: M)
where
    M: Fn() -> F,
    F: Future<Output = Arc<dyn MemoryStore>>,
{
    what_is_kept_is_read_back(&*make().await).await;
    a_failed_decision_keeps_nothing(&*make().await).await;
    a_request_id_gives_its_first_answer(&*make().await).await;
    a_stale_fence_is_refused(&*make().await).await;
    stores_and_teams_are_apart(&*make().await).await;
    entries_come_by_creation(&*make().await).await;
    proposals_are_paged_by_who_may_see_them(&*make().await).await;
    concurrent_writes_all_survive(make().await).await;
    people::what_is_no_text_is_kept_as_it_came_until_it_is_let_go(&*make().await).await;
    people::what_waits_is_counted_for_who_may_see_it(&*make().await).await;
    people::what_no_longer_holds_is_counted_in_every_shared_store(&*make().await).await;
    people::all_that_is_held_on_a_person_is_given(&*make().await).await;
    people::what_is_erased_is_gone_and_what_rests_on_it_is_named(&*make().await).await;
}

/// A store of `owner` in `team`.
pub fn store(team: &str, owner: Owner, target: Target) -> StoreName {
    StoreName {
        team: TeamId::parse(team).unwrap(),
        owner,
        target,
    }
}

/// A person.
pub fn person(id: &str) -> Owner {
    Owner::Person(UserId::parse(id).unwrap())
}

/// A frame that checks and loads nothing beyond the book.
pub fn frame(store: &StoreName) -> Frame {
    Frame {
        store: store.clone(),
        at: Timestamp::from_secs(1_000),
        request: None,
        job: None,
        entry: None,
        proposal: None,
        fingerprint: None,
    }
}

fn provenance(author: &str) -> Provenance {
    Provenance {
        author: Some(UserId::parse(author).unwrap()),
        origin: Origin::Review,
        session: Some(SessionId::parse("s1").unwrap()),
        turn: Some("t1".to_owned()),
        job: Some("j1".to_owned()),
        evidence: Some(Evidence {
            session: SessionId::parse("s1").unwrap(),
            spans: vec!["s3".to_owned(), "s4.1".to_owned()],
            basis: Some(Basis::Stated),
            integrity: Some(Integrity::Person),
        }),
        reason: "said twice".to_owned(),
        approved_by: Some(UserId::parse("max").unwrap()),
        holds: Holds {
            until: Some(Timestamp::from_secs(9_000)),
            checks: vec!["exists:justfile".to_owned()],
        },
    }
}

fn entry(id: &str, content: &str, revision: u32, created: i64) -> Entry {
    Entry {
        id: EntryId::parse(id).unwrap(),
        content: content.to_owned(),
        revision,
        created: Timestamp::from_micros(created),
        changed: Timestamp::from_micros(created + 5),
        provenance: provenance("ann"),
        failed_check: None,
    }
}

fn revision(entry: &Entry, action: Action) -> Revision {
    Revision {
        entry: entry.id.clone(),
        number: entry.revision,
        action,
        content: (action != Action::Removed).then(|| entry.content.clone()),
        at: entry.changed,
        provenance: entry.provenance.clone(),
    }
}

/// A decision that adds `content` as an entry called `id`, and answers `answer`.
pub fn adding(id: &str, content: &str, answer: &str, book_revision: u64) -> Decision {
    let entry = entry(id, content, 1, i64::try_from(book_revision).unwrap());
    Decision {
        head: Some((book_revision, Refusals::default())),
        revisions: vec![revision(&entry, Action::Added)],
        put: vec![entry],
        answer: answer.to_owned(),
        ..Decision::default()
    }
}

async fn what_is_kept_is_read_back(memory: &dyn MemoryStore) {
    let notes = store("red", person("ann"), Target::Notes);
    let mut refusals = Refusals::default();
    refusals.count("t1", 3);
    let first = entry("e1", "line one\n§\nline 三 \u{1f600}", 1, 10);
    let kept = (first.clone(), refusals.clone());
    let answer = memory
        .write(
            frame(&notes),
            Box::new(move |loaded| {
                assert_eq!(loaded.book.revision, 0, "a store that was never written to is empty");
                let (entry, refusals) = kept;
                Ok(Decision {
                    head: Some((1, refusals)),
                    revisions: vec![revision(&entry, Action::Added)],
                    put: vec![entry],
                    answer: "ok".to_owned(),
                    ..Decision::default()
                })
            }),
        )
        .await
        .unwrap();
    assert_eq!(answer, "ok");
    let book = memory.book(&notes).await.unwrap();
    assert_eq!(
        (book.revision, &book.refusals, &book.entries[..]),
        (1, &refusals, &[first.clone()][..])
    );

    let second = Entry {
        content: "changed".to_owned(),
        revision: 2,
        ..first.clone()
    };
    let third = Entry {
        revision: 3,
        ..second.clone()
    };
    let steps = [second.clone(), third.clone()];
    let mut look = frame(&notes);
    look.entry = Some(first.id.clone());
    memory
        .write(
            look,
            Box::new(move |loaded| {
                assert_eq!(loaded.history.len(), 1);
                let [second, third] = &steps;
                Ok(Decision {
                    head: Some((2, Refusals::default())),
                    revisions: vec![revision(second, Action::Replaced), revision(third, Action::Removed)],
                    gone: vec![third.id.clone()],
                    ..Decision::default()
                })
            }),
        )
        .await
        .unwrap();
    assert!(memory.book(&notes).await.unwrap().entries.is_empty());
    let history = memory.history(&notes, &first.id).await.unwrap();
    let wanted = [
        revision(&first, Action::Added),
        revision(&second, Action::Replaced),
        revision(&third, Action::Removed),
    ];
    assert_eq!(history, wanted);
}

async fn a_failed_decision_keeps_nothing(memory: &dyn MemoryStore) {
    let notes = store("red", person("ann"), Target::Notes);
    let mut keyed = frame(&notes);
    keyed.request = Some(key("r1", "h"));
    keyed.job = Some(JobRef {
        id: "j1".to_owned(),
        fence: 9,
    });
    let refusal = Error::EtagMismatch {
        expected: "1".to_owned(),
        current: "2".to_owned(),
    };
    let failed = memory.write(keyed.clone(), Box::new(|_| Err(refusal))).await;
    assert!(matches!(failed, Err(Error::EtagMismatch { .. })), "{failed:?}");
    keyed.job = Some(JobRef {
        id: "j1".to_owned(),
        fence: 1,
    });
    let answer = memory
        .write(keyed, Box::new(|_| Ok(adding("e1", "x", "second", 1))))
        .await
        .unwrap();
    assert_eq!(answer, "second", "neither the request id nor the fence was kept");
}

fn key(id: &str, hash: &str) -> RequestKey {
    RequestKey {
        scope: "apply/ann".to_owned(),
        id: id.to_owned(),
        hash: hash.to_owned(),
    }
}

async fn a_request_id_gives_its_first_answer(memory: &dyn MemoryStore) {
    let notes = store("red", person("ann"), Target::Notes);
    let mut keyed = frame(&notes);
    keyed.request = Some(key("r1", "h1"));
    memory
        .write(keyed.clone(), Box::new(|_| Ok(adding("e1", "x", "first", 1))))
        .await
        .unwrap();
    let again = memory
        .write(keyed.clone(), Box::new(|_| Ok(adding("e2", "y", "second", 2))))
        .await
        .unwrap();
    assert_eq!(again, "first");
    keyed.request = Some(key("r1", "h2"));
    let other = memory
        .write(keyed.clone(), Box::new(|_| Ok(adding("e3", "z", "third", 2))))
        .await;
    assert!(matches!(other, Err(Error::RequestIdReused { .. })), "{other:?}");
    keyed.request = Some(RequestKey {
        scope: "apply/bob".to_owned(),
        ..key("r1", "h2")
    });
    let elsewhere = memory
        .write(keyed, Box::new(|_| Ok(adding("e4", "w", "fourth", 2))))
        .await
        .unwrap();
    assert_eq!(elsewhere, "fourth", "another person's id is another id");
    assert_eq!(memory.book(&notes).await.unwrap().entries.len(), 2);
}

async fn a_stale_fence_is_refused(memory: &dyn MemoryStore) {
    let notes = store("red", person("ann"), Target::Notes);
    let with = |fence, request: &str| {
        let mut framed = frame(&notes);
        framed.job = Some(JobRef {
            id: "j1".to_owned(),
            fence,
        });
        framed.request = Some(key(request, "h"));
        framed
    };
    memory
        .write(with(1, "a"), Box::new(|_| Ok(adding("e1", "x", "a", 1))))
        .await
        .unwrap();
    memory
        .write(with(3, "b"), Box::new(|_| Ok(adding("e2", "y", "b", 2))))
        .await
        .unwrap();
    let late = memory
        .write(with(2, "c"), Box::new(|_| Ok(adding("e3", "z", "c", 3))))
        .await;
    assert!(
        matches!(
            late,
            Err(Error::StaleFence {
                fence: 2,
                current: 3,
                ..
            })
        ),
        "{late:?}"
    );
    let replay = memory.write(with(1, "a"), Box::new(|_| Ok(Decision::default()))).await;
    assert!(
        matches!(replay, Err(Error::StaleFence { .. })),
        "a stale job does not even get old answers: {replay:?}"
    );
    let replay = memory
        .write(with(4, "a"), Box::new(|_| Ok(Decision::default())))
        .await
        .unwrap();
    assert_eq!(replay, "a", "the next claim gets the first answer of its predecessor");
    let late = memory
        .write(with(3, "d"), Box::new(|_| Ok(adding("e5", "v", "d", 3))))
        .await;
    assert!(
        matches!(late, Err(Error::StaleFence { current: 4, .. })),
        "a replay counts as a sight of the fence"
    );
}

async fn stores_and_teams_are_apart(memory: &dyn MemoryStore) {
    let project = Owner::Project("site".to_owned());
    let stores = [
        store("red", person("ann"), Target::Notes),
        store("red", person("ann"), Target::Profile),
        store("red", person("bob"), Target::Notes),
        store("red", Owner::Team, Target::Notes),
        store("red", project.clone(), Target::Notes),
        store("blue", person("ann"), Target::Notes),
        store("blue", project, Target::Notes),
    ];
    for (at, one) in stores.iter().enumerate() {
        let text = format!("only {at}");
        let id = format!("e{at}");
        memory
            .write(frame(one), Box::new(move |_| Ok(adding(&id, &text, "", 1))))
            .await
            .unwrap();
    }
    let books = memory.books(&stores).await.unwrap();
    for (at, (one, book)) in stores.iter().zip(&books).enumerate() {
        assert_eq!(book.entries.len(), 1, "{one}");
        assert_eq!(book.entries[0].content, format!("only {at}"));
        assert_eq!(memory.book(one).await.unwrap(), *book);
    }
    let foreign = memory.history(&stores[2], &books[0].entries[0].id).await.unwrap();
    assert!(foreign.is_empty(), "another store's entry has no history here");
}

async fn entries_come_by_creation(memory: &dyn MemoryStore) {
    let notes = store("red", person("ann"), Target::Notes);
    for (id, book_revision, created) in [("z", 1, 3), ("b", 2, 1), ("a", 3, 1), ("m", 4, 2)] {
        let put = entry(id, id, 1, created);
        memory
            .write(
                frame(&notes),
                Box::new(move |_| {
                    let revisions = vec![revision(&put, Action::Added)];
                    let head = Some((book_revision, Refusals::default()));
                    Ok(Decision {
                        head,
                        revisions,
                        put: vec![put],
                        ..Decision::default()
                    })
                }),
            )
            .await
            .unwrap();
    }
    let book = memory.book(&notes).await.unwrap();
    let ids: Vec<&str> = book.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "m", "z"]);
}

/// A pending proposal on the memory of `owner`.
pub fn proposal(id: &str, owner: Owner, author: &str) -> Proposal {
    Proposal {
        id: ProposalId::parse(id).unwrap(),
        owner,
        target: Target::Notes,
        operations: vec![
            Operation::Add {
                content: "new".to_owned(),
            },
            Operation::Replace {
                old_text: "a".to_owned(),
                content: "b".to_owned(),
            },
            Operation::Remove {
                old_text: "c".to_owned(),
            },
        ],
        waiting: Waiting::SharedByMember,
        provenance: provenance(author),
        created: Timestamp::from_secs(7),
        state: State::Pending,
        decided: None,
        expires: Timestamp::from_secs(100_000),
        fingerprint: format!("print of {id}"),
        shown: true,
        edited: None,
    }
}

/// Keeps a proposal; how many waited for its owner before.
pub async fn keep(memory: &dyn MemoryStore, team: &str, proposal: Proposal) -> usize {
    let mut framed = frame(&store(team, proposal.owner.clone(), Target::Notes));
    framed.proposal = Some(proposal.id.clone());
    framed.fingerprint = Some(proposal.fingerprint.clone());
    let (seen, counted) = std::sync::mpsc::channel();
    memory
        .write(
            framed,
            Box::new(move |loaded| {
                let _ = seen.send(loaded.pending);
                Ok(Decision {
                    proposals: vec![proposal],
                    ..Decision::default()
                })
            }),
        )
        .await
        .unwrap();
    counted.recv().unwrap()
}

async fn proposals_are_paged_by_who_may_see_them(memory: &dyn MemoryStore) {
    let team = TeamId::parse("red").unwrap();
    assert_eq!(keep(memory, "red", proposal("p1", Owner::Team, "ann")).await, 0);
    assert_eq!(keep(memory, "red", proposal("p2", person("ann"), "ann")).await, 0);
    assert_eq!(keep(memory, "red", proposal("p3", person("bob"), "bob")).await, 0);
    assert_eq!(keep(memory, "red", proposal("p4", Owner::Team, "bob")).await, 1);
    keep(memory, "blue", proposal("p5", Owner::Team, "ann")).await;
    let page = |user: &str, shared, state, after: Option<&str>, limit| ProposalQuery {
        team: team.clone(),
        state,
        visible: Visible {
            user: Some(UserId::parse(user).unwrap()),
            shared,
        },
        at: Timestamp::from_secs(1_000),
        after: after.map(str::to_owned),
        limit,
    };
    let ids = async |query: ProposalQuery| -> Vec<String> {
        memory
            .proposals(&query)
            .await
            .unwrap()
            .iter()
            .map(|one| listed_id(one).to_owned())
            .collect()
    };
    assert_eq!(ids(page("ann", false, State::Pending, None, 10)).await, ["p1", "p2"]);
    assert_eq!(ids(page("ann", true, State::Pending, None, 2)).await, ["p1", "p2"]);
    assert_eq!(ids(page("ann", true, State::Pending, Some("p2"), 2)).await, ["p4"]);
    assert_eq!(ids(page("bob", false, State::Pending, None, 10)).await, ["p3", "p4"]);

    let decided = Decided {
        by: Some(UserId::parse("max").unwrap()),
        at: Timestamp::from_secs(9),
        reason: "no".into(),
    };
    let rejected = Proposal {
        state: State::Rejected,
        decided: Some(decided),
        ..proposal("p1", Owner::Team, "ann")
    };
    assert_eq!(keep(memory, "red", rejected.clone()).await, 2);
    assert_eq!(memory.proposal(&team, &rejected.id).await.unwrap(), Some(rejected));
    assert_eq!(ids(page("ann", true, State::Pending, None, 10)).await, ["p2", "p4"]);
    assert_eq!(ids(page("ann", false, State::Rejected, None, 10)).await, ["p1"]);
    let elsewhere = TeamId::parse("green").unwrap();
    assert_eq!(
        memory
            .proposal(&elsewhere, &ProposalId::parse("p1").unwrap())
            .await
            .unwrap(),
        None
    );
}

async fn concurrent_writes_all_survive(memory: Arc<dyn MemoryStore>) {
    let notes = store("red", Owner::Team, Target::Notes);
    let writes = (0..20).map(|at| {
        let (memory, notes) = (Arc::clone(&memory), notes.clone());
        async move {
            let decide = move |loaded: &super::Loaded| {
                let id = format!("e{at}");
                Ok(adding(&id, &format!("fact {at}"), "", loaded.book.revision + 1))
            };
            memory.write(frame(&notes), Box::new(decide)).await.unwrap();
        }
    });
    futures::future::join_all(writes).await;
    let book = memory.book(&notes).await.unwrap();
    assert_eq!(
        (book.entries.len(), book.revision),
        (20, 20),
        "each write saw the one before"
    );
}
