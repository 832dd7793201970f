//! The wire contract of Steward: generated messages, clients and servers.
