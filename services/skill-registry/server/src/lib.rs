//! skill-registry: configuration, gRPC, SQL and background work around its core.
