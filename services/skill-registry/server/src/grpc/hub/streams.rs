//! Calls that take their time tell how far they are. The work is done while the stream is read; who goes away ends it.

use std::future::Future;
use std::pin::Pin;

use futures::channel::mpsc::{self, UnboundedSender};
use futures::{Stream, StreamExt as _, stream};
use steward_base::FieldViolations;
use steward_proto::hub::v1 as pb;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::{Hub, Rescanned};
use steward_skill_hub::quarantine::Item;
use steward_skill_hub::store::Installed;
use tonic::Status;

use super::convert::{Known, item_to_pb, progress_to_pb, report_to_pb, skill_name, verdict_to_pb, withdrawal_to_pb};
use super::{Person, check_request_id, fail};

/// Answers that come one by one.
pub(super) type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

const MAX_REFERENCE_CHARS: usize = 500;

/// What `work` says while it runs, in its order, and nothing after it.
fn told<T, W, F>(work: W) -> Streamed<T>
where
    T: Send + 'static,
    W: FnOnce(Teller<T>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::unbounded();
    let work = stream::once(work(Teller(sender))).filter_map(|()| std::future::ready(None));
    stream::select(receiver, work).boxed()
}

/// The end of a stream into which its work speaks.
struct Teller<T>(UnboundedSender<Result<T, Status>>);

impl<T> Teller<T> {
    /// Who no longer listens hears nothing.
    fn tell(&self, event: Result<T, Error>) {
        _ = self.0.unbounded_send(event.map_err(fail));
    }
}

pub(super) fn fetch_hub_item(
    hub: Hub,
    person: Person,
    request: pb::FetchHubItemRequest,
) -> Result<Streamed<pb::FetchHubItemResponse>, Error> {
    use pb::fetch_hub_item_response::Event;
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, &request.parent);
    check_request_id(&mut violations, &request.request_id);
    if !(1..=MAX_REFERENCE_CHARS).contains(&request.reference.trim().chars().count()) {
        violations.add("reference", format!("must have 1 to {MAX_REFERENCE_CHARS} characters"));
    }
    violations.into_result()?;
    let event = |event| pb::FetchHubItemResponse { event: Some(event) };
    Ok(told(move |teller| async move {
        let progress = |stage| teller.tell(Ok(event(Event::Progress(progress_to_pb(stage)))));
        let reference = request.reference.trim();
        let fetched = hub
            .fetch(person.actor(), reference, &request.request_id, &progress)
            .await;
        teller.tell(shown(&hub, &person, fetched).await.map(|item| event(Event::Item(item))));
    }))
}

pub(super) fn fetch_hub_update(
    hub: Hub,
    person: Person,
    request: pb::FetchHubUpdateRequest,
) -> Result<Streamed<pb::FetchHubUpdateResponse>, Error> {
    use pb::fetch_hub_update_response::Event;
    let mut violations = FieldViolations::new();
    check_request_id(&mut violations, &request.request_id);
    violations.into_result()?;
    let skill = person.skill(&request.name)?.to_owned();
    let event = |event| pb::FetchHubUpdateResponse { event: Some(event) };
    Ok(told(move |teller| async move {
        let progress = |stage| teller.tell(Ok(event(Event::Progress(progress_to_pb(stage)))));
        let fetched = hub
            .fetch_update(person.actor(), &skill, &request.request_id, &progress)
            .await;
        teller.tell(shown(&hub, &person, fetched).await.map(|item| event(Event::Item(item))));
    }))
}

/// What was fetched, as the wire has it.
async fn shown(hub: &Hub, person: &Person, fetched: Result<Item, Error>) -> Result<pb::HubItem, Error> {
    let (team, item) = (person.team.as_str(), fetched?);
    Ok(item_to_pb(team, &item, &Known::read(hub, team).await?))
}

/// Everything that is installed in the team of the request, and how much that is.
async fn every(hub: &Hub, person: &Person, parent: &str) -> Result<(Vec<Installed>, u32), Error> {
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, parent);
    violations.into_result()?;
    let all = hub.list(person.team.as_str()).await?;
    let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
    Ok((all, total))
}

pub(super) async fn check_hub_skills(
    hub: Hub,
    person: Person,
    request: &pb::CheckHubSkillsRequest,
) -> Result<Streamed<pb::CheckHubSkillsResponse>, Error> {
    let (all, total) = every(&hub, &person, &request.parent).await?;
    Ok(told(move |teller| async move {
        let team = person.team.as_str();
        let listed = hub.advisories().await;
        for (position, installed) in (1..).zip(all) {
            let checked = match hub.check_one(person.actor(), &installed.lock.name, &listed).await {
                Ok(checked) => checked,
                // Uninstalled meanwhile.
                Err(Error::NotInstalled { .. }) => continue,
                Err(error) => return teller.tell(Err(error)),
            };
            let withdrawal = checked.withdrawal.as_ref();
            let withdrawal = withdrawal.map(|found| withdrawal_to_pb(team, found, Some(&checked.lock.name)));
            teller.tell(Ok(pb::CheckHubSkillsResponse {
                name: skill_name(team, &checked.lock.name),
                withdrawal,
                changed: checked.changed,
                problem: checked.problem.unwrap_or_default(),
                position,
                total,
            }));
        }
        if let Err(error) = hub.check_items(person.actor(), &listed).await {
            teller.tell(Err(error));
        }
    }))
}

pub(super) async fn rescan_hub_skills(
    hub: Hub,
    person: Person,
    request: &pb::RescanHubSkillsRequest,
) -> Result<Streamed<pb::RescanHubSkillsResponse>, Error> {
    let (all, total) = every(&hub, &person, &request.parent).await?;
    Ok(told(move |teller| async move {
        for (position, installed) in (1..).zip(all) {
            let lock = installed.lock;
            let rescanned = match hub.rescan_one(person.actor(), &lock.name).await {
                Ok(rescanned) => rescanned,
                // Uninstalled meanwhile.
                Err(Error::NotInstalled { .. }) => continue,
                Err(error) => return teller.tell(Err(error)),
            };
            teller.tell(Ok(pb::RescanHubSkillsResponse {
                name: skill_name(person.team.as_str(), &lock.name),
                before: verdict_to_pb(lock.verdict).into(),
                worse: rescanned.as_ref().is_some_and(Rescanned::is_worse),
                report: rescanned.map(|rescanned| report_to_pb(&rescanned.report)),
                position,
                total,
            }));
        }
    }))
}
