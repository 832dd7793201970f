//! Yanked, revoked, reinstated: by a person, by a source, by an advisory.

use steward_fetch::{Answer, Fetch, FetchError, Request};

use super::*;
use crate::advisories::Advisories;
use crate::audit::Action;
use crate::quarantine::State;
use crate::withdrawal::{Cause, Standing};

/// A list of advisories that a test writes; nothing where it does not answer.
#[derive(Debug, Default)]
struct List(Mutex<Option<String>>);

impl List {
    fn say(&self, text: &str) {
        *self.0.lock().unwrap() = Some(text.to_owned());
    }
}

#[async_trait::async_trait]
impl Fetch for List {
    async fn fetch(&self, request: Request) -> Result<Answer, FetchError> {
        let body = self.0.lock().unwrap().clone();
        Ok(Answer {
            status: if body.is_some() { 200 } else { 503 },
            url: request.url,
            etag: None,
            content_type: None,
            body: body.unwrap_or_default().into_bytes().into(),
        })
    }
}

fn with_list(sources: Vec<Arc<dyn Source>>) -> (Rig, Arc<List>) {
    let mut rig = rig(sources);
    let list = Arc::new(List::default());
    let fetch = Arc::clone(&list) as Arc<dyn Fetch>;
    let clock: Arc<dyn Clock> = Arc::new(rig.clock.clone());
    rig.hub.parts.advisories = Some(Advisories::new(
        &fetch,
        &clock,
        vec!["https://list.example/a.json".to_owned()],
    ));
    (rig, list)
}

async fn seen(rig: &Rig) -> bool {
    rig.store.library("red", "tidy").await.unwrap().is_some()
}

fn gone() -> SourceError {
    SourceError::Gone {
        reference: "tidy".to_owned(),
    }
}

#[tokio::test]
async fn h_2_what_a_maintainer_revokes_is_out_of_sight_at_once_and_back_by_their_word_only() {
    let rig = rig(vec![Shelf::new("a", Trust::Trusted, SAFE)]);
    let lock = installed(&rig, "tidy").await;
    let empty = rig.hub.withdraw(ADA, &lock.digest, Standing::Revoked, " ").await;
    assert_eq!(empty, Err(Error::NoReason));
    let revoked = rig
        .hub
        .withdraw(ADA, &lock.digest, Standing::Revoked, "it phones home")
        .await;
    let revoked = revoked.expect("revoked");
    assert!(!seen(&rig).await);
    let again = rig
        .hub
        .withdraw(ADA, &lock.digest, Standing::Revoked, "said twice")
        .await;
    assert_eq!(again.expect("it stays"), revoked);
    let item = rig.hub.bring(ADA, "tidy").await.expect("it can be looked at");
    assert_eq!(item.state, State::AwaitingApproval, "{:?}", item.doubts);
    let refused = rig.hub.release(ADA, &item.id, "mine", false).await;
    assert!(
        matches!(
            refused,
            Err(Error::Withdrawn {
                standing: Standing::Revoked,
                ..
            })
        ),
        "{refused:?}"
    );
    let checked = rig.hub.check(ADA).await.expect("checked").remove(0);
    assert!(!checked.changed, "a check undoes no person's word");
    let none = rig.hub.reinstate(ADA, "00", "why not").await;
    assert!(matches!(none, Err(Error::NoWithdrawal { .. })), "{none:?}");
    rig.hub
        .reinstate(ADA, &lock.digest, "it was another one")
        .await
        .expect("reinstated");
    assert!(seen(&rig).await);
    rig.hub.release(ADA, &item.id, "mine", false).await.expect("released");
    let log = rig.hub.audit("red").await.expect("a log");
    let told: Vec<_> = log
        .iter()
        .filter(|entry| matches!(entry.action, Action::Withdraw | Action::Reinstate))
        .map(|entry| {
            (
                entry.subject.as_str(),
                entry.details["standing"].as_str(),
                entry.details["reason"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("tidy", "revoked", "it phones home"),
            ("tidy", "reinstated", "it was another one")
        ]
    );
    assert_eq!(audit::first_broken(&log), None);
}

#[tokio::test]
async fn h_2_what_a_source_takes_back_stays_with_a_warning_until_it_is_offered_again() {
    let shelf = Shelf::new("a", Trust::Trusted, SAFE);
    let rig = rig(vec![Arc::clone(&shelf) as Arc<dyn Source>]);
    let lock = installed(&rig, "tidy").await;
    let waiting = rig.hub.bring(ADA, "tidy").await.expect("brought");
    shelf.fail(gone());
    let checked = rig.hub.check(ADA).await.expect("checked").remove(0);
    let yanked = checked.withdrawal.expect("yanked");
    assert_eq!(
        (yanked.standing, yanked.cause, yanked.by.as_str()),
        (Standing::Yanked, Cause::Source("a".to_owned()), POLICY)
    );
    assert!(checked.changed && seen(&rig).await, "what is yanked stays");
    rig.hub.uninstall(ADA, "tidy").await.expect("removed");
    let refused = rig.hub.install(ADA, &waiting.id, Choice::default()).await;
    assert!(
        matches!(
            refused,
            Err(Error::Withdrawn {
                standing: Standing::Yanked,
                ..
            })
        ),
        "{refused:?}"
    );
    rig.hub
        .reinstate(ADA, &lock.digest, "we keep a copy")
        .await
        .expect("reinstated");
    rig.hub
        .install(ADA, &waiting.id, Choice::default())
        .await
        .expect("installed");
    let checked = rig.hub.check(ADA).await.expect("checked").remove(0);
    assert!(!checked.changed, "the cause that was overruled withdraws it no more");
}

#[tokio::test]
async fn h_2_a_source_that_does_not_answer_withdraws_nothing_and_clears_nothing() {
    let shelf = Shelf::new("a", Trust::Trusted, SAFE);
    let rig = rig(vec![Arc::clone(&shelf) as Arc<dyn Source>]);
    let lock = installed(&rig, "tidy").await;
    let silent = || SourceError::Answer {
        source_name: "a",
        problem: "status 500".to_owned(),
    };
    shelf.fail(silent());
    let checked = rig.hub.check(ADA).await.expect("checked").remove(0);
    assert_eq!((checked.withdrawal, checked.changed), (None, false));
    assert!(checked.problem.is_some_and(|problem| problem.contains("500")));
    shelf.fail(gone());
    rig.hub.check(ADA).await.expect("checked");
    shelf.fail(silent());
    rig.hub.check(ADA).await.expect("checked");
    assert!(rig.hub.withdrawal("red", &lock.digest).await.expect("read").is_some());
    shelf.put(Trust::Trusted, "r2", "Text.", None);
    let checked = rig.hub.check(ADA).await.expect("checked").remove(0);
    assert_eq!(
        (checked.withdrawal, checked.changed),
        (None, true),
        "it is offered again"
    );
}

#[tokio::test]
async fn h_2_an_advisory_yanks_or_revokes_and_a_reinstated_skill_stays() {
    let (rig, list) = with_list(vec![Shelf::new("a", Trust::Trusted, SAFE)]);
    list.say("[]");
    let lock = installed(&rig, "tidy").await;
    list.say(r#"[{"id": "A-1", "summary": "old", "affected": [{"package": {"ecosystem": "a", "name": "tidy"}, "versions": ["r1"]}]}]"#);
    let checked = rig.hub.check(ADA).await.expect("checked").remove(0);
    assert_eq!(checked.withdrawal.expect("yanked").standing, Standing::Yanked);
    assert!(seen(&rig).await);
    let worse = format!(
        r#"[{{"id": "A-2", "summary": "It steals.", "affected": [{{"database_specific": {{"digests": ["{}"], "effect": "revoke"}}}}]}}]"#,
        lock.digest
    );
    list.say(&worse);
    let checked = rig.hub.check(ADA).await.expect("checked").remove(0);
    let revoked = checked.withdrawal.expect("revoked");
    assert_eq!(
        (revoked.standing, revoked.reason.as_str()),
        (Standing::Revoked, "It steals.")
    );
    assert!(!seen(&rig).await);
    list.say("[]");
    rig.hub.check(ADA).await.expect("checked");
    assert!(!seen(&rig).await, "what was revoked comes back by a person's word only");
    rig.hub
        .reinstate(ADA, &lock.digest, "looked at")
        .await
        .expect("reinstated");
    list.say(&worse);
    rig.hub.check(ADA).await.expect("checked");
    assert!(seen(&rig).await, "what a person overruled stays overruled");
}

#[tokio::test]
async fn h_2_what_comes_in_is_held_against_the_advisories() {
    let (rig, list) = with_list(vec![Shelf::new("a", Trust::Trusted, SAFE)]);
    let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
    assert_eq!(
        item.state,
        State::AwaitingApproval,
        "a list that does not answer clears nobody"
    );
    list.say("[]");
    let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
    assert_eq!(item.state, State::Approved);
    list.say(r#"[{"id": "A-1", "affected": [{"package": {"ecosystem": "a", "name": "tidy"}}]}]"#);
    let named = rig.hub.bring(ADA, "tidy").await.expect("brought");
    assert_eq!(named.doubts, ["it is yanked: advisory A-1"]);
    let refused = rig.hub.install(ADA, &item.id, Choice::default()).await;
    assert!(
        matches!(refused, Err(Error::Withdrawn { .. })),
        "what waited is withdrawn too: {refused:?}"
    );
}
