//! The steward verbs that talk to a server.
