//! Identifiers that count up, so that a failed assertion names the same id on every run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steward_base::IdGen;

/// Deterministic identifiers in the product's form (32 hexadecimal characters, sorting in the order of creation).
/// Clones go on counting together.
#[derive(Debug, Clone, Default)]
pub struct SeqIds {
    source: u16,
    next: Arc<AtomicU64>,
}

impl SeqIds {
    /// Counts from 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts from 1 in a range of its own, for tests with several sources whose ids must not meet.
    pub fn for_source(source: u16) -> Self {
        Self {
            source,
            next: Arc::default(),
        }
    }
}

impl IdGen for SeqIds {
    fn new_id(&self) -> String {
        let count = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        format!("0193000000007000{:04x}{count:012x}", 0x8000 | (self.source & 0x3fff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_the_product_and_never_meet() {
        let (left, right) = (SeqIds::new(), SeqIds::for_source(2));
        let ids = [left.new_id(), left.new_id(), right.new_id(), right.new_id()];
        assert!(
            ids.iter()
                .all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        );
        assert!(ids.is_sorted());
        assert_eq!(ids[0], "01930000000070008000000000000001");
        assert_ne!(ids[0], ids[2]);
    }
}
