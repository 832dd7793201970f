//! The durable job queue: leases, fences, retries and fairness, as a port with engines.
