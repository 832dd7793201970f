//! `GetSnapshot`.

use steward_base::FieldViolations;
use steward_base::names::{TeamId, parse_user};
use steward_memory_core::{LeftOut, Memory, Owner, Snapshot};
use steward_proto::common::v1::Exposure;
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::checked;
use super::fail;

/// Most failed checks in one request.
const MOST_CHECKS: usize = 500;

pub(super) async fn get_snapshot(
    memory: &Memory,
    request: Request<pb::GetSnapshotRequest>,
) -> Result<Response<pb::GetSnapshotResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let pb::GetSnapshotRequest {
        user,
        project,
        failed_checks,
    } = request.get_ref();
    let mut violations = FieldViolations::new();
    let person = violations.take("user", parse_user(user));
    let project = project_from_pb(project, person.as_ref().map(|(team, _)| team), &mut violations);
    if failed_checks.len() > MOST_CHECKS {
        violations.add("failed_checks", format!("must hold at most {MOST_CHECKS} checks"));
    }
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let (team, user) = checked(person, "user").map_err(fail)?;
    let snapshot = memory
        .get_snapshot(
            caller,
            &team,
            &user,
            project.as_ref(),
            failed_checks.iter().cloned().collect(),
        )
        .await
        .map_err(fail)?;
    Ok(Response::new(snapshot_to_pb(snapshot)))
}

/// A project by its key or by its resource name in the same team.
fn project_from_pb(project: &str, team: Option<&TeamId>, violations: &mut FieldViolations) -> Option<Owner> {
    if project.is_empty() {
        return None;
    }
    if !project.contains('/') {
        return violations.take("project", Owner::project(project));
    }
    match Owner::parse(project) {
        Ok((of, owner @ Owner::Project(_))) if team.is_none_or(|team| *team == of) => Some(owner),
        _ => {
            violations.add(
                "project",
                "must be the key of a project, or teams/{team}/projects/{project} in the user's team",
            );
            None
        }
    }
}

fn snapshot_to_pb(snapshot: Snapshot) -> pb::GetSnapshotResponse {
    let exposures = snapshot.shown.into_iter().map(|shown| Exposure {
        artifact: shown.entry,
        revision: shown.revision.to_string(),
        stage: "snapshot".to_owned(),
        arm: "shown".to_owned(),
        ..Exposure::default()
    });
    pb::GetSnapshotResponse {
        text: snapshot.text,
        exposures: exposures.collect(),
        sha256: snapshot.sha256,
        stale_entries: snapshot.left_out.into_iter().map(stale_to_pb).collect(),
    }
}

fn stale_to_pb(left_out: LeftOut) -> pb::StaleEntry {
    pb::StaleEntry {
        entry: left_out.entry,
        revision: u64::from(left_out.revision),
        cause: left_out.stale.to_string(),
    }
}
