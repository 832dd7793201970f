//! How long an entry holds: an end date, and cheap checks against the person's workspace that are made when a session
//! begins. An entry that no longer holds is left out of the snapshot and waits for a person; nothing deletes it.
//!
//! The checks are run by whoever has the workspace at hand; here they are only read, and what came of them is weighed.

use std::fmt;

use serde::{Deserialize, Serialize};
use steward_base::{FieldViolations, Timestamp};

/// Most checks of one entry.
const MOST_CHECKS: usize = 5;
/// Longest check, in characters.
const LONGEST_CHECK: usize = 300;

/// Until when an entry holds, and what must be true for it to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// The end; `None` for none.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// Checks in their written form, see [`Check`].
    #[serde(default)]
    pub checks: Vec<String>,
}

impl Holds {
    /// Whether nothing limits it.
    pub fn is_unlimited(&self) -> bool {
        self.until.is_none() && self.checks.is_empty()
    }

    /// Records what is wrong with it, as given at `at`.
    pub fn check(&self, at: Timestamp, violations: &mut FieldViolations) {
        if self.until.is_some_and(|until| until <= at) {
            violations.add("holds.until_time", "must be in the future");
        }
        if self.checks.len() > MOST_CHECKS {
            violations.add("holds.checks", format!("must hold at most {MOST_CHECKS} checks"));
        }
        for (index, check) in self.checks.iter().enumerate() {
            if let Err(problem) = Check::parse(check) {
                violations.add(format!("holds.checks[{index}]"), problem);
            }
        }
    }
}

/// Why an entry no longer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// Its end has come.
    Ended,
    /// This check failed.
    CheckFailed(String),
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("its end date has come"),
            Self::CheckFailed(check) => write!(f, "its check {check} failed"),
        }
    }
}

/// Something about a workspace that is quickly looked up and only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// `file:{path}#{sha256}`: the file has this content; the hash may be cut to its first 8 or more digits.
    File {
        /// Below the root of the workspace.
        path: String,
        /// Hexadecimal.
        sha256: String,
    },
    /// `grep:{path}:{text}`: the file holds the text.
    Grep {
        /// Below the root of the workspace.
        path: String,
        /// The text.
        text: String,
    },
    /// `exists:{path}`: the file or folder is there.
    Exists {
        /// Below the root of the workspace.
        path: String,
    },
}

impl Check {
    /// Reads the written form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "must have the form file:{path}#{sha256}, grep:{path}:{text} or exists:{path}";
        if text.chars().count() > LONGEST_CHECK || text.contains(['\n', '\0']) {
            return Err("must be one line of at most 300 characters");
        }
        let (kind, rest) = text.split_once(':').ok_or(FORM)?;
        match kind {
            "file" => {
                let (path, sha256) = rest.rsplit_once('#').ok_or(FORM)?;
                let is_hash = (8..=64).contains(&sha256.len()) && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !is_hash {
                    return Err("must name a sha256 of 8 to 64 hexadecimal digits");
                }
                Ok(Self::File {
                    path: inside(path)?,
                    sha256: sha256.to_ascii_lowercase(),
                })
            }
            "grep" => {
                let (path, text) = rest.split_once(':').ok_or(FORM)?;
                if text.is_empty() {
                    return Err(FORM);
                }
                Ok(Self::Grep {
                    path: inside(path)?,
                    text: text.to_owned(),
                })
            }
            "exists" => Ok(Self::Exists { path: inside(rest)? }),
            _ => Err(FORM),
        }
    }
}

/// A path that stays below the root that it is taken from.
fn inside(path: &str) -> Result<String, &'static str> {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let stays = path.split('/').all(is_plain) && !path.contains(['\\', ':', '~']);
    if stays {
        Ok(path.to_owned())
    } else {
        Err("must name a path below the root of the workspace")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_one_of_three_forms_and_stays_in_the_workspace() {
        assert_eq!(
            Check::parse("file:src/main.rs#ABCDEF0123"),
            Ok(Check::File {
                path: "src/main.rs".to_owned(),
                sha256: "abcdef0123".to_owned()
            })
        );
        assert_eq!(
            Check::parse("grep:package.json:\"pnpm\": 9"),
            Ok(Check::Grep {
                path: "package.json".to_owned(),
                text: "\"pnpm\": 9".to_owned()
            })
        );
        assert!(Check::parse("exists:justfile").is_ok());
        for bad in [
            "",
            "file:a",
            "file:a#xyz",
            "grep:a:",
            "exists:/etc/passwd",
            "exists:../x",
            "exists:a/../b",
            "exists:~/x",
            "exists:C:x",
            "cmd:rm -rf",
            "exists:a\nb",
        ] {
            assert!(Check::parse(bad).is_err(), "{bad:?} passed");
        }
        assert!(Check::parse(&format!("exists:{}", "a".repeat(300))).is_err());
    }

    #[test]
    fn an_end_that_is_past_is_refused() {
        let mut violations = FieldViolations::new();
        let holds = Holds {
            until: Some(Timestamp::from_secs(5)),
            checks: vec!["nonsense".to_owned()],
        };
        holds.check(Timestamp::from_secs(5), &mut violations);
        assert_eq!(violations.as_slice().len(), 2);
    }
}
