use std::sync::Arc;

use steward_base::names::{TeamId, UserId};
use steward_base::{Fault, JobRef, Role};
use steward_testkit::{MockClock, SeqIds};

use super::*;
use crate::memory_store::InMemorySkillStore;
use crate::settings::Settings;
use crate::testing::skill_md;

struct Rig {
    skills: Skills,
    store: Arc<InMemorySkillStore>,
    requests: std::cell::Cell<u32>,
}

fn rig() -> Rig {
    let store = Arc::new(InMemorySkillStore::new());
    let skills = Skills::new(
        Arc::clone(&store) as _,
        Arc::new(MockClock::default()),
        Arc::new(SeqIds::new()),
        Settings::default(),
    );
    Rig {
        skills,
        store,
        requests: std::cell::Cell::new(0),
    }
}

fn person() -> Actor {
    Actor {
        team: TeamId::parse("red").unwrap(),
        user: UserId::parse("ann").ok(),
        role: Role::Member,
        origin: Origin::Foreground,
        session: None,
        turn: None,
        job: None,
        is_agent: false,
        token_id: "token".to_owned(),
    }
}

fn turn(session: &str) -> Actor {
    Actor {
        session: Some(session.to_owned()),
        turn: Some("t1".to_owned()),
        is_agent: true,
        ..person()
    }
}

fn job(origin: Origin, fence: u64) -> Actor {
    let job = Some(JobRef {
        id: format!("{origin}-job"),
        fence,
    });
    Actor {
        origin,
        session: Some("s1".to_owned()),
        job,
        is_agent: true,
        ..person()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a request holds")]
fn evidence() -> Option<Evidence> {
    Some(Evidence {
        session: "teams/red/sessions/s1".to_owned(),
        spans: vec!["s1".to_owned()],
        basis: "stated".to_owned(),
        integrity: Some(Integrity::Person),
    })
}

impl Rig {
    fn request(&self, skill: &str, action: Manage) -> ManageRequest {
        self.requests.set(self.requests.get() + 1);
        ManageRequest {
            skill: skill.to_owned(),
            action,
            base_revision: String::new(),
            request_id: format!("r{}", self.requests.get()),
            request_hash: "h".to_owned(),
            evidence: evidence(),
            reason: String::new(),
            validate_only: false,
        }
    }

    async fn manage(&self, actor: &Actor, skill: &str, action: Manage) -> Result<Managed, Error> {
        self.skills.manage_skill(actor, &self.request(skill, action)).await
    }

    async fn made_by(&self, actor: &Actor, name: &str) -> SkillRecord {
        self.manage(actor, name, create(&skill_md(name, "Do a thing")))
            .await
            .unwrap()
            .skill
    }

    async fn text(&self, name: &str) -> String {
        self.skills.view_skill(&person(), name, "").await.unwrap().content
    }
}

fn create(content: &str) -> Manage {
    Manage::Create {
        content: content.to_owned(),
        category: String::new(),
        in_team: false,
    }
}

fn patch(old: &str, new: &str) -> Manage {
    Manage::Patch {
        path: String::new(),
        old: old.to_owned(),
        new: new.to_owned(),
        all: false,
    }
}

fn write_file(path: &str, content: &str) -> Manage {
    Manage::WriteFile {
        path: path.to_owned(),
        content: content.to_owned(),
    }
}

fn remove_file(path: &str) -> Manage {
    Manage::RemoveFile { path: path.to_owned() }
}

fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().reason()
}

#[tokio::test]
async fn a_review_changes_its_own_skills_and_nothing_else() {
    let rig = rig();
    let review = job(Origin::Review, 1);
    rig.made_by(&person(), "mine").await;
    let learned = rig.made_by(&review, "learned").await;
    assert_eq!(learned.provenance, Provenance::AgentCreated);
    let before = rig.text("mine").await;
    for (name, gate) in [("mine", "user_made"), ("plan", "builtin")] {
        rig.skills.view_skill(&review, name, "").await.unwrap();
        let actions = [
            Manage::Edit {
                content: skill_md(name, "Other"),
            },
            patch("Steps.", "Other steps."),
            write_file("references/a.md", "x"),
            remove_file("references/a.md"),
            Manage::Delete { absorbed_into: None },
        ];
        for action in actions {
            let error = rig.manage(&review, name, action).await.unwrap_err();
            assert_eq!(error.reason(), "GATE_REFUSED");
            assert!(error.metadata().contains(&("gate", gate.to_owned())), "{error}");
            assert!(error.metadata().contains(&("origin", "review".to_owned())), "{error}");
        }
    }
    assert_eq!(rig.text("mine").await, before);
    rig.manage(&review, "learned", patch("Steps.", "Better steps."))
        .await
        .unwrap();
    let archived = rig
        .manage(&review, "learned", Manage::Delete { absorbed_into: None })
        .await
        .unwrap();
    assert!(matches!(
        archived.skill.state,
        State::Archived(Archival { deleted: false, .. })
    ));
}

#[tokio::test]
async fn a_pinned_skill_is_kept_from_automatic_writers_and_from_deletion() {
    let rig = rig();
    let review = job(Origin::Review, 1);
    let learned = rig.made_by(&review, "learned").await;
    rig.skills
        .pin_skill(&person(), &learned.resource_name(), true)
        .await
        .unwrap();
    assert_eq!(
        reason(rig.manage(&review, "learned", patch("Steps.", "x")).await),
        "GATE_REFUSED"
    );
    assert_eq!(
        reason(
            rig.manage(&person(), "learned", Manage::Delete { absorbed_into: None })
                .await
        ),
        "PINNED"
    );
    rig.manage(&person(), "learned", patch("Steps.", "x")).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_record_is_refused_and_hides_nothing_else() {
    let rig = rig();
    let learned = rig.made_by(&job(Origin::Review, 1), "learned").await;
    rig.made_by(&person(), "mine").await;
    rig.store.damage_record(&learned.team, &learned.uid);
    for actor in [person(), job(Origin::Review, 1)] {
        assert_eq!(
            reason(rig.manage(&actor, "learned", patch("Steps.", "x")).await),
            "RECORD_DAMAGED"
        );
    }
    let listed = rig
        .skills
        .list_skills(&person(), &crate::list_skills::ListRequest::default())
        .await
        .unwrap();
    assert_eq!(listed.broken.len(), 1);
    assert!(listed.skills.iter().any(|skill| skill.name.as_str() == "mine"));
}

#[tokio::test]
async fn an_agent_looks_before_it_writes() {
    let rig = rig();
    let skill = rig.made_by(&person(), "mine").await;
    let (first, second) = (turn("s1"), turn("s2"));
    assert_eq!(
        reason(rig.manage(&first, "mine", patch("Steps.", "x")).await),
        "NOT_READ"
    );
    rig.skills.view_skill(&second, "mine", "").await.unwrap();
    assert_eq!(
        reason(rig.manage(&first, "mine", patch("Steps.", "x")).await),
        "NOT_READ"
    );
    rig.skills.view_skill(&first, "mine", "").await.unwrap();
    let changed = rig.manage(&first, "mine", patch("Steps.", "One.")).await.unwrap();
    // Having written it, the session knows it; the other one does not.
    rig.manage(&first, "mine", patch("One.", "Two.")).await.unwrap();
    assert_eq!(
        reason(rig.manage(&second, "mine", patch("Two.", "x")).await),
        "STALE_REVISION"
    );
    let mut stale = rig.request("mine", patch("Two.", "x"));
    stale.base_revision = changed.skill.revision;
    assert_eq!(
        reason(rig.skills.manage_skill(&person(), &stale).await),
        "STALE_REVISION"
    );
    assert_ne!(skill.revision, stale.base_revision);
}

#[tokio::test]
async fn a_refused_patch_changes_nothing() {
    let rig = rig();
    let text = skill_md("mine", "Do a thing").replace("Steps.", "- retry limit 2\n- retry limit 5");
    let before = rig.manage(&person(), "mine", create(&text)).await.unwrap().skill;
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("retry limit 9", "x")).await),
        "NO_MATCH"
    );
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("retry limit", "x")).await),
        "AMBIGUOUS_MATCH"
    );
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("", "x")).await),
        "INVALID_REQUEST"
    );
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("retry", "retry")).await),
        "INVALID_REQUEST"
    );
    let closing = rig.manage(&person(), "mine", patch("\n---\n#", "\n#")).await;
    assert_eq!(reason(closing), "SKILL_INVALID");
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("name: mine", "name: other")).await),
        "SKILL_INVALID"
    );
    let after = rig.skills.resolve_active(&person(), "mine").await.unwrap();
    assert_eq!(
        (after.revision, after.version, after.usage.patches),
        (before.revision, 1, 0)
    );
    let applied = rig
        .manage(&person(), "mine", patch("retry  limit 2", "retry limit 3"))
        .await
        .unwrap();
    assert!(
        applied.approximate && applied.tool_text.contains("- retry limit 3"),
        "{}",
        applied.tool_text
    );
}

#[tokio::test]
async fn nothing_invalid_becomes_visible() {
    let rig = rig();
    let bad = [
        create(&skill_md("merge-pdf", "x")),
        create("hello"),
        create("---\nname: pdf-merge\ndescription: Fix CI: rerun\n---\nx"),
        create("---\nname: pdf-merge\ndescription: x\n---\n"),
    ];
    for action in bad {
        assert_eq!(
            reason(rig.manage(&person(), "pdf-merge", action).await),
            "SKILL_INVALID"
        );
    }
    assert_eq!(
        reason(rig.manage(&person(), "pdf-merge", create(" ")).await),
        "INVALID_REQUEST"
    );
    for name in ["../other", "C:thing", "Pdf", "a/b", "a--b"] {
        assert_eq!(
            reason(rig.manage(&person(), name, create(&skill_md("a", "x"))).await),
            "INVALID_REQUEST",
            "{name}"
        );
    }
    for category in ["../x", "/tmp/x", "a/b/c/d"] {
        let action = Manage::Create {
            content: skill_md("pdf-merge", "x"),
            category: category.to_owned(),
            in_team: false,
        };
        assert_eq!(
            reason(rig.manage(&person(), "pdf-merge", action).await),
            "INVALID_REQUEST",
            "{category}"
        );
    }
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "pdf-merge", "").await),
        "SKILL_NOT_FOUND"
    );
    rig.made_by(&person(), "pdf-merge").await;
    assert_eq!(
        reason(
            rig.manage(&person(), "pdf-merge", create(&skill_md("pdf-merge", "x")))
                .await
        ),
        "SKILL_EXISTS"
    );
}

#[tokio::test]
async fn files_are_written_and_removed_one_at_a_time() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    for path in [
        "",
        "SKILL.md",
        "references/../../a.md",
        "/etc/x",
        "SKILL.md/../../b",
        "notes.md",
    ] {
        assert_eq!(
            reason(rig.manage(&person(), "mine", write_file(path, "hello")).await),
            "INVALID_REQUEST",
            "{path}"
        );
        assert_eq!(
            reason(rig.manage(&person(), "mine", remove_file(path)).await),
            "INVALID_REQUEST",
            "{path}"
        );
    }
    rig.manage(&person(), "mine", write_file("references/a.md", "a"))
        .await
        .unwrap();
    rig.manage(&person(), "mine", write_file("references/other/SKILL.md", "no skill"))
        .await
        .unwrap();
    assert_eq!(
        reason(rig.manage(&person(), "mine", write_file("references/A.md", "x")).await),
        "SKILL_INVALID"
    );
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "other", "").await),
        "SKILL_NOT_FOUND"
    );
    rig.manage(&person(), "mine", remove_file("references/a.md"))
        .await
        .unwrap();
    assert_eq!(
        reason(rig.manage(&person(), "mine", remove_file("references/a.md")).await),
        "FILE_NOT_FOUND"
    );
    let files = rig.skills.view_skill(&person(), "mine", "").await.unwrap().files;
    assert_eq!(files.len(), 2);
    let deleted = rig
        .manage(&person(), "mine", Manage::Delete { absorbed_into: None })
        .await
        .unwrap()
        .skill;
    assert_eq!(reason(rig.skills.view_skill(&person(), "mine", "").await), "ARCHIVED");
    let restored = rig
        .skills
        .restore_skill(&person(), &deleted.resource_name())
        .await
        .unwrap();
    assert_eq!(restored.tree, deleted.tree);
}

#[tokio::test]
async fn limits_count_characters_and_are_no_trap() {
    let rig = rig();
    let agent = turn("s1");
    let with = |length: usize, letter: &str| create(&skill_md("mine", &letter.repeat(length)));
    let error = rig.manage(&agent, "mine", with(61, "x")).await.unwrap_err();
    assert!(error.to_string().contains("61 characters"), "{error}");
    rig.manage(&agent, "mine", with(60, "字")).await.unwrap();
    assert!(
        rig.skills
            .get_index(&agent, &crate::index::Filter::default())
            .await
            .unwrap()
            .text
            .contains(&"字".repeat(60))
    );
    // A person's longer description does not keep an agent from mending the text below it.
    rig.manage(
        &person(),
        "mine",
        Manage::Edit {
            content: skill_md("mine", &"y".repeat(300)),
        },
    )
    .await
    .unwrap();
    rig.skills.view_skill(&agent, "mine", "").await.unwrap();
    rig.manage(&agent, "mine", patch("Steps.", "Fewer steps."))
        .await
        .unwrap();

    let small = Settings {
        skill_md_chars: 400,
        ..Settings::default()
    };
    let store = Arc::clone(&rig.store) as _;
    let tight = Skills::new(store, Arc::new(MockClock::default()), Arc::new(SeqIds::new()), small);
    let long = format!("{}{}", skill_md("mine", "x"), "z".repeat(600));
    rig.manage(&person(), "mine", Manage::Edit { content: long })
        .await
        .unwrap();
    let grow = rig.request("mine", patch("Steps.", "More and more steps."));
    assert_eq!(reason(tight.manage_skill(&person(), &grow).await), "LIMIT_EXCEEDED");
    tight
        .manage_skill(&person(), &rig.request("mine", patch("Steps.", "Do.")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_curation_says_where_the_content_went() {
    let rig = rig();
    let curation = job(Origin::Curation, 1);
    rig.made_by(&curation, "narrow").await;
    rig.made_by(&curation, "umbrella").await;
    let delete = |into: Option<&str>| Manage::Delete {
        absorbed_into: into.map(str::to_owned),
    };
    for into in [None, Some("no-such-skill"), Some("narrow")] {
        assert_eq!(
            reason(rig.manage(&curation, "narrow", delete(into)).await),
            "GATE_REFUSED",
            "{into:?}"
        );
    }
    let gone = rig
        .manage(&curation, "narrow", delete(Some("umbrella")))
        .await
        .unwrap()
        .skill;
    assert!(matches!(gone.state, State::Archived(Archival { absorbed_into, .. }) if absorbed_into == "umbrella"));
    rig.manage(&curation, "umbrella", delete(Some(""))).await.unwrap();
}

#[tokio::test]
async fn a_review_needs_trusted_evidence_of_its_own_session() {
    let rig = rig();
    let review = job(Origin::Review, 1);
    let mut request = rig.request("learned", create(&skill_md("learned", "x")));
    request.evidence = None;
    assert_eq!(
        reason(rig.skills.manage_skill(&review, &request).await),
        "EVIDENCE_REQUIRED"
    );
    request.evidence = evidence().map(|evidence| Evidence {
        session: "teams/red/sessions/s2".to_owned(),
        ..evidence
    });
    assert_eq!(
        reason(rig.skills.manage_skill(&review, &request).await),
        "EVIDENCE_REQUIRED"
    );
    request.evidence = evidence().map(|evidence| Evidence {
        integrity: Some(Integrity::External),
        ..evidence
    });
    assert_eq!(
        reason(rig.skills.manage_skill(&review, &request).await),
        "EVIDENCE_UNTRUSTED"
    );
    request.evidence = evidence();
    rig.skills.manage_skill(&review, &request).await.unwrap();
}

#[tokio::test]
async fn the_same_request_is_done_once() {
    let rig = rig();
    let request = rig.request("mine", create(&skill_md("mine", "x")));
    let first = rig.skills.manage_skill(&person(), &request).await.unwrap();
    assert_eq!(rig.skills.manage_skill(&person(), &request).await.unwrap(), first);
    let other = ManageRequest {
        request_hash: "other".to_owned(),
        ..request.clone()
    };
    assert_eq!(
        reason(rig.skills.manage_skill(&person(), &other).await),
        "REQUEST_ID_REUSED"
    );
    let dry = ManageRequest {
        validate_only: true,
        ..rig.request("mine", patch("Steps.", "x"))
    };
    rig.skills.manage_skill(&person(), &dry).await.unwrap();
    assert!(rig.text("mine").await.contains("Steps."));
}

#[tokio::test]
async fn an_old_claim_of_a_job_cannot_write() {
    let rig = rig();
    rig.made_by(&job(Origin::Review, 2), "learned").await;
    rig.skills
        .view_skill(&job(Origin::Review, 1), "learned", "")
        .await
        .unwrap();
    let stale = rig
        .manage(&job(Origin::Review, 1), "learned", patch("Steps.", "x"))
        .await;
    assert_eq!(reason(stale), "STALE_FENCE");
}

#[tokio::test]
async fn the_team_library_is_its_maintainers() {
    let rig = rig();
    let maintainer = Actor {
        role: Role::Maintainer,
        ..person()
    };
    let for_team = |name: &str| Manage::Create {
        content: skill_md(name, "x"),
        category: "ops".to_owned(),
        in_team: true,
    };
    assert_eq!(
        reason(rig.manage(&person(), "shared", for_team("shared")).await),
        "ROLE_REQUIRED"
    );
    let review = Actor {
        role: Role::Maintainer,
        ..job(Origin::Review, 1)
    };
    assert_eq!(
        reason(rig.manage(&review, "shared", for_team("shared")).await),
        "GATE_REFUSED"
    );
    rig.manage(&maintainer, "shared", for_team("shared")).await.unwrap();
    assert_eq!(
        reason(rig.manage(&person(), "shared", patch("Steps.", "x")).await),
        "ROLE_REQUIRED"
    );
    // A namesake of one's own: the bare name is no longer exact, the full ones are.
    rig.made_by(&person(), "shared").await;
    let error = rig
        .manage(&maintainer, "shared", patch("Steps.", "x"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("user/shared") && error.to_string().contains("team/ops/shared"),
        "{error}"
    );
    rig.manage(&maintainer, "team/ops/shared", patch("Steps.", "x"))
        .await
        .unwrap();
    rig.manage(&maintainer, "ops:shared", patch("x", "y"))
        .await
        .unwrap_err();
    let stranger = Actor {
        user: UserId::parse("bob").ok(),
        ..person()
    };
    assert_eq!(
        reason(rig.skills.view_skill(&stranger, "user/shared", "").await),
        "SKILL_NOT_FOUND"
    );
}

#[tokio::test]
async fn an_older_revision_comes_back_as_a_new_one() {
    let rig = rig();
    let first = rig.made_by(&person(), "mine").await;
    let second = rig
        .manage(&person(), "mine", patch("Steps.", "Other."))
        .await
        .unwrap()
        .skill;
    let request = crate::revisions::RestoreRequest {
        name: first.resource_name(),
        revision: first.revision.clone(),
        base_revision: second.revision.clone(),
        request_id: "restore".to_owned(),
        request_hash: "h".to_owned(),
    };
    let third = rig.skills.restore_revision(&person(), &request).await.unwrap();
    assert_eq!((third.tree.as_str(), third.number), (first.tree.as_str(), 3));
    assert_ne!(third.revision, first.revision);
    assert_eq!(rig.skills.restore_revision(&person(), &request).await.unwrap(), third);
    let (revisions, next) = rig
        .skills
        .list_revisions(&person(), &first.resource_name(), 2, "")
        .await
        .unwrap();
    let actions = revisions
        .iter()
        .map(|revision| revision.action.as_str())
        .collect::<Vec<_>>();
    assert_eq!(actions, ["restore_revision", "patch"]);
    let (older, end) = rig
        .skills
        .list_revisions(&person(), &first.resource_name(), 2, &next)
        .await
        .unwrap();
    assert_eq!((older.len(), end.as_str()), (1, ""));
    let diff = rig
        .skills
        .diff_revisions(&person(), &first.resource_name(), &first.revision, &second.revision)
        .await;
    assert!(diff.unwrap().contains("-Steps.\n+Other.\n"));
}

#[tokio::test]
async fn only_an_archived_skill_is_purged_and_then_it_is_gone() {
    let rig = rig();
    let first = rig.made_by(&person(), "mine").await;
    let name = first.resource_name();
    assert_eq!(
        reason(rig.skills.purge_skill(&person(), &name).await),
        "INVALID_REQUEST"
    );
    rig.skills.archive_skill(&person(), &name).await.unwrap();
    // Two archived copies of one name are told apart by their own names.
    rig.made_by(&person(), "mine").await;
    rig.skills.archive_skill(&person(), &name).await.unwrap();
    assert_eq!(
        reason(rig.skills.restore_skill(&person(), &name).await),
        "SKILL_AMBIGUOUS"
    );
    let exact = name::resource_name(&first.team, &first.scope, &name::archived_id(&first.name, &first.uid));
    assert_eq!(rig.skills.purge_skill(&person(), &exact).await.unwrap(), 2);
    assert_eq!(
        rig.skills.restore_skill(&person(), &name).await.unwrap().name.as_str(),
        "mine"
    );
    assert_eq!(reason(rig.skills.get_skill(&person(), &exact).await), "SKILL_NOT_FOUND");
}

#[tokio::test]
async fn views_by_learners_are_no_use() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    rig.skills
        .view_skill(&job(Origin::Review, 1), "mine", "")
        .await
        .unwrap();
    rig.skills
        .view_skill(&job(Origin::Curation, 1), "mine", "")
        .await
        .unwrap();
    rig.skills.view_skill(&turn("s1"), "mine", "").await.unwrap();
    let usage = rig.skills.resolve_active(&person(), "mine").await.unwrap().usage;
    assert_eq!((usage.uses, usage.review_views), (1, 2));
}

#[tokio::test]
async fn damaged_bytes_are_noticed_and_not_shown() {
    let rig = rig();
    let skill = rig.made_by(&person(), "mine").await;
    let revision = rig.skills.load(&skill).await.unwrap().0;
    rig.store.damage_blob(&skill.team, &revision.files[0].sha256);
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "mine", "").await),
        "DATA_DAMAGED"
    );
}

#[tokio::test]
async fn builtins_are_there_and_stay_as_they_are() {
    let rig = rig();
    let maintainer = Actor {
        role: Role::Maintainer,
        ..person()
    };
    let view = rig.skills.view_skill(&person(), "plan", "").await.unwrap();
    assert!(
        view.skill.protected && view.tool_text.contains("builtin/work/plan"),
        "{}",
        view.tool_text
    );
    assert_eq!(
        reason(rig.manage(&maintainer, "plan", patch("# Plan", "# P")).await),
        "GATE_REFUSED"
    );
    assert_eq!(
        reason(
            rig.manage(&maintainer, "plan", Manage::Delete { absorbed_into: None })
                .await
        ),
        "GATE_REFUSED"
    );
    let aside = rig
        .skills
        .archive_skill(&maintainer, "builtins/skills/find-the-fault")
        .await
        .unwrap();
    assert!(!aside.is_active());
    assert_eq!(
        reason(
            rig.skills
                .archive_skill(&person(), "builtins/skills/write-a-skill")
                .await
        ),
        "ROLE_REQUIRED"
    );
    // Set aside, it is not seeded again.
    let store = Arc::clone(&rig.store) as _;
    let again = Skills::new(
        store,
        Arc::new(MockClock::default()),
        Arc::new(SeqIds::new()),
        Settings::default(),
    );
    assert_eq!(
        reason(again.view_skill(&person(), "find-the-fault", "").await),
        "ARCHIVED"
    );
}
