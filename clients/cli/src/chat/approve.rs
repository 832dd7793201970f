//! Asking before something runs on the person's machine.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Write as _};

use crate::output::{NOTICE, printable};

/// What the person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Run it.
    Run,
    /// Do not run it.
    Decline,
}

/// Remembers for which tools the person said "always" in this conversation.
#[derive(Debug)]
pub(super) struct Approval {
    interactive: bool,
    always: BTreeSet<String>,
}

impl Approval {
    /// Without a terminal nobody can be asked, so everything is declined.
    pub(super) fn new(interactive: bool) -> Self {
        Self {
            interactive,
            always: BTreeSet::new(),
        }
    }

    /// Shows what would run and waits for the answer. Anything but a clear yes is a no.
    pub(super) fn ask(&mut self, tool: &str, what: &str) -> Decision {
        if !self.interactive {
            return Decision::Decline;
        }
        if self.always.contains(tool) {
            return Decision::Run;
        }
        let mut err = anstream::stderr().lock();
        let _ = write!(
            err,
            "{NOTICE}{tool}{NOTICE:#} {}\nrun it here? [y]es, [a]lways, [N]o: ",
            printable(what)
        );
        let _ = err.flush();
        let mut answer = String::new();
        if std::io::stdin().lock().read_line(&mut answer).is_err() {
            return Decision::Decline;
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Decision::Run,
            "a" | "always" => {
                self.always.insert(tool.to_owned());
                Decision::Run
            }
            _ => Decision::Decline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_everything_is_declined() {
        assert_eq!(Approval::new(false).ask("shell", "rm -rf /"), Decision::Decline);
    }
}
