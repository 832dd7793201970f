//! SHA-256 over unambiguous input.

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes`, for keys that never leave the process.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of `bytes` as 64 lower-case hexadecimal characters.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// SHA-256 over several parts, each preceded by its length, so that no two different lists of parts collide.
pub fn sha256_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hex::encode(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_boundary_changes_the_hash() {
        assert_ne!(
            sha256_parts([b"ab".as_slice(), b"c"]),
            sha256_parts([b"a".as_slice(), b"bc"])
        );
        assert_eq!(
            sha256_hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
