//! How a running review is stopped from outside, and why it stopped.
//!
//! Two ways: at once (the lease is lost, somebody cancelled, the process stops), or at the next safe point, which is
//! before the next question to the model (a person is talking in the session again, `R-2`). Both are safe at any
//! instruction, since everything that matters is journalled; the second only wastes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::review::{Ending, Problem};

/// Why a run stopped before the model was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HaltReason {
    /// A newer claim exists, or may exist: nothing may be written any more.
    LeaseLost,
    /// Something more urgent came; the review goes back without losing a try.
    GiveWay,
    /// The process stops; the review goes back without losing a try.
    Shutdown,
    /// It ends here.
    Ended(Ending),
    /// This try failed; another one may go better.
    TryAgain(Problem),
}

/// Shared between a run and whoever watches over it. The first reason counts.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    give_way: AtomicBool,
    interrupt: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    reason: Option<HaltReason>,
    /// Calls that are under way and are to be journalled before the run stops.
    shields: u32,
}

impl Halt {
    /// Not stopped.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run at once, or right after the call that is under way: what it did is to be known.
    pub fn stop(&self, reason: HaltReason) {
        let mut state = self.state();
        // Nothing can be journalled any more once the lease is lost.
        let at_once = state.shields == 0 || reason == HaltReason::LeaseLost;
        state.reason.get_or_insert(reason);
        drop(state);
        if at_once {
            self.0.interrupt.cancel();
        }
    }

    /// Stops the run at its next safe point.
    pub fn ask_to_give_way(&self) {
        self.0.give_way.store(true, Ordering::Release);
    }

    /// At a safe point: stops the run if it was asked to give way.
    pub(crate) fn pass_safe_point(&self) {
        if self.0.give_way.load(Ordering::Acquire) {
            self.stop(HaltReason::GiveWay);
        }
    }

    /// Holds a stop back for as long as the guard lives.
    pub(crate) fn shield(&self) -> Shield<'_> {
        self.state().shields += 1;
        Shield(self)
    }

    /// Why it was stopped, if it was.
    pub fn reason(&self) -> Option<HaltReason> {
        self.state().reason.clone()
    }

    /// Cancelled when it was stopped.
    pub fn interrupt(&self) -> CancellationToken {
        self.0.interrupt.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call is under way.
#[derive(Debug)]
pub(crate) struct Shield<'a>(&'a Halt);

impl Drop for Shield<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.shields = state.shields.saturating_sub(1);
        let stop = state.shields == 0 && state.reason.is_some();
        drop(state);
        if stop {
            self.0.0.interrupt.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts() {
        let halt = Halt::new();
        halt.ask_to_give_way();
        assert!(!halt.interrupt().is_cancelled(), "only at a safe point");
        halt.stop(HaltReason::Shutdown);
        halt.pass_safe_point();
        assert_eq!(halt.reason(), Some(HaltReason::Shutdown));
        assert!(halt.interrupt().is_cancelled());
    }

    #[test]
    fn a_call_under_way_is_finished_unless_the_lease_is_lost() {
        let halt = Halt::new();
        let shield = halt.shield();
        halt.stop(HaltReason::Shutdown);
        assert!(!halt.interrupt().is_cancelled());
        drop(shield);
        assert!(halt.interrupt().is_cancelled());
        let halt = Halt::new();
        let _shield = halt.shield();
        halt.stop(HaltReason::LeaseLost);
        assert!(halt.interrupt().is_cancelled());
    }
}
