//! What a curation may do to a library, and how that is undone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{SkillId, UserId};
use steward_base::{JobRef, Role};
use steward_testkit::MockClock;

use super::*;
use crate::gate::Provenance;
use crate::memory_store::InMemorySkillStore;
use crate::name::Scope;
use crate::settings::Settings;
use crate::skills::Skills;
use crate::store::{SkillStore as _, View};
use crate::testing::created;

struct World {
    store: Arc<InMemorySkillStore>,
    library: Library,
    skills: Skills,
    clock: MockClock,
}

fn world() -> World {
    let (store, clock) = (Arc::new(InMemorySkillStore::new()), MockClock::default());
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    World {
        library: Library::new(Arc::<InMemorySkillStore>::clone(&store), Arc::clone(&shared)),
        skills: Skills::new(
            Arc::<InMemorySkillStore>::clone(&store),
            shared,
            Arc::new(steward_testkit::SeqIds::new()),
            Settings::default(),
        ),
        store,
        clock,
    }
}

fn curation(run: &str) -> Actor {
    Actor {
        team: TeamId::parse("red").unwrap(),
        user: UserId::parse("ann").ok(),
        role: Role::Member,
        origin: Origin::Curation,
        session: None,
        turn: None,
        job: Some(JobRef {
            id: run.to_owned(),
            fence: 1,
        }),
        is_agent: true,
        token_id: "t".to_owned(),
    }
}

fn person() -> Actor {
    Actor {
        origin: Origin::Foreground,
        job: None,
        is_agent: false,
        role: Role::Admin,
        ..curation("none")
    }
}

impl World {
    async fn add(&self, scope: &str, name: &str, provenance: Provenance) -> LibraryRecord {
        let text = crate::testing::skill_md(name, "What it does");
        let (record, revision, files) = created(scope, "", name, &text);
        let record = SkillRecord { provenance, ..record };
        let change = Change::of(record.clone(), None, Some((revision, files)));
        self.store.commit(change).await.unwrap();
        self.get(&record.uid).await
    }

    async fn get(&self, uid: &str) -> LibraryRecord {
        let team = TeamId::parse("red").unwrap();
        self.store.library_record(&team, uid).await.unwrap().unwrap().unwrap()
    }

    async fn apply(&self, run: &str, found: &LibraryRecord, age: Age) -> TransitionResult {
        let transition = Transition {
            uid: found.record.uid.clone(),
            etag: found.etag(),
            age,
        };
        let actor = curation(run);
        self.library.create_snapshot(&actor, "teams/red", run).await.unwrap();
        let results = self
            .library
            .apply_transitions(&actor, "teams/red", run, &[transition])
            .await;
        results.unwrap().remove(0)
    }

    async fn undo(&self, run: &str, rollback: &str) -> Vec<TransitionResult> {
        let undone = self
            .library
            .rollback_run(&curation(rollback), "teams/red", run, rollback)
            .await;
        undone.unwrap().1
    }

    async fn use_it(&self, found: &LibraryRecord) {
        let view = View {
            team: found.record.team.clone(),
            uid: found.record.uid.clone(),
            revision: found.record.revision.clone(),
            reader: None,
            is_use: true,
            at: self.clock.now(),
        };
        self.store.record_view(view).await.unwrap();
    }
}

#[tokio::test]
async fn only_what_a_review_made_and_nobody_pinned_is_touched() {
    // D-65, `C-3`, `S-15`.
    let world = world();
    for (provenance, gate) in [
        (Provenance::UserMade, "user_made"),
        (Provenance::Imported, "user_made"),
        (Provenance::Hub, "hub"),
        (Provenance::Builtin, "builtin"),
        (Provenance::External, "external"),
    ] {
        let name = provenance.as_str().replace('_', "-");
        let found = world.add("team", &name, provenance).await;
        for age in [Age::Stale, Age::Archived] {
            let result = world.apply("run", &found, age).await;
            assert_eq!(result.outcome, Outcome::Refused(gate), "{name}");
        }
        assert_eq!(world.get(&found.record.uid).await, found, "{name}");
    }
    let made = world.add("user", "made", Provenance::AgentCreated).await;
    world
        .skills
        .pin_skill(&person(), &made.exact_name(), true)
        .await
        .unwrap();
    let pinned = world.get(&made.record.uid).await;
    assert_eq!(
        world.apply("run", &pinned, Age::Archived).await.outcome,
        Outcome::Refused("pinned")
    );
    world
        .skills
        .pin_skill(&person(), &made.exact_name(), false)
        .await
        .unwrap();
    world
        .store
        .damage_record(&TeamId::parse("red").unwrap(), &made.record.uid);
    assert_eq!(
        world.apply("run", &pinned, Age::Archived).await.outcome,
        Outcome::Refused("unreadable")
    );
}

#[tokio::test]
async fn what_was_used_or_changed_since_it_was_read_is_left_alone() {
    let world = world();
    let read = world.add("team", "one", Provenance::AgentCreated).await;
    world.use_it(&read).await;
    assert_eq!(
        world.apply("run", &read, Age::Archived).await.outcome,
        Outcome::Conflict("changed")
    );
    assert_eq!(world.get(&read.record.uid).await.age(), Age::Active);
}

#[tokio::test]
async fn a_second_try_of_a_run_does_nothing_twice() {
    let world = world();
    let read = world.add("team", "one", Provenance::AgentCreated).await;
    let first = world.apply("run", &read, Age::Archived).await;
    assert_eq!(
        (first.outcome, first.from, first.to),
        (Outcome::Applied, Age::Active, Age::Archived)
    );
    let after = world.get(&read.record.uid).await;
    assert_eq!(world.apply("run", &read, Age::Archived).await.outcome, Outcome::Applied);
    assert_eq!(world.get(&read.record.uid).await, after);
}

#[tokio::test]
async fn nothing_changes_without_the_runs_snapshot_or_in_another_runs_name() {
    let world = world();
    world.add("team", "one", Provenance::AgentCreated).await;
    let no_snapshot = world
        .library
        .apply_transitions(&curation("run"), "teams/red", "run", &[])
        .await;
    assert!(matches!(no_snapshot, Err(Error::SnapshotNotFound { .. })));
    for (parent, run) in [("teams/red", "other"), ("teams/blue", "run"), ("nonsense", "run")] {
        let refused = world.library.create_snapshot(&curation("run"), parent, run).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{parent} {run}");
    }
}

#[tokio::test]
async fn undoing_a_run_puts_back_files_state_and_counters() {
    // D-63 as far as ageing goes.
    let world = world();
    let archived = world.add("user", "one", Provenance::AgentCreated).await;
    let stale = world.add("team", "two", Provenance::AgentCreated).await;
    world.use_it(&archived).await;
    let archived = world.get(&archived.record.uid).await;
    world.apply("run", &archived, Age::Archived).await;
    world.apply("run", &stale, Age::Stale).await;
    world.clock.advance(Duration::from_hours(1));
    let undone = world.undo("run", "undo").await;
    assert!(
        undone.iter().all(|result| result.outcome == Outcome::Applied),
        "{undone:?}"
    );
    for before in [archived, stale] {
        let after = world.get(&before.record.uid).await;
        assert_eq!(after.age(), Age::Active);
        assert_eq!(
            (after.record.tree, after.record.usage, after.record.pinned),
            (before.record.tree, before.record.usage, before.record.pinned)
        );
    }
    let again = world.undo("run", "undo").await;
    assert_eq!(again, undone, "the second try of the undoing did something else");
    // The undoing is a run like any other, and is undone like one.
    world.undo("undo", "redo").await;
    let ages = [Age::Archived, Age::Stale];
    for (uid, age) in undone
        .iter()
        .map(|result| &result.uid)
        .zip(ages_by(&world, &undone, ages).await)
    {
        assert_eq!(world.get(uid).await.age(), age);
    }
}

/// The ages in the order of the results.
async fn ages_by(world: &World, results: &[TransitionResult], ages: [Age; 2]) -> Vec<Age> {
    let mut ordered = Vec::new();
    for result in results {
        let is_user = matches!(world.get(&result.uid).await.record.scope, Scope::User(_));
        ordered.push(if is_user { ages[0] } else { ages[1] });
    }
    ordered
}

#[tokio::test]
async fn what_people_did_since_is_kept_and_named() {
    let world = world();
    let mut all = Vec::new();
    for name in ["pinned", "restored", "purged", "taken"] {
        all.push(world.add("team", name, Provenance::AgentCreated).await);
    }
    let mut names = Vec::new();
    for found in all {
        world.apply("run", &found, Age::Archived).await;
        names.push(world.get(&found.record.uid).await.exact_name());
    }
    let (admin, skills) = (person(), &world.skills);
    skills.pin_skill(&admin, &names[0], true).await.unwrap();
    skills.restore_skill(&admin, &names[1]).await.unwrap();
    skills.purge_skill(&admin, &names[2]).await.unwrap();
    let namesake = created("team", "", "taken", "---\nname: taken\ndescription: d\n---\nb").0;
    let namesake = SkillRecord {
        uid: "0198c0000000700080000000000000ff".to_owned(),
        name: SkillId::parse("taken").unwrap(),
        ..namesake
    };
    let change = Change::of(namesake, None, None);
    world.store.commit(change).await.unwrap();
    let mut undone = world.undo("run", "undo").await;
    undone.sort_by(|one, two| one.name.cmp(&two.name));
    let outcomes: Vec<Outcome> = undone.iter().map(|result| result.outcome).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Conflict("changed"),
            Outcome::Conflict("gone"),
            Outcome::Unchanged,
            Outcome::Conflict("name_taken"),
        ]
    );
}

/// `C-4`: what changed nothing is undone by doing nothing; what is no longer known is not.
#[tokio::test]
async fn undoing_a_run_that_changed_nothing_succeeds_and_takes_no_snapshot() {
    let world = world();
    let team = TeamId::parse("red").unwrap();
    world
        .library
        .create_snapshot(&curation("looked"), "teams/red", "looked")
        .await
        .unwrap();
    for run in ["never", "looked"] {
        let (snapshot, results) = world
            .library
            .rollback_run(&curation("undo"), "teams/red", run, "undo")
            .await
            .unwrap();
        assert_eq!((snapshot, results), (None, Vec::new()), "{run}");
    }
    assert!(world.store.snapshot(&team, "undo").await.unwrap().is_none());
    for number in 0..SNAPSHOTS {
        let run = format!("run-{number}");
        world
            .library
            .create_snapshot(&curation(&run), "teams/red", &run)
            .await
            .unwrap();
    }
    let dropped = world
        .library
        .rollback_run(&curation("undo"), "teams/red", "looked", "undo")
        .await;
    assert!(matches!(dropped, Err(Error::SnapshotNotFound { .. })), "{dropped:?}");
}

/// `C-3`.
#[tokio::test]
async fn builtins_age_only_where_that_is_switched_on_and_never_the_protected_ones() {
    let mut world = world();
    let names = [
        ("shipped", false, false),
        ("needed", true, false),
        ("pinned", false, true),
    ];
    let mut all = Vec::new();
    for (name, protected, pinned) in names {
        let found = world.add("builtin", name, Provenance::Builtin).await;
        let record = SkillRecord {
            version: found.record.version + 1,
            pinned,
            ..found.record.clone()
        };
        world
            .store
            .commit(Change::of(record, Some(found.record.version), None))
            .await
            .unwrap();
        if protected {
            world.store.protect(&found.record.team, &found.record.uid);
        }
        all.push(found.record.uid);
    }
    let listed = async |library: &Library| {
        let page = library
            .list_records(&curation("run"), "teams/red", None, 100)
            .await
            .unwrap();
        page.records
            .iter()
            .map(|found| found.record.name.to_string())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(listed(&world.library).await, BTreeSet::new());
    let off = world.get(&all[0]).await;
    assert_eq!(
        world.apply("off", &off, Age::Archived).await.outcome,
        Outcome::Refused("builtin")
    );
    world.library = world.library.with_prune_builtins(true);
    assert_eq!(
        listed(&world.library).await,
        BTreeSet::from(["pinned".to_owned(), "shipped".to_owned()])
    );
    let outcomes = [
        Outcome::Applied,
        Outcome::Refused("protected"),
        Outcome::Refused("pinned"),
    ];
    for (uid, expected) in all.iter().zip(outcomes) {
        let found = world.get(uid).await;
        assert_eq!(
            world.apply("run", &found, Age::Archived).await.outcome,
            expected,
            "{}",
            found.exact_name()
        );
    }
    // Seeding leaves alone what was set aside (`S-21`), and the run can be undone when the setting is off again.
    world.library = world.library.with_prune_builtins(false);
    assert_eq!(world.undo("run", "undo").await.len(), 1);
    assert_eq!(world.get(&all[0]).await.age(), Age::Active);
}

/// `C-2`, D-23: whatever the worker asks for.
#[tokio::test]
async fn a_skill_that_a_schedule_names_is_not_set_aside() {
    let world = world();
    let found = world.add("team", "nightly", Provenance::AgentCreated).await;
    let uids = [found.record.uid.clone()];
    world
        .store
        .set_references(&found.record.team, "schedules/s1", &uids)
        .await
        .unwrap();
    let found = world.get(&found.record.uid).await;
    for age in [Age::Stale, Age::Archived] {
        assert_eq!(
            world.apply("run", &found, age).await.outcome,
            Outcome::Refused("referenced")
        );
    }
    world
        .store
        .set_references(&found.record.team, "schedules/s1", &[])
        .await
        .unwrap();
    let found = world.get(&found.record.uid).await;
    assert_eq!(
        world.apply("run", &found, Age::Archived).await.outcome,
        Outcome::Applied
    );
}

#[tokio::test]
async fn undoing_starts_only_when_everything_can_be_read() {
    // D-63: it restores everything or refuses to start.
    let world = world();
    let mut found = Vec::new();
    for name in ["one", "two"] {
        found.push(world.add("team", name, Provenance::AgentCreated).await);
    }
    for found in &found {
        world.apply("run", found, Age::Archived).await;
    }
    let team = TeamId::parse("red").unwrap();
    let last = world.get(&found[1].record.uid).await.record;
    let revision = world.store.revision(&team, &last.uid, &last.revision).await.unwrap();
    world.store.damage_blob(&team, &revision.unwrap().files[0].sha256);
    let refused = world
        .library
        .rollback_run(&curation("undo"), "teams/red", "run", "undo")
        .await;
    assert!(refused.is_err());
    for found in &found {
        assert_eq!(world.get(&found.record.uid).await.age(), Age::Archived);
    }
    assert!(
        world.store.snapshot(&team, "undo").await.unwrap().is_none(),
        "something was begun"
    );
}

/// `H-2`.
#[tokio::test]
async fn a_library_that_is_put_back_leaves_out_what_is_revoked_and_names_it() {
    let world = world();
    let (bad, good) = (
        world.add("team", "bad", Provenance::UserMade).await,
        world.add("team", "good", Provenance::UserMade).await,
    );
    let created = world
        .library
        .create_snapshot(&curation("run"), "teams/red", "run")
        .await;
    created.unwrap();
    for found in [&bad, &good] {
        let name = found.record.resource_name();
        world.skills.archive_skill(&person(), &name).await.unwrap();
    }
    let revision = world.library.load(&bad.record, &bad.record.revision).await.unwrap();
    world.store.set_revoked(&bad.record.team, &revision.1, true);
    let restored = world
        .library
        .restore_snapshot(&person(), "teams/red/librarySnapshots/run", "b1")
        .await;
    let results = restored.unwrap().1;
    let outcome_of = |uid: &str| {
        let found = results.iter().find(|result| result.uid == uid);
        found.map(|result| (result.name.clone(), result.outcome))
    };
    assert_eq!(
        outcome_of(&bad.record.uid),
        Some(("teams/red/skills/bad".to_owned(), Outcome::Refused("revoked")))
    );
    assert_eq!(
        outcome_of(&good.record.uid).map(|(_, outcome)| outcome),
        Some(Outcome::Applied)
    );
    assert_eq!(world.get(&bad.record.uid).await.age(), Age::Archived);
    assert_eq!(world.get(&good.record.uid).await.age(), Age::Active);
}
