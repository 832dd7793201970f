//! Named points at which a test can end the process as a power failure would.
//!
//! `failpoint::hit("turn.user_message.before")` does nothing and costs nothing unless the feature `failpoints` is on,
//! which no shipped build has. With it, `STEWARD_FAILPOINTS` is read once, at the first point that is passed:
//! `name=kill` kills at the first hit, `name=kill@2` at the second, several are separated by `;`. Tests inside one
//! process arm a point with a panic or a callback of their own instead; points are shared by the whole process, as a
//! crash is, so that tests which arm the same one must not share a process (nextest gives each its own).

#[cfg(any(test, feature = "failpoints"))]
mod armed;

#[cfg(any(test, feature = "failpoints"))]
pub use armed::{Action, arm, disarm, hits};

/// Passes the point `name`.
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) {
    armed::hit(name);
}

/// Passes the point `name`: nothing, in this build.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn hit(_name: &str) {}
