//! The process's TLS provider. reqwest is built without one, so that there is exactly one in the graph.

/// Makes ring the provider for every TLS connection of the process. Safe to call more than once; mains call it first.
pub fn install_provider() {
    // An error only says that a provider is there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
