//! What the command line finds wrong by itself, beside any answer of a server: with a reason, as a server's error has one, so
//! that a script can tell "no such skill" from "wrong usage" without reading sentences.
//!
//! Whatever a server says stays a `ClientError`; files that cannot be read have no reason of their own.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;

/// The reason of wrong usage, in a parser's error and in one that is found later.
pub const USAGE: &str = "USAGE";

/// Something that is wrong before a server is asked, or in what a server's list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A reason of the contract where one fits, else [`USAGE`].
    pub reason: &'static str,
    message: String,
}

impl Fault {
    /// An argument that cannot be meant. Exit code 2, as for an argument that the parser refuses.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::of(USAGE, message)
    }

    /// A fault with a reason of the contract, such as `SKILL_NOT_FOUND`. Exit code 1.
    pub fn of(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// The fault in a chain of errors, if there is one.
    pub fn in_chain(error: &anyhow::Error) -> Option<&Self> {
        error.chain().find_map(|cause| cause.downcast_ref())
    }

    /// The exit code of a verb that ended with `error`.
    pub fn exit_code(error: &anyhow::Error) -> ExitCode {
        match Self::in_chain(error) {
            Some(fault) if fault.reason == USAGE => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Fault {}

/// How many a list shows at most, for the parser: nothing is no list.
pub(crate) fn at_least_one<N: FromStr + PartialEq + Default>(given: &str) -> Result<N, String> {
    match given.parse() {
        Ok(limit) if limit == N::default() => Err("must be 1 or more".to_owned()),
        Ok(limit) if !given.starts_with('-') => Ok(limit),
        _ => Err("must be a whole number, 1 or more".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn wrong_usage_ends_with_2_and_everything_else_with_1() {
        let wrong = Err::<(), _>(Fault::usage("no time")).context("--since").unwrap_err();
        assert_eq!(Fault::exit_code(&wrong), ExitCode::from(2));
        assert_eq!(Fault::in_chain(&wrong).map(|fault| fault.reason), Some(USAGE));
        let missing = Fault::of("SKILL_NOT_FOUND", "no skill is called tidy").into();
        assert_eq!(Fault::exit_code(&missing), ExitCode::FAILURE);
        assert_eq!(Fault::exit_code(&anyhow::anyhow!("a file")), ExitCode::FAILURE);
    }

    #[test]
    fn a_list_of_nothing_is_not_asked_for() {
        assert_eq!(at_least_one::<usize>("1"), Ok(1));
        assert_eq!(at_least_one::<i32>("7"), Ok(7));
        for wrong in ["0", "-1", "", "x", "99999999999999999999999"] {
            assert!(at_least_one::<usize>(wrong).is_err(), "{wrong}");
            assert!(at_least_one::<i32>(wrong).is_err(), "{wrong}");
        }
    }
}
