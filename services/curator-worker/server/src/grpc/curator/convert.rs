//! From the core's run to the contract's.

use steward_base::names::{TeamId, team_name, user_name};
use steward_curator_core::curation::due::Rhythm;
use steward_curator_core::curation::{Kind, Run, RunState, TeamClock, run_name};
use steward_proto::learning::v1 as pb;

use super::super::convert::timestamp;

pub(super) fn run(run: &Run) -> pb::CurationRun {
    let problem = run.problem.clone().filter(|_| run.state == RunState::Failed);
    let (error_reason, error_message) = problem
        .map(|problem| (problem.reason, problem.message))
        .unwrap_or_default();
    let kind = match run.kind {
        Kind::Curate => pb::CurationKind::Curate,
        Kind::DryRun => pb::CurationKind::DryRun,
        Kind::Rollback => pb::CurationKind::Rollback,
    };
    let state = match run.state {
        RunState::Queued => pb::CurationState::Queued,
        RunState::Running => pb::CurationState::Running,
        RunState::Succeeded => pb::CurationState::Succeeded,
        RunState::Failed => pb::CurationState::Failed,
    };
    pb::CurationRun {
        name: run.name(),
        kind: kind.into(),
        state: state.into(),
        requester: run
            .requester
            .as_ref()
            .map(|user| user_name(&run.team, user))
            .unwrap_or_default(),
        undoes: run
            .undoes
            .as_ref()
            .map(|id| run_name(&run.team, id))
            .unwrap_or_default(),
        snapshot: run.result.snapshot.clone(),
        changes: run.result.changes,
        conflicts: run.result.conflicts,
        summary: run.result.summary.clone(),
        error_reason,
        error_message,
        attempts: run.attempts,
        create_time: Some(timestamp(run.created_at)),
        end_time: run.ended_at.map(timestamp),
    }
}

pub(super) fn status(
    team: &TeamId,
    clock: Option<&TeamClock>,
    open: Option<&Run>,
    rhythm: Rhythm,
) -> pb::CurationStatus {
    let paused = clock.is_some_and(|clock| clock.paused);
    let due = clock.filter(|_| rhythm.enabled && !paused);
    let last = clock.and_then(|clock| clock.last_run.as_ref());
    pb::CurationStatus {
        team: team_name(team),
        enabled: rhythm.enabled,
        paused,
        interval: Some(duration(rhythm.interval)),
        idle: Some(duration(rhythm.idle)),
        due_time: due.map(|clock| timestamp(clock.since.plus(rhythm.interval))),
        last_run: last.map(|(id, _)| run_name(team, id)).unwrap_or_default(),
        last_run_time: last.map(|(_, at)| timestamp(*at)),
        runs: clock.map(|clock| clock.runs).unwrap_or_default(),
        open_run: open.map(Run::name).unwrap_or_default(),
    }
}

fn duration(of: std::time::Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(of.as_secs()).unwrap_or(i64::MAX),
        nanos: 0,
    }
}
