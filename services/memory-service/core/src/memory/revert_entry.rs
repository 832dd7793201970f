//! Putting an earlier revision of an entry back, as a new one (`M-12`).

use serde::Serialize;
use steward_base::Caller;
use steward_base::names::EntryId;

use super::entries::entry_access;
use super::{Memory, check_request_id, decision, from_answer, request_key, to_answer};
use crate::access::Act;
use crate::answer::{Applied, Outcome};
use crate::edit::{self, Stamp};
use crate::entry::{Entry, Provenance};
use crate::error::Error;
use crate::owner::StoreName;

/// Which revision of which entry to put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevertRequest {
    /// The entry's store.
    pub store: StoreName,
    /// The entry, present or removed.
    pub entry: EntryId,
    /// The revision whose text is wanted.
    pub revision: u32,
    /// The entry's latest revision as the caller read it; `None` for no check.
    pub etag: Option<String>,
    /// Makes a retry safe.
    pub request_id: String,
}

#[derive(Serialize)]
struct Content {
    entry: String,
    revision: u32,
    etag: Option<String>,
}

impl Memory {
    /// Makes the text of an earlier revision the present one. Budget and scan apply as for any write; on shared notes a
    /// maintainer decides.
    pub async fn revert_entry(&self, caller: &Caller, request: RevertRequest) -> Result<Entry, Error> {
        let mut violations = steward_base::FieldViolations::new();
        check_request_id(&request.request_id, &mut violations);
        if request.revision == 0 {
            violations.add("revision", "must be at least 1");
        }
        violations.into_result()?;
        entry_access(caller, &request.store, &request.entry, Act::Decide)?;
        let name = request.store.entry(&request.entry);
        let content = Content {
            entry: name.clone(),
            revision: request.revision,
            etag: request.etag.clone(),
        };
        let mut frame = self.frame(caller, &request.store);
        frame.request = Some(request_key("revert", caller, &request.request_id, &content)?);
        frame.entry = Some(request.entry.clone());
        let provenance = Provenance::of(caller, None, format!("revision {} put back", request.revision));
        let (limits, at) = (self.limits_of(&request.store), frame.at);
        let decide = move |loaded: &crate::store::Loaded| {
            let Some(last) = loaded.history.last() else {
                return Err(Error::EntryNotFound { entry: name });
            };
            if let Some(expected) = request.etag
                && expected != last.number.to_string()
            {
                return Err(Error::EtagMismatch {
                    expected,
                    current: last.number.to_string(),
                });
            }
            let wanted = loaded
                .history
                .iter()
                .find(|revision| revision.number == request.revision);
            let Some(text) = wanted.and_then(|revision| revision.content.as_deref()) else {
                return Err(Error::RevisionNotFound {
                    entry: name,
                    revision: request.revision,
                });
            };
            let stamp = Stamp {
                at,
                provenance: &provenance,
            };
            let target = request.store.target;
            let draft =
                edit::revert(target, &loaded.book, &loaded.history, text, &limits, stamp).map_err(|refused| {
                    let answer = Applied::new(Outcome::Refused(refused.clone()), target, &loaded.book, &limits, 1);
                    Error::refused(refused, answer.tool_text)
                })?;
            let present = draft.book.entries.iter().find(|entry| entry.id == request.entry);
            let mut decision = decision(&draft);
            decision.answer = to_answer(&present)?;
            Ok(decision)
        };
        let answer = self.store.write(frame, Box::new(decide)).await?;
        from_answer(&answer)
    }
}
