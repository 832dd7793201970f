//! Random sequences of operations on both engines at once: they must answer alike, and whatever happens, no job runs
//! under two live leases, none is lost, tries are bounded and stale claims change nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use steward_base::{Clock, Timestamp};

use crate::contract::{LEASE, Rig, about, in_memory, job, on_sqlite, options, team};
use crate::{Claim, ClaimedJob, Failure, Job, JobState, ListJobs, NewJob, QueueError, Release};

const TEAMS: [&str; 2] = ["t", "u"];

#[derive(Debug, Clone)]
enum Step {
    Put {
        team: usize,
        id: u8,
        matter: Option<u8>,
        delay: u64,
    },
    Take,
    Beat(usize),
    Complete(usize),
    Fail {
        claim: usize,
        retry: bool,
    },
    Release {
        claim: usize,
        reason: Release,
    },
    Cancel {
        team: usize,
        id: u8,
    },
    Revive {
        team: usize,
        id: u8,
    },
    Advance(u64),
    /// The store's clock is set, forwards or back, by minutes.
    Jump(i64),
    Sweep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = || (0..TEAMS.len(), 0_u8..8);
    let claim = || 0_usize..6;
    let step = prop_oneof![
        4 => (which(), proptest::option::of(0_u8..3), prop_oneof![3 => Just(0), 1 => 1_u64..300])
            .prop_map(|((team, id), matter, delay)| Step::Put { team, id, matter, delay }),
        5 => Just(Step::Take),
        2 => claim().prop_map(Step::Beat),
        2 => claim().prop_map(Step::Complete),
        2 => (claim(), any::<bool>()).prop_map(|(claim, retry)| Step::Fail { claim, retry }),
        2 => (claim(), prop_oneof![Just(Release::GiveWay), Just(Release::Shutdown)])
            .prop_map(|(claim, reason)| Step::Release { claim, reason }),
        1 => which().prop_map(|(team, id)| Step::Cancel { team, id }),
        1 => which().prop_map(|(team, id)| Step::Revive { team, id }),
        3 => (1_u64..200).prop_map(Step::Advance),
        1 => (-300_i64..300).prop_map(Step::Jump),
        1 => Just(Step::Sweep),
    ];
    proptest::collection::vec(step, 1..60)
}

/// What an outsider remembers of the claims that were handed out.
#[derive(Default)]
struct Witness {
    claims: Vec<Claim>,
    /// For each job the highest fence, and the end of its lease while the claim lives.
    jobs: BTreeMap<(String, String), (u64, Option<Timestamp>)>,
    put: usize,
}

impl Witness {
    /// One of the latest claims, so that current ones are hit often and stale ones too.
    fn claim(&self, back: usize) -> Option<Claim> {
        let index = self.claims.len().checked_sub(1 + back)?;
        self.claims.get(index).cloned()
    }

    fn entry(&mut self, claim: &Claim) -> &mut (u64, Option<Timestamp>) {
        self.jobs
            .entry((claim.team.to_string(), claim.job.clone()))
            .or_default()
    }

    fn handed_out(&mut self, claimed: &ClaimedJob) {
        // The store's clock, which is ahead where the machine's was set back.
        let now = claimed.lease_until.minus(LEASE);
        let (fence, lease) = self.entry(&claimed.claim);
        assert!(
            lease.is_none_or(|until| until <= now),
            "two live leases on {:?}",
            claimed.claim
        );
        assert!(claimed.claim.fence > *fence, "the fence did not grow");
        *fence = claimed.claim.fence;
        *lease = Some(claimed.lease_until);
        assert!(claimed.job.attempts <= options().max_attempts, "too many tries");
        self.claims.push(claimed.claim.clone());
    }

    fn used(&mut self, claim: &Claim, succeeded: bool, lease: Option<Timestamp>) {
        let newest = self.entry(claim);
        if succeeded {
            assert_eq!(claim.fence, newest.0, "a stale claim was accepted");
            newest.1 = lease;
        }
    }
}

async fn run(rig: &Rig, steps: &[Step]) -> Vec<String> {
    let mut witness = Witness::default();
    let mut answers = Vec::new();
    for step in steps {
        answers.push(take_step(rig, step, &mut witness).await);
        check_state(rig, &witness).await;
    }
    drain(rig, &mut witness).await;
    answers
}

async fn take_step(rig: &Rig, step: &Step, witness: &mut Witness) -> String {
    let now = rig.clock.now();
    match step {
        Step::Put {
            team: at,
            id,
            matter,
            delay,
        } => {
            let plain = NewJob {
                run_at: Some(now.plus(Duration::from_secs(*delay))),
                ..job(TEAMS[*at], &id.to_string())
            };
            let new = matter.map_or(plain.clone(), |matter| about(&matter.to_string(), plain));
            let outcome = rig.put(new).await;
            witness.put += usize::from(!matches!(outcome, crate::Enqueued::Known(_)));
            format!("{outcome:?}")
        }
        Step::Take => match rig.take().await {
            Some(claimed) => {
                witness.handed_out(&claimed);
                format!("{claimed:?}")
            }
            None => "nothing".to_owned(),
        },
        Step::Cancel { team: at, id } => shown(&rig.queue.cancel(&team(TEAMS[*at]), &id.to_string()).await),
        Step::Revive { team: at, id } => shown(&rig.queue.revive(&team(TEAMS[*at]), &id.to_string()).await),
        Step::Advance(seconds) => rig.clock.advance(Duration::from_secs(*seconds)).to_string(),
        Step::Jump(minutes) => {
            let jumped = now.as_micros() + minutes * 60_000_000;
            rig.clock.set(Timestamp::from_micros(jumped));
            rig.clock.now().to_string()
        }
        Step::Sweep => shown(&rig.queue.sweep().await),
        Step::Beat(back)
        | Step::Complete(back)
        | Step::Fail { claim: back, .. }
        | Step::Release { claim: back, .. } => match witness.claim(*back) {
            Some(claim) => use_claim(rig, step, &claim, witness).await,
            None => "no claim yet".to_owned(),
        },
    }
}

async fn use_claim(rig: &Rig, step: &Step, claim: &Claim, witness: &mut Witness) -> String {
    match step {
        Step::Beat(_) => {
            let outcome = rig.queue.heartbeat(claim, LEASE).await;
            witness.used(
                claim,
                outcome.is_ok(),
                outcome.as_ref().ok().map(|beat| beat.lease_until),
            );
            shown(&outcome)
        }
        Step::Fail { retry, .. } => {
            let failure = Failure {
                message: "it failed".to_owned(),
                retry: *retry,
                not_before: None,
            };
            let outcome = rig.queue.fail(claim, failure).await;
            witness.used(claim, outcome.is_ok(), None);
            shown(&outcome)
        }
        Step::Release { reason, .. } => {
            let outcome = rig.queue.release(claim, *reason).await;
            witness.used(claim, outcome.is_ok(), None);
            shown(&outcome)
        }
        _ => {
            let outcome = rig.queue.complete(claim).await;
            witness.used(claim, outcome.is_ok(), None);
            shown(&outcome)
        }
    }
}

fn shown<T: std::fmt::Debug>(outcome: &Result<T, QueueError>) -> String {
    match outcome {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

async fn all(rig: &Rig) -> Vec<Job> {
    let everything = ListJobs {
        team: None,
        states: Vec::new(),
        after: 0,
        limit: 1_000,
    };
    rig.queue.list(everything).await.expect("a list")
}

async fn check_state(rig: &Rig, witness: &Witness) {
    let jobs = all(rig).await;
    assert_eq!(jobs.len(), witness.put, "a job was lost or made up");
    for job in &jobs {
        assert!(job.attempts <= options().max_attempts);
        assert_eq!(job.lease_until.is_some(), job.state == JobState::Running);
        assert_eq!(job.finished_at.is_some(), job.state.is_final());
        if let Some(absorber) = &job.absorbed_by {
            assert!(
                jobs.iter()
                    .any(|other| other.team == job.team && other.id == *absorber && other.seq > job.seq)
            );
        }
    }
    let running: Vec<_> = jobs.iter().filter(|job| job.state == JobState::Running).collect();
    for name in TEAMS {
        let cap = usize::try_from(options().team_cap).expect("a small number");
        assert!(running.iter().filter(|job| job.team.as_str() == name).count() <= cap);
    }
    for (index, job) in running.iter().enumerate() {
        let same = |other: &&Job| other.team == job.team && job.merge_key.is_some() && other.merge_key == job.merge_key;
        assert!(!running[index + 1..].iter().any(same), "two jobs on one matter run");
    }
}

/// Whatever happened before, a worker that does its work brings every job to an end.
async fn drain(rig: &Rig, witness: &mut Witness) {
    for _ in 0..600 {
        rig.clock.advance(Duration::from_hours(1));
        while let Some(claimed) = rig.take().await {
            witness.handed_out(&claimed);
            rig.queue.complete(&claimed.claim).await.expect("current");
            witness.used(&claimed.claim, true, None);
        }
        if all(rig).await.iter().all(|job| job.state.is_final()) {
            return;
        }
    }
    panic!("some jobs never end: {:#?}", all(rig).await);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_no_job_is_lost_or_run_twice_at_once(steps in steps()) {
        runtime().block_on(async { run(&in_memory(), &steps).await });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn both_engines_answer_alike(steps in steps()) {
        let (memory, sqlite) = runtime().block_on(async {
            (run(&in_memory(), &steps).await, run(&on_sqlite().await, &steps).await)
        });
        prop_assert_eq!(memory, sqlite);
    }
}
