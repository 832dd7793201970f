//! Entries that no longer hold: what the checks of a workspace came to, and a person's word that an entry still holds.

use serde::Serialize;
use steward_base::names::EntryId;
use steward_base::{Caller, FieldViolations};

use super::entries::entry_access;
use super::{Memory, check_request_id, decision, from_answer, request_key, to_answer};
use crate::access::{self, Act};
use crate::answer::{Applied, Outcome};
use crate::edit::{self, Stamp};
use crate::entry::{Entry, Provenance};
use crate::error::Error;
use crate::freshness::Holds;
use crate::owner::StoreName;
use crate::store::{Decision, Loaded};

/// Most results in one report.
const MOST_RESULTS: usize = 500;

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The check, as the entry has it.
    pub check: String,
    /// Whether it holds.
    pub holds: bool,
}

/// A person's word on how long a present entry holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmRequest {
    /// The entry's store.
    pub store: StoreName,
    /// The entry.
    pub entry: EntryId,
    /// How long it holds from now on.
    pub holds: Holds,
    /// The entry's latest revision as the caller read it; `None` for no check.
    pub etag: Option<String>,
    /// Makes a retry safe.
    pub request_id: String,
}

#[derive(Serialize)]
struct Content<'a> {
    entry: String,
    holds: &'a Holds,
    etag: Option<&'a str>,
}

impl Memory {
    /// Takes in what the checks of a store's entries came to; answers how many entries are doubted now. An entry with a
    /// failed check is left out of snapshots until all of its checks hold again or a person confirms it. On shared notes
    /// a maintainer reports, since what one workspace shows need not be true of all.
    pub async fn report_checks(
        &self,
        caller: &Caller,
        store: &StoreName,
        results: Vec<CheckResult>,
    ) -> Result<usize, Error> {
        if results.len() > MOST_RESULTS {
            return Err(Error::invalid(
                "results",
                format!("must hold at most {MOST_RESULTS} results"),
            ));
        }
        access::check(caller, store, Act::Decide)?;
        let decide = move |loaded: &Loaded| {
            let mut checked = Vec::new();
            let mut doubted = 0;
            for entry in &loaded.book.entries {
                let failed = verdict(entry, &results);
                doubted += usize::from(failed.is_some());
                if failed != entry.failed_check {
                    checked.push((entry.id.clone(), entry.revision, failed));
                }
            }
            Ok(Decision {
                checked,
                answer: to_answer(&doubted)?,
                ..Decision::default()
            })
        };
        let answer = self.store.write(self.frame(caller, store), Box::new(decide)).await?;
        from_answer(&answer)
    }

    /// Says that an entry holds, and for how long from now on: a new revision with the same text.
    pub async fn confirm_entry(&self, caller: &Caller, request: ConfirmRequest) -> Result<Entry, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&request.request_id, &mut violations);
        request.holds.check(self.clock.now(), &mut violations);
        violations.into_result()?;
        entry_access(caller, &request.store, &request.entry, Act::Decide)?;
        let name = request.store.entry(&request.entry);
        let content = Content {
            entry: name.clone(),
            holds: &request.holds,
            etag: request.etag.as_deref(),
        };
        let mut frame = self.frame(caller, &request.store);
        frame.request = Some(request_key("confirm", caller, &request.request_id, &content)?);
        let provenance = Provenance {
            holds: request.holds.clone(),
            ..Provenance::of(caller, None, "still holds".to_owned())
        };
        let (limits, at) = (self.limits_of(&request.store), frame.at);
        let decide = move |loaded: &Loaded| {
            let target = request.store.target;
            let stamp = Stamp {
                at,
                provenance: &provenance,
            };
            let drafted = edit::confirm(target, &loaded.book, &request.entry, &limits, stamp);
            let present = loaded.book.entries.iter().find(|entry| entry.id == request.entry);
            let (Some(drafted), Some(present)) = (drafted, present) else {
                return Err(Error::EntryNotFound { entry: name });
            };
            let current = present.revision.to_string();
            if let Some(expected) = request.etag.filter(|expected| *expected != current) {
                return Err(Error::EtagMismatch { expected, current });
            }
            let draft = drafted.map_err(|refused| {
                let answer = Applied::new(Outcome::Refused(refused.clone()), target, &loaded.book, &limits, 1);
                Error::refused(refused, answer.tool_text)
            })?;
            let mut decision = decision(&draft);
            let confirmed = draft.book.entries.iter().find(|entry| entry.id == request.entry);
            decision.answer = to_answer(&confirmed)?;
            Ok(decision)
        };
        let answer = self.store.write(frame, Box::new(decide)).await?;
        from_answer(&answer)
    }
}

/// The check of an entry that fails by these results, or that failed before and of which they do not say otherwise.
fn verdict(entry: &Entry, results: &[CheckResult]) -> Option<String> {
    let of = |check: &String| {
        results
            .iter()
            .rev()
            .find(|result| result.check == *check)
            .map(|result| result.holds)
    };
    let checks = &entry.provenance.holds.checks;
    let failed = checks.iter().find(|check| of(check) == Some(false)).cloned();
    failed.or_else(|| entry.failed_check.clone().filter(|check| of(check) != Some(true)))
}
