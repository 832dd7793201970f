//! Bringing in a file of entries (`M-2`): each is judged for itself, what cannot be read is kept.

use serde::{Deserialize, Serialize};
use steward_base::hash::sha256_hex;
use steward_base::names::EntryId;
use steward_base::{Caller, FieldViolations};

use super::{Memory, check_request_id, decision, from_answer, request_key, to_answer};
use crate::access::{self, Act, Gate};
use crate::edit::{self, Stamp, Step};
use crate::entry::Provenance;
use crate::error::Error;
use crate::owner::StoreName;
use crate::refusal::Refusal;
use crate::store::{Decision, Loaded};
use crate::transfer::{self, Held, MOST_BYTES, MOST_ENTRIES, Piece};

/// What became of one entry of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum Imported {
    /// It is in memory now, or was before.
    Done {
        /// What the addition came to.
        done: Step,
    },
    /// It was refused; memory is as it was.
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// It is no text. It is kept byte for byte until a person lets it go.
    Held {
        /// Under which id.
        id: EntryId,
        /// As far as it can be read.
        preview: String,
    },
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRequest {
    /// The store.
    pub store: StoreName,
    /// The file, in the form with `§` between entries.
    pub file: Vec<u8>,
    /// Only says what would become of each entry.
    pub dry_run: bool,
    /// Makes a retry safe.
    pub request_id: String,
}

/// Records what is wrong with the parts of an [`ImportRequest`].
pub fn check_import(request_id: &str, bytes: usize, violations: &mut FieldViolations) {
    check_request_id(request_id, violations);
    if bytes > MOST_BYTES {
        violations.add("file", format!("must have at most {MOST_BYTES} bytes"));
    }
}

impl Memory {
    /// Adds what the file holds. Only who may change the store at once may bring a file in: a file is no proposal.
    pub async fn import_entries(&self, caller: &Caller, request: ImportRequest) -> Result<Vec<Imported>, Error> {
        let mut violations = FieldViolations::new();
        check_import(&request.request_id, request.file.len(), &mut violations);
        let pieces = transfer::read(&request.file);
        if pieces.len() > MOST_ENTRIES {
            violations.add("file", format!("must hold at most {MOST_ENTRIES} entries"));
        }
        violations.into_result()?;
        access::check(caller, &request.store, Act::Write)?;
        if access::gate(caller, &request.store.owner, None) != Gate::Open {
            access::check(caller, &request.store, Act::Decide)?;
        }
        let mut frame = self.frame(caller, &request.store);
        let content = (request.store.to_string(), sha256_hex(&request.file), request.dry_run);
        frame.request = (!request.dry_run)
            .then(|| request_key("import", caller, &request.request_id, &content))
            .transpose()?;
        let ids = self.fresh_ids(pieces.len())?;
        let provenance = Provenance::of(caller, None, "brought in from a file".to_owned());
        let (limits, at, target, dry_run) = (
            self.limits_of(&request.store),
            frame.at,
            request.store.target,
            request.dry_run,
        );
        let decide = move |loaded: &Loaded| {
            let stamp = Stamp {
                at,
                provenance: &provenance,
            };
            let texts: Vec<(EntryId, String)> = ids
                .iter()
                .zip(&pieces)
                .filter_map(|(id, piece)| match piece {
                    Piece::Text(text) => Some((id.clone(), text.clone())),
                    Piece::Damaged(_) => None,
                })
                .collect();
            let (draft, results) = edit::import(target, &loaded.book, &texts, &limits, stamp);
            let mut results = results.into_iter();
            let mut held = Vec::new();
            let mut imported = Vec::with_capacity(pieces.len());
            for (id, piece) in ids.iter().zip(&pieces) {
                imported.extend(match piece {
                    Piece::Text(_) => results.next().map(|result| match result {
                        Ok(done) => Imported::Done { done },
                        Err(refusal) => Imported::Refused {
                            refusal: without_entries(refusal),
                        },
                    }),
                    Piece::Damaged(bytes) => {
                        let one = Held {
                            id: id.clone(),
                            bytes: bytes.clone(),
                            at,
                        };
                        let preview = one.preview();
                        held.push(one);
                        Some(Imported::Held {
                            id: id.clone(),
                            preview,
                        })
                    }
                });
            }
            let answer = to_answer(&imported)?;
            let kept = if dry_run {
                Decision::default()
            } else {
                Decision {
                    held,
                    ..decision(&draft)
                }
            };
            Ok(Decision { answer, ..kept })
        };
        let answer = self.store.write(frame, Box::new(decide)).await?;
        from_answer(&answer)
    }

    /// What the store keeps although it could not be read, oldest first.
    pub async fn list_held(&self, caller: &Caller, store: &StoreName) -> Result<Vec<Held>, Error> {
        access::check(caller, store, Act::Read)?;
        self.store.held(store).await
    }

    /// Lets go of something that is kept although it could not be read. Letting go of what is gone changes nothing.
    pub async fn discard_held(&self, caller: &Caller, store: &StoreName, id: EntryId) -> Result<(), Error> {
        access::check(caller, store, Act::Decide)?;
        let decide = move |_: &Loaded| {
            Ok(Decision {
                let_go: vec![id],
                ..Decision::default()
            })
        };
        self.store.write(self.frame(caller, store), Box::new(decide)).await?;
        Ok(())
    }
}

/// A refusal for lack of room lists the store once and not for each entry of a file.
fn without_entries(mut refusal: Refusal) -> Refusal {
    if let Refusal::OverBudget { entries, .. } | Refusal::Missing { entries, .. } = &mut refusal {
        entries.clear();
    }
    refusal
}
