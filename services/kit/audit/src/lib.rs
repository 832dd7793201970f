//! The audit log of a process.
