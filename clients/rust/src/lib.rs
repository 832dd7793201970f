//! Typed client for Steward: connects to an endpoint or to a server in the same process.
