//! Server assembly, authentication layer, deadlines and the mapping from faults to gRPC status.
