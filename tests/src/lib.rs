//! End-to-end scenarios in both shapes, the architecture test, and benches.
