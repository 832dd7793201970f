//! The contract on what is kept about people and for them: what is no text, what waits, what no longer holds, what is held on
//! a person and what becomes of it when it is erased.

use steward_base::Timestamp;
use steward_base::names::{EntryId, TeamId, UserId};

use super::{entry, frame, keep, person, proposal, revision, store};
use crate::book::Refusals;
use crate::entry::{Action, Entry};
use crate::freshness::Holds;
use crate::owner::{Owner, StoreName, Target};
use crate::personal::{Derived, Holding, Receipt, Support};
use crate::proposal::{Decided, Proposal, Rejection, State};
use crate::store::{Decision, MemoryStore, RequestKey, Visible};
use crate::transfer::Held;

/// Keeps one decision.
async fn decide(memory: &dyn MemoryStore, store: &StoreName, decision: Decision) {
    memory
        .write(frame(store), Box::new(move |_| Ok(decision)))
        .await
        .unwrap();
}

/// Keeps an entry in its first revision.
async fn put(memory: &dyn MemoryStore, store: &StoreName, entry: Entry) {
    let book = memory.book(store).await.unwrap();
    let decision = Decision {
        head: Some((book.revision + 1, Refusals::default())),
        revisions: vec![revision(&entry, Action::Added)],
        put: vec![entry],
        ..Decision::default()
    };
    decide(memory, store, decision).await;
}

fn held(id: &str, bytes: &[u8], at: i64) -> Held {
    Held {
        id: EntryId::parse(id).unwrap(),
        bytes: bytes.to_vec(),
        at: Timestamp::from_secs(at),
    }
}

fn team() -> TeamId {
    TeamId::parse("red").unwrap()
}

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

/// `M-2`, D-11: bytes stay as they came, in the store they came to, until a person lets go of them.
pub(super) async fn what_is_no_text_is_kept_as_it_came_until_it_is_let_go(memory: &dyn MemoryStore) {
    let notes = store("red", person("ann"), Target::Notes);
    let (first, second) = (held("h1", b"caf\xe9", 2), held("h2", b"\xff\x00", 1));
    let both = Decision {
        held: vec![first.clone(), second.clone()],
        ..Decision::default()
    };
    decide(memory, &notes, both).await;
    assert_eq!(memory.held(&notes).await.unwrap().len(), 2);
    for other in [
        store("red", person("ann"), Target::Profile),
        store("red", person("bob"), Target::Notes),
        store("blue", person("ann"), Target::Notes),
    ] {
        assert_eq!(memory.held(&other).await.unwrap(), [], "{other} is another store");
    }
    let go = Decision {
        let_go: vec![first.id.clone(), EntryId::parse("nothing").unwrap()],
        ..Decision::default()
    };
    decide(memory, &notes, go).await;
    assert_eq!(memory.held(&notes).await.unwrap(), [second]);
    assert_eq!(memory.book(&notes).await.unwrap().entries, [], "it is no entry");
}

/// `L-7`: what waits is counted for who may see it, and what expired or was decided waits no more.
pub(super) async fn what_waits_is_counted_for_who_may_see_it(memory: &dyn MemoryStore) {
    let of = |id: &str, owner: Owner, author: &str, created: i64| Proposal {
        created: Timestamp::from_secs(created),
        ..proposal(id, owner, author)
    };
    let hidden = Proposal {
        shown: false,
        ..of("p1", Owner::Team, "ann", 10)
    };
    let expired = Proposal {
        expires: Timestamp::from_secs(500),
        ..of("p5", Owner::Team, "bob", 1)
    };
    let decided = Proposal {
        state: State::Rejected,
        decided: Some(Decided {
            by: Some(user("max")),
            at: Timestamp::from_secs(9),
            reason: "no".into(),
        }),
        ..of("p6", Owner::Team, "bob", 2)
    };
    let project = Owner::from_key("projects/web").unwrap();
    for one in [
        hidden,
        of("p2", project, "bob", 20),
        of("p3", person("ann"), "ann", 30),
        of("p4", person("bob"), "bob", 5),
        expired,
        decided,
    ] {
        keep(memory, "red", one).await;
    }
    keep(memory, "blue", of("p7", Owner::Team, "ann", 3)).await;
    let waiting = async |who: Option<&str>, shared| {
        let visible = Visible {
            user: who.map(user),
            shared,
        };
        let at = Timestamp::from_secs(1_000);
        let (count, oldest) = memory.waiting(&team(), &visible, at).await.unwrap();
        (count, oldest.map(Timestamp::as_secs))
    };
    assert_eq!(
        waiting(Some("ann"), false).await,
        (2, Some(10)),
        "her own, shown or not"
    );
    assert_eq!(
        waiting(Some("max"), true).await,
        (1, Some(20)),
        "what is shared and shown"
    );
    assert_eq!(waiting(Some("bob"), true).await, (2, Some(5)));
    assert_eq!(waiting(Some("eve"), false).await, (0, None));
    assert_eq!(waiting(None, true).await, (1, Some(20)));
}

/// What has ended or failed a check is counted where it is shared, projects included, and in one's own stores.
pub(super) async fn what_no_longer_holds_is_counted_in_every_shared_store(memory: &dyn MemoryStore) {
    let holding = |id: &str, until: Option<i64>| {
        let mut one = entry(id, id, 1, 1);
        one.provenance.holds = Holds {
            until: until.map(Timestamp::from_secs),
            checks: vec!["exists:justfile".to_owned()],
        };
        one
    };
    let project = store("red", Owner::from_key("projects/web").unwrap(), Target::Notes);
    let shared = store("red", Owner::Team, Target::Notes);
    put(memory, &project, holding("e1", Some(100))).await;
    put(memory, &project, holding("e2", None)).await;
    put(memory, &shared, holding("e3", Some(2_000))).await;
    put(
        memory,
        &store("red", person("ann"), Target::Profile),
        holding("e4", Some(1_000)),
    )
    .await;
    put(
        memory,
        &store("red", person("bob"), Target::Notes),
        holding("e5", Some(1)),
    )
    .await;
    put(
        memory,
        &store("blue", Owner::Team, Target::Notes),
        holding("e6", Some(1)),
    )
    .await;
    let stale = async |who: Option<&str>, at| {
        let who = who.map(user);
        memory
            .stale(&team(), who.as_ref(), Timestamp::from_secs(at))
            .await
            .unwrap()
    };
    assert_eq!(stale(None, 1_000).await, 1, "the project's");
    assert_eq!(stale(Some("ann"), 999).await, 1, "hers has not ended");
    assert_eq!(stale(Some("ann"), 1_000).await, 2, "hers ends at its very end");
    assert_eq!(stale(Some("ann"), 2_000).await, 3);
    let failed = Decision {
        checked: vec![(EntryId::parse("e2").unwrap(), 1, Some("exists:justfile".to_owned()))],
        ..Decision::default()
    };
    decide(memory, &project, failed).await;
    assert_eq!(stale(None, 1_000).await, 2, "a check failed");
}

/// What a store holds on ann: her own entry, bytes, rejection, proposal and first answer, and three shared entries.
async fn fill(memory: &dyn MemoryStore) -> StoreName {
    let own = store("red", person("ann"), Target::Notes);
    let shared = store("red", Owner::Team, Target::Notes);
    put(memory, &own, entry("e1", "her own", 1, 1)).await;
    let mut sole = entry("e2", "rests on ann", 1, 2);
    sole.provenance.approved_by = None;
    put(memory, &shared, sole).await;
    put(memory, &shared, entry("e3", "approved by max", 1, 3)).await;
    let mut other = entry("e4", "bob's", 1, 4);
    other.provenance.author = Some(user("bob"));
    put(memory, &shared, other).await;
    put(
        memory,
        &store("red", person("bob"), Target::Notes),
        entry("e5", "his", 1, 5),
    )
    .await;
    put(
        memory,
        &store("blue", person("ann"), Target::Notes),
        entry("e6", "elsewhere", 1, 6),
    )
    .await;
    keep(memory, "red", proposal("p1", person("ann"), "ann")).await;
    keep(memory, "red", proposal("p2", Owner::Team, "bob")).await;
    let more = Decision {
        held: vec![held("h1", b"\xff", 1)],
        rejection: Some(Rejection {
            fingerprint: "print".to_owned(),
            at: Timestamp::from_secs(1),
            reason: "no".to_owned(),
        }),
        answer: "first".to_owned(),
        ..Decision::default()
    };
    let mut framed = frame(&own);
    framed.request = Some(request());
    memory.write(framed, Box::new(move |_| Ok(more))).await.unwrap();
    own
}

fn request() -> RequestKey {
    RequestKey {
        scope: "apply/ann".to_owned(),
        id: "r1".to_owned(),
        hash: "h".to_owned(),
    }
}

/// `M-14`: a person gets all that is held on them, and nothing of others.
pub(super) async fn all_that_is_held_on_a_person_is_given(memory: &dyn MemoryStore) {
    fill(memory).await;
    let mut seen: Vec<String> = memory
        .personal(&team(), &user("ann"))
        .await
        .unwrap()
        .iter()
        .map(|holding| match holding {
            Holding::Revision {
                store,
                revision,
                present,
            } => format!("{} {} {present}", store.entry(&revision.entry), revision.number),
            Holding::Proposal(one) => one.id.to_string(),
            Holding::Held { held, .. } => held.id.to_string(),
        })
        .collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            "h1",
            "p1",
            "teams/red/memory/notes/entries/e2 1 true",
            "teams/red/memory/notes/entries/e3 1 true",
            "teams/red/users/ann/memory/notes/entries/e1 1 true",
        ]
    );
    assert_eq!(memory.personal(&team(), &user("eve")).await.unwrap(), []);
}

fn derived(receipt: &Receipt) -> Vec<(&str, Support, bool)> {
    let of = |one: &Derived| one.entry.rsplit('/').next().unwrap_or_default().len();
    assert!(receipt.derived.iter().all(|one| of(one) > 0 && one.revision == 1));
    let mut all: Vec<_> = receipt
        .derived
        .iter()
        .map(|one| (one.entry.as_str(), one.support, one.erased))
        .collect();
    all.sort_unstable();
    all
}

/// `M-14`: what is a person's own goes for good; what others share is named, and goes if it rests on this person alone and
/// that is asked for. The book stays, with a later revision.
pub(super) async fn what_is_erased_is_gone_and_what_rests_on_it_is_named(memory: &dyn MemoryStore) {
    let own = fill(memory).await;
    let shared = store("red", Owner::Team, Target::Notes);
    let before = memory.book(&own).await.unwrap().revision;
    let (team, ann, at) = (team(), user("ann"), Timestamp::from_secs(5));
    let first = memory.erase(&team, &ann, false, at).await.unwrap();
    let counts = (first.entries, first.revisions, first.proposals, first.others);
    assert_eq!((counts, first.found_after), ((1, 1, 1, 3), 0));
    let (sole, mixed) = ("teams/red/memory/notes/entries/e2", "teams/red/memory/notes/entries/e3");
    assert_eq!(
        derived(&first),
        [(sole, Support::Sole, false), (mixed, Support::Mixed, false)]
    );
    let book = memory.book(&own).await.unwrap();
    assert_eq!((book.entries.len(), book.revision > before), (0, true));
    assert_eq!(memory.held(&own).await.unwrap(), []);
    let mut framed = frame(&own);
    framed.request = Some(request());
    framed.fingerprint = Some("print".to_owned());
    let again = memory
        .write(
            framed,
            Box::new(|loaded| {
                assert_eq!((&loaded.rejected, loaded.pending), (&None, 0));
                Ok(Decision {
                    answer: "second".to_owned(),
                    ..Decision::default()
                })
            }),
        )
        .await;
    assert_eq!(again.unwrap(), "second", "the first answer is forgotten");
    assert_eq!(memory.book(&shared).await.unwrap().entries.len(), 3);

    let second = memory.erase(&team, &ann, true, at).await.unwrap();
    assert_eq!(
        derived(&second),
        [(sole, Support::Sole, true), (mixed, Support::Mixed, false)]
    );
    let left = memory.book(&shared).await.unwrap();
    let left: Vec<&str> = left.entries.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(left, ["e3", "e4"]);
    let gone = memory.history(&shared, &EntryId::parse("e2").unwrap()).await.unwrap();
    assert_eq!(gone, [], "with its history");
    for other in [
        store("red", person("bob"), Target::Notes),
        store("blue", person("ann"), Target::Notes),
    ] {
        assert_eq!(
            memory.book(&other).await.unwrap().entries.len(),
            1,
            "{other} is another's"
        );
    }
}
