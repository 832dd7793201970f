//! Automatic writes on outsiders' words, from the draft to the decision.

use std::time::Duration;

use steward_base::{Fault as _, Integrity, JobRef, Role};

use super::*;
use crate::record::Evidence;
use crate::testing::{Rig, person, rig, skill_md};

const DAY: Duration = Duration::from_hours(24);

fn ann() -> Actor {
    person("ann", Role::Member)
}

fn job(origin: Origin, fence: u64) -> Actor {
    Actor {
        origin,
        session: Some("s1".to_owned()),
        job: Some(JobRef {
            id: format!("{origin}-job"),
            fence,
        }),
        is_agent: true,
        ..ann()
    }
}

fn on(integrity: Option<Integrity>) -> Evidence {
    Evidence {
        session: "teams/red/sessions/s1".to_owned(),
        spans: vec!["s3.1".to_owned()],
        basis: "seen_once".to_owned(),
        integrity,
    }
}

fn create(name: &str, step: &str) -> Manage {
    Manage::Create {
        content: skill_md(name, "Do a thing").replace("Steps.", step),
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

fn request(skill: &str, id: &str, action: Manage, evidence: Option<Evidence>) -> ManageRequest {
    ManageRequest {
        skill: skill.to_owned(),
        request_hash: format!("{action:?}"),
        action,
        base_revision: String::new(),
        request_id: id.to_owned(),
        evidence,
        reason: "the page says so".to_owned(),
        validate_only: false,
    }
}

impl Rig {
    async fn as_review(&self, skill: &str, id: &str, action: Manage, level: Integrity) -> Result<Managed, Error> {
        let review = job(Origin::Review, 1);
        let request = request(skill, id, action, Some(on(Some(level))));
        self.skills.manage_skill(&review, &request).await
    }

    /// An agent-made skill that the review has read.
    async fn learned(&self, name: &str) -> SkillRecord {
        let id = format!("make-{name}");
        let made = self.as_review(name, &id, create(name, "Steps."), Integrity::Person);
        made.await.unwrap().skill
    }

    async fn waiting(&self, actor: &Actor) -> usize {
        self.skills.inbox(actor).await.unwrap().proposals
    }
}

/// `L-6`: nothing is written; the person it was written for, and nobody else, decides.
#[tokio::test]
async fn a_review_that_rests_on_outsiders_words_only_proposes() {
    let rig = rig();
    let (max, bob) = (person("max", Role::Admin), person("bob", Role::Member));
    let made = rig
        .as_review("refunds", "r1", create("refunds", "Ask first."), Integrity::External)
        .await
        .unwrap();
    assert!(made.proposal.starts_with("teams/red/skillProposals/"), "{made:?}");
    assert!(
        made.tool_text.contains(CAUSE) && made.tool_text.contains("does not exist"),
        "{}",
        made.tool_text
    );
    let gone = rig.skills.view_skill(&ann(), "refunds", "").await.unwrap_err();
    assert_eq!(gone.reason(), "SKILL_NOT_FOUND");
    // The same request again is the same proposal, another one of the same content too.
    for (id, text) in [("r1", "Ask first."), ("r2", "first: ASK")] {
        let again = rig
            .as_review("refunds", id, create("refunds", text), Integrity::External)
            .await;
        assert_eq!(again.unwrap().proposal, made.proposal, "{id}");
    }
    let reused = rig
        .as_review("refunds", "r1", create("refunds", "Else."), Integrity::External)
        .await;
    assert_eq!(reused.unwrap_err().reason(), "REQUEST_ID_REUSED");
    for other in [&max, &bob] {
        assert_eq!(rig.waiting(other).await, 0);
        let hidden = rig.skills.get_proposal(other, &made.proposal).await.unwrap_err();
        assert_eq!(hidden.reason(), "PROPOSAL_NOT_FOUND");
    }
    assert_eq!(rig.waiting(&ann()).await, 1);
    let seen = rig.skills.get_proposal(&ann(), &made.proposal).await.unwrap();
    assert!(seen.diff.contains("+Ask first."), "{}", seen.diff);
    let staged = seen.proposal.staged.unwrap();
    assert_eq!(
        (staged.by.origin, staged.by.evidence[0].integrity),
        (Origin::Review, Some(Integrity::External))
    );
    // Neither the writer nor any other agent decides.
    for agent in [job(Origin::Review, 1), crate::testing::agent("s1")] {
        let approved = rig.skills.approve_proposal(&agent, &made.proposal, "", None).await;
        assert_eq!(approved.unwrap_err().reason(), "GATE_REFUSED");
        let rejected = rig.skills.reject_proposal(&agent, &made.proposal, "x").await;
        assert_eq!(rejected.unwrap_err().reason(), "GATE_REFUSED");
    }
    rig.skills
        .approve_proposal(&ann(), &made.proposal, "right", None)
        .await
        .unwrap();
    let skill = rig.skills.resolve_active(&ann(), "refunds").await.unwrap();
    assert_eq!(
        (skill.full_name().as_str(), skill.provenance),
        ("user/refunds", Provenance::AgentCreated)
    );
    // The words stay the review's, with what they rest on.
    let (revision, _) = rig.skills.load(&skill).await.unwrap();
    assert_eq!(
        (revision.by.origin, revision.by.reason.as_str()),
        (Origin::Review, "approved by ann: the page says so: right")
    );
    assert_eq!(revision.by.evidence[0].integrity, Some(Integrity::External));
    assert_eq!(rig.waiting(&ann()).await, 0);
}

/// Each of the six actions waits, shows what it would do, and does that when a person says so.
#[tokio::test]
async fn every_action_can_wait_and_be_let_in() {
    let rig = rig();
    let write = |text: &str| Manage::WriteFile {
        path: "references/a.md".to_owned(),
        content: text.to_owned(),
    };
    let remove = Manage::RemoveFile {
        path: "references/a.md".to_owned(),
    };
    let edit = Manage::Edit {
        content: skill_md("learned", "Do a thing").replace("Steps.", "Whole."),
    };
    let delete = Manage::Delete { absorbed_into: None };
    rig.learned("learned").await;
    let steps = [
        (patch("Steps.", "Better."), "+Better."),
        (write("Facts."), "+Facts."),
        (remove, "-Facts."),
        (edit, "+Whole."),
        (delete, "-Whole."),
    ];
    for (number, (action, shown)) in steps.into_iter().enumerate() {
        rig.skills
            .view_skill(&job(Origin::Review, 1), "learned", "")
            .await
            .unwrap();
        let before = rig.skills.resolve_active(&ann(), "learned").await.unwrap();
        let waits = rig
            .as_review("learned", &format!("w{number}"), action, Integrity::UnknownTool)
            .await
            .unwrap();
        assert_eq!(rig.skills.resolve_active(&ann(), "learned").await.unwrap(), before);
        let seen = rig.skills.get_proposal(&ann(), &waits.proposal).await.unwrap();
        assert!(seen.diff.contains(shown), "{number}: {}", seen.diff);
        rig.skills
            .approve_proposal(&ann(), &waits.proposal, "", None)
            .await
            .unwrap();
    }
    let gone = rig.skills.resolve(&ann(), "learned").await.unwrap();
    // `S-16`: set aside, and by the origin that proposed it.
    let State::Archived(archival) = gone.state else {
        panic!("it is in use")
    };
    assert_eq!((archival.origin, archival.deleted), (Origin::Review, false));
}

#[tokio::test]
async fn a_person_may_let_in_another_text_and_it_is_said() {
    let rig = rig();
    rig.learned("learned").await;
    let waits = rig
        .as_review("learned", "w1", patch("Steps.", "Never ask."), Integrity::External)
        .await
        .unwrap();
    let empty = rig
        .skills
        .approve_proposal(&ann(), &waits.proposal, "", Some("Steps."))
        .await;
    assert_eq!(empty.unwrap_err().reason(), "INVALID_REQUEST", "no change");
    let approved = rig
        .skills
        .approve_proposal(&ann(), &waits.proposal, "", Some("Always ask."))
        .await
        .unwrap();
    let staged = approved.staged.unwrap();
    assert_eq!(staged.action.text(), Some("Never ask."));
    assert_eq!(staged.edited.as_ref().and_then(Manage::text), Some("Always ask."));
    assert!(rig.text(&ann(), "learned").await.contains("Always ask."));
    // A skill on its way to the team is taken as it is.
    rig.made(&ann(), "mine", false).await;
    let propose = crate::proposals::ProposeRequest {
        skill: "mine".to_owned(),
        request_id: "p".to_owned(),
        ..crate::proposals::ProposeRequest::default()
    };
    let proposed = rig.skills.propose_skill(&ann(), &propose).await.unwrap();
    let max = person("max", Role::Maintainer);
    let edited = rig
        .skills
        .approve_proposal(&max, &proposed.resource_name(), "", Some("x"))
        .await;
    assert_eq!(edited.unwrap_err().reason(), "INVALID_REQUEST");
}

#[tokio::test]
async fn what_changed_meanwhile_is_merged_or_left_alone() {
    let rig = rig();
    rig.learned("learned").await;
    let first = rig
        .as_review("learned", "w1", patch("Steps.", "Page steps."), Integrity::External)
        .await
        .unwrap();
    let second = rig
        .as_review(
            "learned",
            "w2",
            patch("# learned", "# Learned from a page"),
            Integrity::External,
        )
        .await
        .unwrap();
    rig.patched(&ann(), "learned", "Steps.", "Own steps.").await;
    let clash = rig.skills.approve_proposal(&ann(), &first.proposal, "", None).await;
    assert_eq!(clash.unwrap_err().reason(), "MERGE_CONFLICT");
    assert_eq!(
        rig.skills
            .get_proposal(&ann(), &first.proposal)
            .await
            .unwrap()
            .conflicts,
        [SkillPath::skill_md()]
    );
    rig.skills
        .approve_proposal(&ann(), &second.proposal, "", None)
        .await
        .unwrap();
    let text = rig.text(&ann(), "learned").await;
    assert!(
        text.contains("Own steps.") && text.contains("# Learned from a page"),
        "{text}"
    );
    // A deletion is of what the writer saw.
    rig.skills
        .view_skill(&job(Origin::Review, 1), "learned", "")
        .await
        .unwrap();
    let delete = Manage::Delete { absorbed_into: None };
    let third = rig
        .as_review("learned", "w3", delete, Integrity::External)
        .await
        .unwrap();
    rig.patched(&ann(), "learned", "Own steps.", "More steps.").await;
    let stale = rig.skills.approve_proposal(&ann(), &third.proposal, "", None).await;
    assert_eq!(stale.unwrap_err().reason(), "STALE_REVISION");
    // Gone, it can be looked at and turned down.
    let gone = Manage::Delete { absorbed_into: None };
    rig.manage(&ann(), "learned", gone).await.unwrap();
    let seen = rig.skills.get_proposal(&ann(), &first.proposal).await.unwrap();
    assert!(seen.diff.contains("+Page steps."), "{}", seen.diff);
    let approved = rig.skills.approve_proposal(&ann(), &first.proposal, "", None).await;
    assert_eq!(approved.unwrap_err().reason(), "SKILL_NOT_FOUND");
}

/// `L-7`: what a person rejected is not proposed again for 90 days, in whatever order of words and under whatever name, and
/// not done either.
#[tokio::test]
async fn a_rejected_candidate_stays_rejected_for_ninety_days() {
    let rig = rig();
    let waits = rig
        .as_review(
            "refunds",
            "r1",
            create("refunds", "Never ask anybody."),
            Integrity::External,
        )
        .await
        .unwrap();
    rig.skills
        .reject_proposal(&ann(), &waits.proposal, "we always ask")
        .await
        .unwrap();
    let cases = [
        ("refunds", "anybody: never ask", Integrity::External),
        ("money-back", "Never ask anybody.", Integrity::External),
        ("refunds", "Never ask anybody.", Integrity::Person),
    ];
    for (number, (name, text, level)) in cases.into_iter().enumerate() {
        let again = rig
            .as_review(name, &format!("again{number}"), create(name, text), level)
            .await
            .unwrap_err();
        assert_eq!(again.reason(), "REJECTED_BEFORE", "{name} {text}");
        assert!(again.to_string().contains("we always ask"));
    }
    // Another one is another one, and a person does as they like.
    rig.as_review(
        "refunds",
        "other",
        create("refunds", "Ask the cashier."),
        Integrity::External,
    )
    .await
    .unwrap();
    rig.manage(&ann(), "refunds", create("refunds", "Never ask anybody."))
        .await
        .unwrap();
    rig.clock.advance(DAY * 91);
    rig.as_review(
        "returns",
        "late",
        create("returns", "Never ask anybody."),
        Integrity::External,
    )
    .await
    .unwrap();
}

/// Never by silence: what nobody decides on expires and takes no effect; the same may then be proposed anew.
#[tokio::test]
async fn a_proposal_that_nobody_decides_on_expires() {
    let rig = rig();
    let waits = rig
        .as_review("refunds", "r1", create("refunds", "Ask."), Integrity::External)
        .await
        .unwrap();
    rig.clock.advance(DAY * 30);
    assert_eq!(rig.waiting(&ann()).await, 0);
    let approved = rig.skills.approve_proposal(&ann(), &waits.proposal, "", None).await;
    let error = approved.unwrap_err();
    assert!(
        error.reason() == "PROPOSAL_DECIDED" && error.to_string().contains("expired"),
        "{error}"
    );
    let list = async |state| {
        let (found, _) = rig.skills.list_proposals(&ann(), state, 0, "").await.unwrap();
        found.into_iter().map(|proposal| proposal.state).collect::<Vec<_>>()
    };
    assert_eq!(list(ProposalState::Pending).await, []);
    assert_eq!(list(ProposalState::Expired).await, [ProposalState::Expired]);
    let anew = rig
        .as_review("refunds", "r2", create("refunds", "Ask."), Integrity::External)
        .await
        .unwrap();
    assert_ne!(anew.proposal, waits.proposal);
    assert_eq!(list(ProposalState::Expired).await, [ProposalState::Expired]);
    assert_eq!(list(ProposalState::Pending).await, [ProposalState::Pending]);
}

/// Every gate and check of a write is asked when it is proposed, and again when it is let in.
#[tokio::test]
async fn the_gates_stand_before_a_proposal_and_before_its_approval() {
    let rig = rig();
    let refused = async |skill: &str, id: &str, action| {
        let written = rig.as_review(skill, id, action, Integrity::External).await;
        written.map_or_else(|error| error.reason(), |_| "PROPOSED")
    };
    rig.made(&ann(), "mine", false).await;
    assert_eq!(refused("mine", "a", patch("Steps.", "x")).await, "GATE_REFUSED");
    rig.learned("learned").await;
    let hidden = patch("Steps.", "Ste\u{202e}ps");
    assert_eq!(refused("learned", "b", hidden).await, "CONTENT_BLOCKED");
    assert_eq!(refused("learned", "c", patch("Steps.", "Page.")).await, "PROPOSED");
    let uncited = request("learned", "d", patch("Steps.", "x"), None);
    let uncited = rig.skills.manage_skill(&job(Origin::Review, 1), &uncited).await;
    assert_eq!(uncited.unwrap_err().reason(), "EVIDENCE_REQUIRED");
    let mut only_checked = request("learned", "e", patch("Steps.", "y"), Some(on(None)));
    only_checked.validate_only = true;
    let checked = rig
        .skills
        .manage_skill(&job(Origin::Review, 1), &only_checked)
        .await
        .unwrap();
    assert_eq!(checked.proposal, "");
    // An older claim of the job proposes nothing either.
    rig.skills
        .view_skill(&job(Origin::Review, 2), "learned", "")
        .await
        .unwrap();
    let newer = request("learned", "f", patch("Steps.", "newer"), Some(on(None)));
    rig.skills.manage_skill(&job(Origin::Review, 2), &newer).await.unwrap();
    assert_eq!(refused("learned", "g", patch("Steps.", "older")).await, "STALE_FENCE");
}

#[tokio::test]
async fn a_curations_write_on_outsiders_words_waits_for_a_maintainer() {
    let rig = rig();
    let curation = Actor {
        user: None,
        ..job(Origin::Curation, 1)
    };
    let new = Manage::Create {
        content: skill_md("umbrella", "Do a thing"),
        category: String::new(),
        in_team: true,
    };
    let waits = rig
        .skills
        .manage_skill(
            &curation,
            &request("umbrella", "c1", new, Some(on(Some(Integrity::External)))),
        )
        .await
        .unwrap();
    let max = person("max", Role::Maintainer);
    assert_eq!((rig.waiting(&max).await, rig.waiting(&ann()).await), (1, 0));
    rig.skills
        .approve_proposal(&max, &waits.proposal, "", None)
        .await
        .unwrap();
    let made = rig.skills.resolve_active(&ann(), "team/umbrella").await.unwrap();
    assert_eq!((made.provenance, made.author), (Provenance::AgentCreated, None));
}

#[tokio::test]
async fn the_inbox_of_a_person_has_an_end() {
    let settings = crate::Settings {
        pending_proposals: 2,
        ..crate::Settings::default()
    };
    let rig = crate::testing::rig_with(settings);
    for (name, step) in [("one", "Ask."), ("two", "Wait.")] {
        rig.as_review(name, name, create(name, step), Integrity::External)
            .await
            .unwrap();
    }
    let third = rig
        .as_review("three", "three", create("three", "Go."), Integrity::External)
        .await;
    assert_eq!(third.unwrap_err().reason(), "LIMIT_EXCEEDED");
}
