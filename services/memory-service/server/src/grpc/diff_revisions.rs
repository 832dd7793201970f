//! `DiffRevisions`.

use steward_base::FieldViolations;
use steward_memory_core::diff::{Change, Line};
use steward_memory_core::{Memory, StoreName};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::checked;
use super::fail;

pub(super) async fn diff_revisions(
    memory: &Memory,
    request: Request<pb::DiffRevisionsRequest>,
) -> Result<Response<pb::DiffRevisionsResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let request = request.get_ref();
    let mut violations = FieldViolations::new();
    let entry = violations.take("name", StoreName::parse_entry(&request.name));
    let from = violations.take("from_revision", number(request.from_revision));
    let to = violations.take("to_revision", number(request.to_revision));
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let (store, entry) = checked(entry, "name").map_err(fail)?;
    let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
    let diff = memory
        .diff_revisions(caller, &store, &entry, from, to)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::DiffRevisionsResponse {
        lines: diff.lines.into_iter().map(line_to_pb).collect(),
        to_revision: u64::from(diff.to),
    }))
}

fn number(revision: u64) -> Result<u32, &'static str> {
    u32::try_from(revision).map_err(|_| "must be the number of a revision")
}

fn line_to_pb(line: Line) -> pb::DiffLine {
    let change = match line.change {
        Change::Same => pb::diff_line::Change::Same,
        Change::Removed => pb::diff_line::Change::Removed,
        Change::Added => pb::diff_line::Change::Added,
    };
    pb::DiffLine {
        change: change.into(),
        text: line.text,
    }
}
