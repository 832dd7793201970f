//! The failpoints of a build that has them. Process-wide on purpose: a crash is.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What happens at a point that is armed.
#[derive(Clone)]
pub enum Action {
    /// SIGKILL to this process: no destructor, no flush, no goodbye.
    Kill,
    /// A panic with this text, to see that it is contained.
    Panic(&'static str),
    /// The test's own code, for example to note an order or to send on a channel.
    Call(Arc<dyn Fn() + Send + Sync>),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "Kill",
            Self::Panic(_) => "Panic",
            Self::Call(_) => "Call",
        })
    }
}

#[derive(Debug, Default)]
struct Registry {
    /// What to do, and at which hit.
    armed: HashMap<String, (Action, u64)>,
    hits: HashMap<String, u64>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    REGISTRY
        .get_or_init(|| {
            let spec = crate::config::environment_value("STEWARD_FAILPOINTS").unwrap_or_default();
            Mutex::new(Registry {
                armed: parse(&spec),
                hits: HashMap::new(),
            })
        })
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Unreadable parts are ignored aloud: a test that arms nothing must not pass for a reason nobody sees.
#[expect(
    clippy::print_stderr,
    reason = "telemetry may not be installed yet, and only test builds come here"
)]
fn parse(spec: &str) -> HashMap<String, (Action, u64)> {
    let mut armed = HashMap::new();
    for part in spec.split([';', ',']).map(str::trim).filter(|part| !part.is_empty()) {
        let parsed = part.split_once('=').and_then(|(name, action)| {
            let (action, at) = action.split_once('@').unwrap_or((action, "1"));
            let at = at.parse::<u64>().ok().filter(|at| *at > 0)?;
            (action == "kill").then(|| (name.trim().to_owned(), (Action::Kill, at)))
        });
        match parsed {
            Some((name, what)) => {
                armed.insert(name, what);
            }
            None => eprintln!("steward: STEWARD_FAILPOINTS: cannot read `{part}`, expected name=kill or name=kill@2"),
        }
    }
    armed
}

/// Arms `name` for its `at`-th hit from now on; 1 is the next one.
pub fn arm(name: &str, action: Action, at: u64) {
    let mut registry = registry();
    let so_far = registry.hits.get(name).copied().unwrap_or(0);
    registry.armed.insert(name.to_owned(), (action, so_far + at));
}

/// Takes the action from `name`.
pub fn disarm(name: &str) {
    registry().armed.remove(name);
}

/// How often `name` was passed.
pub fn hits(name: &str) -> u64 {
    registry().hits.get(name).copied().unwrap_or(0)
}

#[expect(clippy::panic, reason = "a test asked for this panic")]
pub(super) fn hit(name: &str) {
    let due = {
        let mut registry = registry();
        let count = registry.hits.entry(name.to_owned()).or_insert(0);
        *count += 1;
        let count = *count;
        registry
            .armed
            .get(name)
            .filter(|(_, at)| *at == count)
            .map(|(action, _)| action.clone())
    };
    match due {
        None => {}
        Some(Action::Call(call)) => call(),
        Some(Action::Panic(text)) => std::panic::panic_any(text),
        Some(Action::Kill) => kill(),
    }
}

fn kill() {
    // If the signal cannot be sent, aborting is the nearest thing.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_specification_names_points_and_hits() {
        let armed = parse("turn.user_message.before=kill; job.claim.after=kill@2 ;nonsense;a=run;b=kill@0");
        let mut found: Vec<_> = armed.into_iter().map(|(name, (_, at))| (name, at)).collect();
        found.sort();
        assert_eq!(
            found,
            [
                ("job.claim.after".to_owned(), 2),
                ("turn.user_message.before".to_owned(), 1)
            ]
        );
    }

    #[test]
    fn an_armed_point_acts_at_its_hit_and_only_then() {
        let calls = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&calls);
        let call = Action::Call(Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        arm("test.point", call, 2);
        let seen: Vec<u32> = (0..3)
            .map(|_| {
                hit("test.point");
                calls.load(Ordering::SeqCst)
            })
            .collect();
        assert_eq!((seen, hits("test.point")), (vec![0, 1, 1], 3));
        disarm("test.point");
    }
}
