//! The `steward` binary.
fn main() {}
