//! recall-service: configuration, gRPC and SQL around its core.

mod sqlite;
