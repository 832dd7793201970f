//! The turn lease: one turn at a time per session, proven by a fence that is checked where the write lands (`T-7`).
//!
//! Pure. The time is the store's, never the caller's; nothing has to run for a lease to end.

use std::time::Duration;

use steward_base::{FieldViolations, Timestamp};

use crate::error::Error;

/// Shortest lease.
pub const MIN_TTL: Duration = Duration::from_secs(1);
/// Longest lease.
pub const MAX_TTL: Duration = Duration::from_mins(5);

/// Who may append to a session. The default is a session that nobody ever held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lease {
    /// Rises with every change of holder; 0 before the first.
    pub fence: u64,
    /// The present holding; `None` when it was given up.
    pub holding: Option<Holding>,
}

/// One holding of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Turn that runs.
    pub turn: String,
    /// Process that runs it.
    pub holder: String,
    /// When it ends by the store's clock.
    pub expires: Timestamp,
}

/// What an acquisition gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Fence of the holding.
    pub fence: u64,
    /// When it ends.
    pub expires: Timestamp,
    /// Another turn that was left open and has to be closed or resumed.
    pub interrupted_turn: Option<String>,
}

/// An acquisition of the turn lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Turn that is to run; 1 to 128 characters.
    pub turn: String,
    /// Process that runs it; 1 to 128 characters.
    pub holder: String,
    /// How long it lives, [`MIN_TTL`] to [`MAX_TTL`].
    pub ttl: Duration,
}

impl LeaseRequest {
    /// Records what is wrong with it; its fields stand under `prefix`.
    pub fn check(&self, prefix: &str, violations: &mut FieldViolations) {
        for (field, text) in [("turn", &self.turn), ("holder", &self.holder)] {
            if !(1..=128).contains(&text.chars().count()) {
                violations.add(format!("{prefix}{field}"), "must have 1 to 128 characters");
            }
        }
        check_ttl(&format!("{prefix}ttl"), self.ttl, violations);
    }
}

/// Records a time to live that no lease may have.
pub fn check_ttl(field: &str, ttl: Duration, violations: &mut FieldViolations) {
    if !(MIN_TTL..=MAX_TTL).contains(&ttl) {
        violations.add(
            field,
            format!("must be {} to {} seconds", MIN_TTL.as_secs(), MAX_TTL.as_secs()),
        );
    }
}

impl Lease {
    /// Takes the lease, or renews the caller's own for the same turn.
    pub fn acquire(&mut self, request: &LeaseRequest, now: Timestamp) -> Result<Timestamp, Error> {
        let LeaseRequest { turn, holder, ttl } = request;
        let expires = now.plus(*ttl);
        if let Some(holding) = self.holding.as_mut().filter(|holding| holding.expires > now) {
            if holding.turn != *turn || holding.holder != *holder {
                return Err(Error::TurnRunning {
                    turn: holding.turn.clone(),
                    holder: holding.holder.clone(),
                });
            }
            holding.expires = expires;
            return Ok(expires);
        }
        self.fence += 1;
        self.holding = Some(Holding {
            turn: turn.clone(),
            holder: holder.clone(),
            expires,
        });
        Ok(expires)
    }

    /// Extends the holding with this fence. One that has ended but that nobody took over is extended too.
    pub fn renew(&mut self, fence: u64, ttl: Duration, now: Timestamp) -> Result<Timestamp, Error> {
        self.check(fence)?;
        let expires = now.plus(ttl);
        if let Some(holding) = self.holding.as_mut() {
            holding.expires = expires;
        }
        Ok(expires)
    }

    /// Gives the holding with this fence up; whether that changed anything.
    pub fn release(&mut self, fence: u64) -> bool {
        fence == self.fence && self.holding.take().is_some()
    }

    /// Whether writes with this fence are those of the last holder. A holding that has ended but that nobody took over
    /// still writes: no other turn can have changed the session meanwhile.
    pub fn check(&self, fence: u64) -> Result<(), Error> {
        if fence == self.fence && self.holding.is_some() {
            Ok(())
        } else {
            Err(Error::StaleFence {
                fence,
                current: self.fence,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    fn asked(turn: &str, holder: &str) -> LeaseRequest {
        LeaseRequest {
            turn: turn.to_owned(),
            holder: holder.to_owned(),
            ttl: MINUTE,
        }
    }

    #[test]
    fn a_second_turn_is_refused_while_one_runs_even_by_the_same_process() {
        let mut lease = Lease::default();
        lease.acquire(&asked("t1", "p1"), at(0)).unwrap();
        for (turn, holder) in [("t2", "p1"), ("t2", "p2"), ("t1", "p2")] {
            let refused = lease.acquire(&asked(turn, holder), at(59)).unwrap_err();
            assert!(matches!(refused, Error::TurnRunning { turn, .. } if turn == "t1"));
        }
        assert_eq!(lease.acquire(&asked("t1", "p1"), at(59)).unwrap(), at(119));
        assert_eq!(lease.fence, 1);
    }

    #[test]
    fn a_lease_that_ended_is_free_and_its_holder_is_fenced_off() {
        let mut lease = Lease::default();
        lease.acquire(&asked("t1", "p1"), at(0)).unwrap();
        assert!(lease.check(1).is_ok());
        lease.acquire(&asked("t2", "p2"), at(60)).unwrap();
        assert!(matches!(
            lease.check(1),
            Err(Error::StaleFence { fence: 1, current: 2 })
        ));
        assert!(lease.renew(1, MINUTE, at(61)).is_err());
        assert!(!lease.release(1));
        assert!(lease.check(2).is_ok());
    }

    #[test]
    fn a_lease_given_up_admits_no_writes() {
        let mut lease = Lease::default();
        assert!(lease.check(0).is_err());
        lease.acquire(&asked("t1", "p1"), at(0)).unwrap();
        assert!(lease.release(1));
        assert!(!lease.release(1));
        assert!(lease.check(1).is_err());
    }

    proptest! {
        #[test]
        fn no_two_holders_ever_have_a_good_fence(steps in prop::collection::vec((0_u8..3, 0_u8..4, 0_i64..90), 1..60)) {
            let mut lease = Lease::default();
            let mut now = 0;
            let mut fences = [0_u64; 4];
            for (action, process, wait) in steps {
                now += wait;
                let holder = format!("p{process}");
                let own = usize::from(process);
                match action {
                    0 => if lease.acquire(&asked("t", &holder), at(now)).is_ok() { fences[own] = lease.fence; },
                    1 => { let _ = lease.renew(fences[own], MINUTE, at(now)); }
                    _ => { lease.release(fences[own]); }
                }
                prop_assert!(fences.iter().filter(|fence| lease.check(**fence).is_ok()).count() <= 1);
            }
        }
    }
}
