//! Asks all sources at once, each within its own time; one that fails is reported and spoils nothing (`H-1`).

use std::sync::Arc;
use std::time::Duration;

use crate::source::{Found, Source, SourceError};

/// A source that gave no whole answer, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The source.
    pub source: String,
    /// Why.
    pub problem: String,
}

/// What a search found, in the order of the sources' priority, and what it could not ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Results {
    /// Skills, each reference once.
    pub found: Vec<Found>,
    /// Sources that failed.
    pub failed: Vec<Failed>,
}

impl Results {
    /// Whether every source answered.
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty()
    }
}

/// Searches `sources`, which stand in the order of their priority, for at most `deadline` each.
pub async fn search(sources: &[Arc<dyn Source>], query: &str, limit: usize, deadline: Duration) -> Results {
    let asked = sources.iter().map(|source| async move {
        let answer = tokio::time::timeout(deadline, source.search(query, limit)).await;
        (source.name(), answer)
    });
    let mut results = Results::default();
    for (name, answer) in futures::future::join_all(asked).await {
        match answer {
            Ok(Ok(found)) => {
                for row in found.into_iter().take(limit) {
                    let known = |other: &Found| other.source == row.source && other.reference == row.reference;
                    if !results.found.iter().any(known) {
                        results.found.push(row);
                    }
                }
            }
            Ok(Err(error)) => results.failed.push(Failed {
                source: name.to_owned(),
                problem: told(&error, query),
            }),
            Err(_) => results.failed.push(Failed {
                source: name.to_owned(),
                problem: "no answer in time".to_owned(),
            }),
        }
    }
    results
}

/// A page that is missing is no skill that is missing.
fn told(error: &SourceError, query: &str) -> String {
    match error {
        SourceError::Gone { reference } if reference == query => {
            "its address for searches answers 404 (not found)".to_owned()
        }
        SourceError::Gone { reference } => format!("{reference}, which is searched there, answers 404 (not found)"),
        _ => error.to_string(),
    }
}
