//! Skills from outside: sources, quarantine, policy, lock and audit.
