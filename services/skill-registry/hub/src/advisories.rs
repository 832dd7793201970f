//! Advisories that an operator chose: lists of what is known to be bad, in the shape of OSV, by digest of the tree and by
//! source, reference and revision.
//!
//! A list that does not answer says nothing; it never clears anyone.

use std::sync::Arc;

use serde_json::Value;
use steward_base::Clock;
use steward_fetch::Fetch;
use url::Url;

use crate::source::SourceError;
use crate::sources::wire::{Wire, list, text};
use crate::withdrawal::{Cause, Signal, Standing};

const NAME: &str = "advisories";
/// Most advisories of one list.
const MOST: usize = 100_000;

/// One advisory, as far as it is of use here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Advisory {
    id: String,
    summary: String,
    standing: Standing,
    digests: Vec<String>,
    /// Source, reference, and the revisions of it; all where none is named.
    skills: Vec<(String, String, Vec<String>)>,
}

/// The chosen lists.
#[derive(Debug, Clone)]
pub struct Advisories {
    wire: Wire,
    addresses: Vec<String>,
}

/// What the lists say, all of them as they stood when they were asked.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    all: Vec<Advisory>,
    /// Lists that gave no answer, and why.
    pub failed: Vec<String>,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Digest of the tree.
    pub digest: &'a str,
    /// The source.
    pub source: &'a str,
    /// The reference in full.
    pub reference: &'a str,
    /// The revision.
    pub revision: &'a str,
}

impl Advisories {
    /// Lists at these addresses.
    pub fn new(fetch: &Arc<dyn Fetch>, clock: &Arc<dyn Clock>, addresses: Vec<String>) -> Self {
        Self {
            wire: Wire::new(Arc::clone(fetch), Arc::clone(clock)),
            addresses,
        }
    }

    /// Asks all lists. Their answers are remembered by ETag like all others.
    pub async fn read(&self) -> Listed {
        let mut listed = Listed::default();
        for address in &self.addresses {
            match self.one(address).await {
                Ok(all) => listed.all.extend(all),
                Err(error) => listed.failed.push(format!("{address}: {error}")),
            }
        }
        listed
    }

    async fn one(&self, address: &str) -> Result<Vec<Advisory>, SourceError> {
        let url = Url::parse(address).map_err(|error| SourceError::Answer {
            source_name: NAME,
            problem: format!("its address is set to {address:?}: {error}"),
        })?;
        parse(&self.wire.json(NAME, address, url).await?)
    }
}

impl Listed {
    /// The worst that is said of a subject.
    pub fn of(&self, subject: Subject<'_>) -> Option<Signal> {
        let about = self.all.iter().filter(|advisory| advisory.names(subject));
        let worst = about.max_by_key(|advisory| advisory.standing)?;
        Some(Signal {
            standing: worst.standing,
            cause: Cause::Advisory(worst.id.clone()),
            reason: if worst.summary.is_empty() {
                format!("advisory {}", worst.id)
            } else {
                worst.summary.clone()
            },
        })
    }
}

impl Advisory {
    fn names(&self, subject: Subject<'_>) -> bool {
        self.digests.iter().any(|digest| digest == subject.digest)
            || self.skills.iter().any(|(source, reference, revisions)| {
                source == subject.source
                    && reference == subject.reference
                    && (revisions.is_empty() || revisions.iter().any(|revision| revision == subject.revision))
            })
    }
}

/// A list, or an object that has it as `advisories` or `vulns`.
fn parse(value: &Value) -> Result<Vec<Advisory>, SourceError> {
    let rows = match value {
        Value::Array(rows) => rows,
        _ if value.get("vulns").is_some() => list(NAME, value, "vulns")?,
        _ => list(NAME, value, "advisories")?,
    };
    if rows.len() > MOST {
        return Err(SourceError::Answer {
            source_name: NAME,
            problem: format!("it has more than {MOST} advisories"),
        });
    }
    // One that was taken back says nothing any more.
    let standing = rows
        .iter()
        .filter(|row| row.get("withdrawn").is_none_or(Value::is_null));
    Ok(standing.filter_map(advisory).collect())
}

/// An advisory with an id that names something; whatever else it has is for others.
fn advisory(row: &Value) -> Option<Advisory> {
    let id = Some(text(row, "id")).filter(|id| !id.is_empty())?;
    let mut advisory = Advisory {
        id,
        summary: text(row, "summary"),
        standing: Standing::Yanked,
        digests: Vec::new(),
        skills: Vec::new(),
    };
    let own = row.get("database_specific");
    for part in row.get("affected").and_then(Value::as_array).into_iter().flatten() {
        let specific = part.get("database_specific");
        let digests = texts(specific, "digests");
        let digests = digests
            .iter()
            .map(|digest| digest.trim_start_matches("sha256:").to_ascii_lowercase());
        advisory.digests.extend(digests);
        if let Some(package) = part.get("package") {
            let named = (
                text(package, "ecosystem"),
                text(package, "name"),
                texts(Some(part), "versions"),
            );
            if !named.0.is_empty() && !named.1.is_empty() {
                advisory.skills.push(named);
            }
        }
        let says_revoke = |value: Option<&Value>| value.is_some_and(|value| text(value, "effect") == "revoke");
        if says_revoke(specific) || says_revoke(own) {
            advisory.standing = Standing::Revoked;
        }
    }
    (!advisory.digests.is_empty() || !advisory.skills.is_empty()).then_some(advisory)
}

fn texts(value: Option<&Value>, field: &str) -> Vec<String> {
    let found = value.and_then(|value| value.get(field)).and_then(Value::as_array);
    let found = found.into_iter().flatten().filter_map(Value::as_str);
    found.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(value: &Value) -> Listed {
        Listed {
            all: parse(value).unwrap(),
            failed: Vec::new(),
        }
    }

    const TIDY: Subject<'static> = Subject {
        digest: "aa",
        source: "github",
        reference: "acme/skills/tidy",
        revision: "r2",
    };

    #[test]
    fn an_advisory_names_a_digest_or_a_revision_and_the_worst_one_counts() {
        let list = listed(&json!({"advisories": [
            {"id": "A-1", "summary": "It phones home.", "affected": [
                {"package": {"ecosystem": "github", "name": "acme/skills/tidy"}, "versions": ["r1", "r2"]}]},
            {"id": "A-2", "summary": "It steals.", "affected": [
                {"database_specific": {"digests": ["sha256:AA"], "effect": "revoke"}}]},
            {"id": "A-3", "withdrawn": "2026-01-01T00:00:00Z", "affected": [
                {"package": {"ecosystem": "github", "name": "acme/skills/other"}}]},
            {"id": "A-4", "affected": [{"package": {"ecosystem": "github", "name": "acme/skills/all"}}]},
            {"summary": "no id", "affected": [{"database_specific": {"digests": ["bb"]}}]},
            {"id": "A-5", "affected": []}
        ]}));
        let worst = list.of(TIDY).unwrap();
        assert_eq!(
            (worst.standing, worst.cause),
            (Standing::Revoked, Cause::Advisory("A-2".to_owned()))
        );
        let yanked = list.of(Subject { digest: "cc", ..TIDY }).unwrap();
        assert_eq!(
            (yanked.standing, yanked.reason.as_str()),
            (Standing::Yanked, "It phones home.")
        );
        let fine = Subject {
            digest: "cc",
            revision: "r3",
            ..TIDY
        };
        assert_eq!(list.of(fine), None);
        assert_eq!(
            list.of(Subject {
                reference: "acme/skills/other",
                ..fine
            }),
            None
        );
        assert!(
            list.of(Subject {
                reference: "acme/skills/all",
                ..fine
            })
            .is_some()
        );
        assert_eq!(list.of(Subject { digest: "bb", ..fine }), None);
        assert_eq!(
            list.of(Subject {
                source: "url",
                reference: "acme/skills/all",
                ..fine
            }),
            None
        );
    }

    #[test]
    fn a_list_is_taken_bare_or_under_its_names_and_nothing_else_is() {
        assert!(parse(&json!([])).unwrap().is_empty());
        assert!(parse(&json!({"vulns": []})).unwrap().is_empty());
        assert!(parse(&json!({"rows": []})).is_err());
        assert!(parse(&json!("none")).is_err());
    }
}
