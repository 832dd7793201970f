//! Searching, and quarantine items: looking at them and deciding about them.

use steward_base::{FieldViolations, page};
use steward_proto::hub::v1 as pb;
use steward_skill_core::revisions::diff;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::Hub;
use steward_skill_hub::quarantine::Item;
use steward_skill_scanner::{Tree, sarif};

use super::convert::{Known, found_to_pb, item_to_pb};
use super::{DEFAULT_PAGE, MAX_PAGE, Person, check_reason};
use crate::hub::files_of;

const DEFAULT_RESULTS: u32 = 20;
const MAX_RESULTS: u32 = 100;
const MAX_QUERY_CHARS: usize = 200;

pub(super) async fn search_hub(
    hub: &Hub,
    person: &Person,
    request: pb::SearchHubRequest,
) -> Result<pb::SearchHubResponse, Error> {
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, &request.parent);
    let query = request.query.trim();
    if !(1..=MAX_QUERY_CHARS).contains(&query.chars().count()) {
        violations.add("query", format!("must have 1 to {MAX_QUERY_CHARS} characters"));
    }
    if request.source_limit < 0 {
        violations.add("source_limit", "must not be negative");
    }
    violations.into_result()?;
    let limit = page::size(request.source_limit, DEFAULT_RESULTS, MAX_RESULTS)?;
    let results = hub.search(query, usize::try_from(limit).unwrap_or_default()).await;
    let failures = results.failed.into_iter().map(|failed| pb::HubSourceFailure {
        source: failed.source,
        problem: failed.problem,
    });
    Ok(pb::SearchHubResponse {
        failures: failures.collect(),
        results: results.found.into_iter().map(found_to_pb).collect(),
        sources: hub.source_names().into_iter().map(str::to_owned).collect(),
    })
}

pub(super) async fn get_hub_item(
    hub: &Hub,
    person: &Person,
    request: pb::GetHubItemRequest,
) -> Result<pb::GetHubItemResponse, Error> {
    let team = person.team.as_str();
    let item = hub.item(team, person.item(&request.name)?).await?;
    Ok(pb::GetHubItemResponse {
        diff: diff_of(hub, team, &item).await?,
        item: Some(item_to_pb(team, &item, &Known::read(hub, team).await?)),
    })
}

/// What an item would change in what was approved last.
async fn diff_of(hub: &Hub, team: &str, item: &Item) -> Result<String, Error> {
    if item.tree.is_empty() {
        return Ok(String::new());
    }
    let before = match hub.installed(team, &item.resolved.name).await {
        Ok(installed) if installed.lock.item == item.id => return Ok(String::new()),
        Ok(installed) => hub.approved(team, &installed.lock).await?,
        Err(Error::NotInstalled { .. }) => Tree::new(),
        Err(error) => return Err(error),
    };
    diff_between(&before, &item.tree)
}

/// A unified diff of two trees.
pub(super) fn diff_between(before: &Tree, after: &Tree) -> Result<String, Error> {
    Ok(diff(&files_of(before)?, &files_of(after)?))
}

pub(super) async fn list_hub_items(
    hub: &Hub,
    person: &Person,
    request: pb::ListHubItemsRequest,
) -> Result<pb::ListHubItemsResponse, Error> {
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, &request.parent);
    violations.into_result()?;
    let size = page::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
    let bound = ["hubItems", request.parent.as_str()];
    let after = page::decode(&bound, &request.page_token)?;
    let size = usize::try_from(size).unwrap_or_default();
    let team = person.team.as_str();
    let mut items = hub.items(team, after.as_deref(), size + 1).await?;
    let more = items.len() > size;
    items.truncate(size);
    let last = items.last().filter(|_| more);
    let known = Known::read(hub, team).await?;
    Ok(pb::ListHubItemsResponse {
        next_page_token: last.map_or_else(String::new, |item| page::encode(&bound, &item.place())),
        items: items.iter().map(|item| item_to_pb(team, item, &known)).collect(),
    })
}

pub(super) async fn release_hub_item(
    hub: &Hub,
    person: &Person,
    request: pb::ReleaseHubItemRequest,
) -> Result<pb::ReleaseHubItemResponse, Error> {
    let id = person.item(&request.name)?;
    let mut violations = FieldViolations::new();
    check_reason(&mut violations, &request.reason);
    violations.into_result()?;
    let released = hub.release(person.actor(), id, &request.reason, request.force).await?;
    let known = Known::read(hub, person.team.as_str()).await?;
    let item = Some(item_to_pb(person.team.as_str(), &released, &known));
    Ok(pb::ReleaseHubItemResponse { item })
}

pub(super) async fn reject_hub_item(
    hub: &Hub,
    person: &Person,
    request: pb::RejectHubItemRequest,
) -> Result<pb::RejectHubItemResponse, Error> {
    let id = person.item(&request.name)?;
    let mut violations = FieldViolations::new();
    check_reason(&mut violations, &request.reason);
    violations.into_result()?;
    let rejected = hub.reject(person.actor(), id, &request.reason).await?;
    let known = Known::read(hub, person.team.as_str()).await?;
    let item = Some(item_to_pb(person.team.as_str(), &rejected, &known));
    Ok(pb::RejectHubItemResponse { item })
}

pub(super) async fn accept_hub_finding(
    hub: &Hub,
    person: &Person,
    request: pb::AcceptHubFindingRequest,
) -> Result<pb::AcceptHubFindingResponse, Error> {
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, &request.parent);
    check_reason(&mut violations, &request.reason);
    let hexadecimal = |character: char| matches!(character, '0'..='9' | 'a'..='f');
    if request.fingerprint.len() != 64 || !request.fingerprint.chars().all(hexadecimal) {
        violations.add("fingerprint", "must have 64 hexadecimal characters");
    }
    violations.into_result()?;
    hub.accept(person.actor(), &request.fingerprint, &request.reason)
        .await?;
    Ok(pb::AcceptHubFindingResponse {})
}

pub(super) async fn export_hub_findings(
    hub: &Hub,
    person: &Person,
    request: pb::ExportHubFindingsRequest,
) -> Result<pb::ExportHubFindingsResponse, Error> {
    let item = hub.item(person.team.as_str(), person.item(&request.name)?).await?;
    let report = item.report.as_ref().ok_or(Error::WrongState { state: item.state })?;
    let sarif_json = sarif::export(report).to_string();
    Ok(pb::ExportHubFindingsResponse { sarif_json })
}
