//! The whole worker against services that do as told: from the outbox to the ledger and what people see of it.

mod fakes;

use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{TeamId, UserId};
use steward_base::{Clock as _, Role, SystemClock};
use steward_client::{Credentials, RetryPolicy, ReviewClient, Wire};
use steward_grpc::{Auth, Built, Claims, Revocations, TokenSigner};
use steward_proto::agent::v1 as agent;
use steward_proto::agent::v1::model_message::Message as Sent;
use steward_proto::common::v1 as common;
use steward_proto::learning::v1 as pb;
use steward_proto::learning::v1::{ReviewState, review_write};
use steward_proto::memory::v1 as memory;
use steward_runtime::Boot;
use steward_testkit::{PATIENCE, TempDir, wait_for, wait_for_some};

use crate::{Config, Deps, build};
use fakes::{Fakes, Turn, calls, says};

const ADD: &str = r#"{"action":"add","target":"profile","content":"Prefers metric units","evidence":["s1"],"basis":"stated","why":"w"}"#;
const NOTHING: &str = r#"{"result":"no_change","rejected":[{"candidate":"c","reason":"r"}]}"#;
const ANN: &str = "teams/red/users/ann";

/// A worker on a folder of its own.
struct Rig {
    folder: TempDir,
    fakes: Fakes,
    signer: TokenSigner,
    boot: Boot,
    built: Built,
}

impl Rig {
    async fn new(name: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        let folder = TempDir::new(name);
        std::fs::create_dir(folder.join("agent")).unwrap();
        std::fs::write(folder.join("agent/curator-worker.token"), "service-token\n").unwrap();
        Self::start(folder, Fakes::new(turns), TokenSigner::generate().unwrap()).await
    }

    async fn start(folder: TempDir, fakes: Fakes, signer: TokenSigner) -> Self {
        let boot = Boot::new(folder.path());
        let clock = Arc::clone(&boot.clock);
        let auth = Arc::new(Auth::new(
            signer.public_keys(),
            Revocations::in_memory(Arc::clone(&clock)),
            clock,
        ));
        let wire = |wire: Wire| wire.with_retry(RetryPolicy::never());
        let [recall, memory, skills, agent] = [fakes.recall(), fakes.memory(), fakes.skills(), fakes.agent()].map(wire);
        let mut deps = Deps::new(auth, &recall, &memory, &skills, &agent);
        deps.access = steward_client::AccessClient::new(fakes.access());
        let config = Config {
            heartbeat_seconds: 1,
            backoff_seconds: 0,
            outbox_milliseconds: 10,
            ..Config::default()
        };
        let mut built = build(config, deps, &boot).await.unwrap();
        built.start_background(&boot.tasks);
        Self {
            folder,
            fakes,
            signer,
            boot,
            built,
        }
    }

    /// Stops softly and starts again on the same folder.
    async fn restart(self, turns: impl IntoIterator<Item = Turn>) -> Self {
        let Self {
            folder,
            fakes,
            signer,
            boot,
            built,
        } = self;
        let stopped = boot.tasks.shutdown(Duration::from_secs(20)).await;
        assert!(!stopped.forced && !stopped.failed, "{stopped:?}");
        drop(built);
        fakes.script(turns);
        Self::start(folder, fakes, signer).await
    }

    fn client(&self, team: &str, user: &str) -> ReviewClient {
        let now = SystemClock.now();
        let (team, user) = (TeamId::parse(team).unwrap(), UserId::parse(user).unwrap());
        let claims = Claims::user(
            "token",
            team,
            user,
            Role::Member,
            now,
            now.plus(Duration::from_mins(10)),
        );
        let token = Credentials::token(&self.signer.sign(&claims).unwrap()).unwrap();
        ReviewClient::new(self.built.local_client().with_credentials(token))
    }

    fn ann(&self) -> ReviewClient {
        self.client("red", "ann")
    }

    async fn get(&self, id: &str) -> Option<pb::Review> {
        let request = pb::GetReviewRequest {
            name: format!("teams/red/reviews/{id}"),
        };
        self.ann().get_review(request).await.ok()?.review
    }

    /// Waits until the review is in this state.
    async fn reaches(&self, id: &str, state: ReviewState) -> pb::Review {
        wait_for_some(&format!("review {id} to be {state:?}"), PATIENCE, || async {
            self.get(id).await.filter(|review| review.state() == state)
        })
        .await
    }
}

/// A proposal as memory-service shows it to the review of Ann's session `s`.
fn waits(id: &str, session: &str, span: &str, origin: common::Origin) -> memory::Proposal {
    let add = memory::operation::Action::Add(memory::AddEntry {
        content: format!("From now on, {id}."),
    });
    memory::Proposal {
        name: format!("teams/red/memoryProposals/{id}"),
        store: format!("{ANN}/memory/profile"),
        operations: vec![memory::Operation { action: Some(add) }],
        provenance: Some(memory::Provenance {
            origin: origin.into(),
            evidence: Some(common::Evidence {
                session: format!("teams/red/sessions/{session}"),
                spans: vec![span.to_owned()],
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The corrections of this session up to the review's last message, and no other proposal.
#[tokio::test]
async fn a_review_decides_on_the_corrections_of_its_own_session() {
    let confirm = r#"{"action":"confirm","correction":"c1"}"#;
    let rig = Rig::new("worker-corrections", [calls(&[("memory", confirm)]), says(NOTHING)]).await;
    let foreground = common::Origin::Foreground;
    rig.fakes.state().proposals = vec![
        waits("elsewhere", "other", "s1", foreground),
        waits("proposed", "s", "s1", common::Origin::Review),
        waits("later", "s", "s3", foreground),
        waits("german", "s", "s1", foreground),
    ];
    rig.fakes.due("r1", 2, true, false);
    let review = rig.reaches("r1", ReviewState::Succeeded).await;
    assert_eq!(review.summary, "Profile updated (a correction)");
    let approved = rig.fakes.state().approved.clone();
    let approved: Vec<&str> = approved.iter().map(|request| request.name.as_str()).collect();
    assert_eq!(approved, ["teams/red/memoryProposals/german"]);
    let request = rig.fakes.requests().remove(0);
    let Some(Sent::User(asked)) = request.messages.last().and_then(|last| last.message.clone()) else {
        panic!("a review asks as a user")
    };
    assert!(
        asked
            .text
            .contains("Corrections that wait for you:\n- c1 profile: From now on, german.\n\n")
    );
}

#[tokio::test]
async fn a_due_review_becomes_a_write_and_one_line_for_people() {
    let rig = Rig::new("worker-loop", [calls(&[("memory", ADD)]), says(NOTHING)]).await;
    rig.fakes.due("r1", 2, true, true);
    let review = rig.reaches("r1", ReviewState::Succeeded).await;
    assert_eq!((review.summary.as_str(), review.iterations), ("Profile updated", 2));
    assert_eq!(
        (review.mode.as_str(), review.integrity()),
        ("replay", common::Integrity::Workspace)
    );
    assert_eq!(review.usage.unwrap().input_tokens, Some(20));
    assert_eq!(
        (review.cost_microdollars, review.unpriced_calls),
        (3, 1),
        "one call has a price"
    );
    let write = &review.writes[0];
    assert_eq!(
        (write.result(), write.why.as_str()),
        (review_write::Result::Accepted, "w")
    );
    assert_eq!(write.evidence.clone().unwrap().spans, ["s1"]);
    let applied = rig.fakes.applied();
    assert_eq!(applied[0].request_id, "r1/0/0");
    assert_eq!(applied[0].evidence.clone().unwrap().basis(), common::Basis::Stated);
    wait_for("the outbox to be empty", PATIENCE, || async {
        rig.fakes.due_count() == 0
    })
    .await;
    let exchanged = rig.fakes.exchanged().remove(0);
    assert_eq!(
        (exchanged.user.as_str(), exchanged.fence, exchanged.origin()),
        (ANN, 1, common::Origin::Review)
    );
    assert!(exchanged.capabilities.contains(&"memory".to_owned()));
    assert_eq!(rig.fakes.requests()[0].system_prompt, "the parent's prompt");
}

/// `R-3`: the stable part of the prompt is marked as in the session, and the provider gets its own messages back as it wrote
/// them: those of the session and those of the review, after a try that broke off as well.
#[tokio::test]
async fn the_provider_gets_its_own_messages_back() {
    let rig = Rig::new("worker-native", [calls(&[("memory", ADD)]), says(NOTHING)]).await;
    rig.fakes.lose_next_answer();
    rig.fakes.due("r1", 2, true, true);
    rig.reaches("r1", ReviewState::Succeeded).await;
    let requests = rig.fakes.requests();
    assert_eq!(
        requests.len(),
        2,
        "the second try reads the first reply from the journal"
    );
    assert!(requests.iter().all(|request| request.stable_prompt_bytes == 10));
    let natives = |request: &agent::GenerateRequest| -> Vec<(usize, String)> {
        let messages = request.messages.iter().enumerate();
        let native = messages.filter_map(|(at, message)| match message.message.clone()? {
            Sent::Assistant(assistant) => Some((at, assistant.native?.blocks_json)),
            Sent::User(_) | Sent::Tool(_) => None,
        });
        native.collect()
    };
    let said = (1, r#"["said"]"#.to_owned());
    assert_eq!(natives(&requests[0]), std::slice::from_ref(&said));
    assert_eq!(natives(&requests[1]), [said, (3, r#"["answer 1"]"#.to_owned())]);
}

#[tokio::test]
async fn a_repeat_is_announced_to_nobody() {
    let rig = Rig::new("worker-repeat", [calls(&[("memory", ADD)]), says(NOTHING)]).await;
    rig.fakes.everything_is_stored();
    rig.fakes.due("r1", 2, true, false);
    let review = rig.reaches("r1", ReviewState::NothingToSave).await;
    assert_eq!(
        (review.summary.as_str(), review.writes[0].result()),
        ("", review_write::Result::Unchanged)
    );
    let trailing = format!("{:?}", rig.fakes.requests()[0].messages.last());
    assert!(
        trailing.contains("Prefers short answers"),
        "the present entries are in the review's prompt"
    );
    assert!(!rig.fakes.exchanged()[0].capabilities.is_empty());
}

#[tokio::test]
async fn a_soft_stop_puts_a_running_review_back_and_the_next_start_finishes_it() {
    let rig = Rig::new("worker-stop", [Turn::Hang]).await;
    rig.fakes.due("r1", 2, true, false);
    wait_for("the model to be asked", PATIENCE, || async {
        rig.fakes.requests().len() == 1
    })
    .await;
    let rig = rig.restart([calls(&[("memory", ADD)]), says(NOTHING)]).await;
    let review = rig.reaches("r1", ReviewState::Succeeded).await;
    assert_eq!(review.attempts, 1, "the stop cost no try");
}

#[tokio::test]
async fn a_retry_goes_on_from_the_journal_though_the_model_answers_differently() {
    let other = r#"{"action":"add","target":"notes","content":"x","evidence":["s1"],"basis":"stated"}"#;
    let rig = Rig::new(
        "worker-retry",
        [calls(&[("memory", ADD)]), calls(&[("memory", other)]), says(NOTHING)],
    )
    .await;
    rig.fakes.lose_next_answer();
    rig.fakes.due("r1", 2, true, false);
    let review = rig.reaches("r1", ReviewState::Succeeded).await;
    assert_eq!(review.attempts, 2);
    let keys: Vec<_> = rig
        .fakes
        .applied()
        .into_iter()
        .map(|request| (request.request_id, request.store))
        .collect();
    let profile = format!("{ANN}/memory/profile");
    assert_eq!(
        keys[..2],
        [("r1/0/0".to_owned(), profile.clone()), ("r1/0/0".to_owned(), profile)]
    );
}

#[tokio::test]
async fn a_model_that_never_answers_ends_in_a_visible_death() {
    let rig = Rig::new("worker-dead", []).await;
    rig.fakes.due("r1", 2, true, false);
    let review = rig.reaches("r1", ReviewState::Dead).await;
    assert_eq!(
        (review.attempts, review.error_reason.as_str()),
        (3, "MODEL_UNAVAILABLE")
    );
    assert_eq!(review.error_message, "The model did not answer.");
    rig.fakes.script([says(NOTHING)]);
    rig.ann()
        .retry_review(pb::RetryReviewRequest { name: review.name })
        .await
        .unwrap();
    rig.reaches("r1", ReviewState::NothingToSave).await;
}

#[tokio::test]
async fn a_user_without_access_and_a_session_that_is_gone_cancel() {
    let rig = Rig::new("worker-access", [says(NOTHING)]).await;
    rig.fakes.refuse_tokens("USER_DISABLED");
    rig.fakes.due("r1", 2, true, false);
    let review = rig.reaches("r1", ReviewState::Cancelled).await;
    assert_eq!(review.error_reason, "ACCESS_LOST");
    rig.fakes.accept_tokens();
    rig.fakes.due_of("gone", "r2", 2);
    assert_eq!(
        rig.reaches("r2", ReviewState::Cancelled).await.error_reason,
        "SESSION_DELETED"
    );
    assert!(rig.fakes.requests().is_empty(), "the model was never asked");
}

#[tokio::test]
async fn a_running_review_is_cancelled_at_once() {
    let rig = Rig::new("worker-cancel", [Turn::Hang]).await;
    rig.fakes.due("r1", 2, true, false);
    wait_for("the model to be asked", PATIENCE, || async {
        rig.fakes.requests().len() == 1
    })
    .await;
    let name = "teams/red/reviews/r1".to_owned();
    rig.ann()
        .cancel_review(pb::CancelReviewRequest { name: name.clone() })
        .await
        .unwrap();
    let review = rig.reaches("r1", ReviewState::Cancelled).await;
    assert_eq!(review.error_reason, "CANCELLED");
    let again = rig
        .ann()
        .cancel_review(pb::CancelReviewRequest { name })
        .await
        .unwrap_err();
    assert_eq!(again.reason, "REVIEW_ENDED");
}

#[tokio::test]
async fn a_newer_review_makes_the_running_one_give_way_and_takes_it_over() {
    let rig = Rig::new("worker-newer", [Turn::Wait(Box::new(calls(&[("memory", ADD)])))]).await;
    rig.fakes.due("r1", 2, true, false);
    wait_for("the model to be asked", PATIENCE, || async {
        rig.fakes.requests().len() == 1
    })
    .await;
    rig.fakes.due("r2", 2, false, true);
    wait_for("the newer one to be queued", PATIENCE, || async {
        rig.get("r2").await.is_some()
    })
    .await;
    rig.fakes.script([says(NOTHING)]);
    // The safe point is after the answer that is on its way.
    wait_for("the older one to be taken over", PATIENCE, || async {
        rig.fakes.release();
        rig.get("r1")
            .await
            .is_some_and(|review| review.state() == ReviewState::Absorbed)
    })
    .await;
    let older = rig.get("r1").await.unwrap();
    assert_eq!(
        (older.absorbed_by.as_str(), older.summary.as_str()),
        ("teams/red/reviews/r2", "Profile updated")
    );
    let newer = rig.reaches("r2", ReviewState::NothingToSave).await;
    assert!(newer.memory && newer.skills, "kinds are united");
}

#[tokio::test]
async fn a_new_turn_of_the_person_comes_first_and_costs_no_try() {
    let rig = Rig::new(
        "worker-turn",
        [Turn::Wait(Box::new(calls(&[("memory", ADD)]))), says(NOTHING)],
    )
    .await;
    rig.fakes.due("r1", 2, true, false);
    wait_for("the model to be asked", PATIENCE, || async {
        rig.fakes.requests().len() == 1
    })
    .await;
    rig.fakes.open_turn("another");
    let mut others = 0;
    // Each review that comes in makes the worker look up; it looks at the session from time to time.
    let fences = || rig.fakes.exchanged().iter().map(|exchange| exchange.fence).max();
    wait_for("the review to be handed out again", PATIENCE, || {
        others += 1;
        rig.fakes.due_of("gone", &format!("x{others}"), 2);
        let looked = rig.fakes.looks() >= 3;
        if looked {
            rig.fakes.release();
        }
        let again = fences() >= Some(2);
        async move { again }
    })
    .await;
    rig.fakes.open_turn("");
    let review = rig.reaches("r1", ReviewState::Succeeded).await;
    assert_eq!((review.attempts, review.iterations), (1, 2));
    assert_eq!(
        rig.fakes.applied().len(),
        1,
        "what was written before is not written again"
    );
}

#[tokio::test]
async fn people_see_their_own_reviews_only_and_learn_everything_that_is_wrong() {
    let rig = Rig::new("worker-own", [says(NOTHING)]).await;
    rig.fakes.due("r1", 2, true, false);
    let name = rig.reaches("r1", ReviewState::NothingToSave).await.name;
    for (team, user) in [("red", "bob"), ("blue", "ann")] {
        let stranger = rig.client(team, user);
        let error = stranger
            .get_review(pb::GetReviewRequest { name: name.clone() })
            .await
            .unwrap_err();
        assert_eq!(error.reason, "REVIEW_NOT_FOUND");
        let error = stranger
            .retry_review(pb::RetryReviewRequest { name: name.clone() })
            .await
            .unwrap_err();
        assert_eq!(error.reason, "REVIEW_NOT_FOUND");
        let parent = ANN.to_owned();
        let error = stranger
            .list_reviews(pb::ListReviewsRequest {
                parent,
                ..Default::default()
            })
            .await
            .unwrap_err();
        assert_eq!(error.violations[0].field, "parent");
    }
    let missing = pb::GetReviewRequest {
        name: "teams/red/reviews/none".to_owned(),
    };
    assert_eq!(
        rig.ann().get_review(missing).await.unwrap_err().reason,
        "REVIEW_NOT_FOUND"
    );
    let wrong = pb::ListReviewsRequest {
        parent: "ann".to_owned(),
        session: "teams/blue/sessions/s".to_owned(),
        page_size: -1,
        page_token: "x".to_owned(),
    };
    let error = rig.ann().list_reviews(wrong).await.unwrap_err();
    let fields: Vec<_> = error
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["page_size", "page_token", "parent", "session"]);
    let error = rig
        .ann()
        .retry_review(pb::RetryReviewRequest { name })
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason, error.kind),
        ("REVIEW_NOT_RETRYABLE", steward_base::ErrorKind::Precondition)
    );
}

/// `R-8`: off, on, verbose.
#[tokio::test]
async fn a_watch_tells_as_much_as_is_wanted() {
    let rig = Rig::new("worker-detail", [calls(&[("memory", ADD)]), says(NOTHING)]).await;
    rig.fakes.due("r1", 2, true, false);
    rig.reaches("r1", ReviewState::Succeeded).await;
    for (detail, summary) in [
        (pb::ReviewDetail::Unspecified, "Profile updated"),
        (pb::ReviewDetail::Off, ""),
        (pb::ReviewDetail::On, "Profile updated"),
        (pb::ReviewDetail::Verbose, "Profile updated: Prefers metric units"),
    ] {
        let request = pb::WatchReviewsRequest {
            parent: ANN.to_owned(),
            cursor: "0".to_owned(),
            detail: detail.into(),
            ..pb::WatchReviewsRequest::default()
        };
        let mut watch = rig.ann().watch_reviews(request).await.unwrap();
        let told = loop {
            let item = watch.message().await.unwrap().expect("the stream has no end");
            if let Some(review) = item.review {
                break review;
            }
        };
        assert_eq!((told.state(), told.summary.as_str()), (ReviewState::Succeeded, summary));
        assert_eq!(told.writes[0].preview, "Prefers metric units");
    }
}

#[tokio::test]
async fn a_watch_shows_changes_and_goes_on_from_its_cursor() {
    let rig = Rig::new("worker-watch", [says(NOTHING)]).await;
    let request = pb::WatchReviewsRequest {
        parent: ANN.to_owned(),
        ..Default::default()
    };
    let mut watch = rig.ann().watch_reviews(request.clone()).await.unwrap();
    let first = watch.message().await.unwrap().unwrap();
    assert!(first.review.is_none(), "nothing is unfinished yet");
    rig.fakes.due("r1", 2, true, false);
    let mut seen = Vec::new();
    while seen.last() != Some(&ReviewState::NothingToSave) {
        let item = watch.message().await.unwrap().unwrap();
        seen.extend(item.review.map(|review| review.state()));
    }
    assert!(
        seen.iter()
            .all(|state| { [ReviewState::Queued, ReviewState::Running, ReviewState::NothingToSave].contains(state) })
    );
    let again = pb::WatchReviewsRequest {
        cursor: first.cursor,
        ..request.clone()
    };
    let mut watch = rig.ann().watch_reviews(again).await.unwrap();
    let mut last = watch.message().await.unwrap().unwrap();
    while last.review.is_none() {
        last = watch.message().await.unwrap().unwrap();
    }
    assert_eq!(
        last.review.unwrap().state(),
        ReviewState::NothingToSave,
        "what was missed is shown as it is now"
    );
    let wrong = pb::WatchReviewsRequest {
        cursor: "soon".to_owned(),
        ..request
    };
    assert_eq!(
        rig.ann().watch_reviews(wrong).await.unwrap_err().violations[0].field,
        "cursor"
    );
    rig.boot.tasks.stop();
    let end = loop {
        match watch.message().await {
            Ok(item) => assert!(item.is_some(), "a stop is not an end: the client is to come again"),
            Err(error) => break error,
        }
    };
    assert_eq!(end.kind, steward_base::ErrorKind::Unavailable);
}
