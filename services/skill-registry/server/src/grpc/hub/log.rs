//! The hub's log: reading it, and showing that an entry is in it.

use steward_base::{FieldViolations, Timestamp, page};
use steward_proto::hub::v1 as pb;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::Hub;

use super::super::convert::time_to_pb;
use super::convert::entry_to_pb;
use super::{DEFAULT_PAGE, Person};

const MAX_ENTRIES: u32 = 500;

pub(super) async fn list_hub_audit_entries(
    hub: &Hub,
    person: &Person,
    request: pb::ListHubAuditEntriesRequest,
) -> Result<pb::ListHubAuditEntriesResponse, Error> {
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, &request.parent);
    violations.into_result()?;
    let size = page::size(request.page_size, DEFAULT_PAGE, MAX_ENTRIES)?;
    let bound = ["hubAuditEntries", request.parent.as_str()];
    let after = page::decode(&bound, &request.page_token)?;
    let after = after.and_then(|sequence| sequence.parse().ok()).unwrap_or_default();
    let size = usize::try_from(size).unwrap_or_default();
    let team = person.team.as_str();
    let mut entries = hub.audit_page(team, after, size + 1).await?;
    let more = entries.len() > size;
    entries.truncate(size);
    let last = entries.last().filter(|_| more);
    Ok(pb::ListHubAuditEntriesResponse {
        next_page_token: last.map_or_else(String::new, |entry| page::encode(&bound, &entry.sequence.to_string())),
        entries: entries.into_iter().map(|entry| entry_to_pb(team, entry)).collect(),
    })
}

pub(super) async fn check_hub_audit_entry(
    hub: &Hub,
    person: &Person,
    request: pb::CheckHubAuditEntryRequest,
    now: Timestamp,
) -> Result<pb::CheckHubAuditEntryResponse, Error> {
    let missing = |id: &str| Error::NoEntry {
        sequence: id.parse().unwrap_or_default(),
    };
    let pattern = "teams/{team}/hubAuditEntries/{sequence}";
    let id = person.child(&request.name, "hubAuditEntries", pattern, missing)?;
    let sequence = id
        .parse()
        .map_err(|_| FieldViolations::one("name", "must end in the number of an entry"))?;
    let team = person.team.as_str();
    let proof = hub.prove(team, sequence).await?;
    Ok(pb::CheckHubAuditEntryResponse {
        entry: Some(entry_to_pb(team, proof.entry)),
        entry_count: u64::try_from(proof.count).unwrap_or(u64::MAX),
        root_sha256: proof.root,
        inclusion_path: proof.path,
        included: proof.included,
        first_broken: proof.first_broken.unwrap_or_default(),
        read_time: time_to_pb(now),
    })
}
