//! The rules of memory-service, its ports and an in-memory store.
