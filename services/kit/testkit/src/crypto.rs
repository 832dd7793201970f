//! The TLS provider of a test process.

/// Makes ring the process's TLS provider. HTTP clients refuse to be built without one; calling it twice is fine.
pub fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another test thread may have been faster; either way a provider is there afterwards.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}
