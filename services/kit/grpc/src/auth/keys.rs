//! The signer's key pair and the public keys that everyone else verifies with.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _};
use ed25519_dalek::{SigningKey, VerifyingKey};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use steward_base::hash::sha256_hex;
use steward_runtime::data_dir;

use super::claims::Claims;

/// Name of the private key's file in the signer's key folder.
pub const PRIVATE_FILE: &str = "signing-key.pem";

/// Name of the folder beside it that other services may read: the public keys.
pub const PUBLIC_FOLDER: &str = "public";

/// A key could not be read, made or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file or folder cannot be read or written.
    #[error("cannot use {path}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The text is not an Ed25519 key in PEM.
    #[error("{what} is not an Ed25519 key in PEM")]
    Syntax {
        /// Which one.
        what: String,
    },
    /// There is no key at all.
    #[error("there is no public key in {path}")]
    Empty {
        /// Where one was expected.
        path: PathBuf,
    },
    /// Others can read the private key, or could: what it signed proves nothing. A person decides whether to make the
    /// file private (mode 0600) or to remove it, so that a new key is made.
    #[error("{path} holds the private key and has mode {mode:o}: make it 600, or remove it to have a new key made")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The token could not be signed.
    #[error("the token could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

/// Public keys by key id. A second key stays here while tokens of the first are still out.
///
/// Keys that come from a path are read again while the server runs: at once when a token names a key that is not known,
/// at most once a second, and else every minute. So a server may start before the signer has made its key, and a key that
/// is replaced or withdrawn needs no restart.
#[derive(Clone, Default)]
pub struct PublicKeys {
    keys: KeyMap,
    source: Option<PathBuf>,
}

pub(super) type KeyMap = BTreeMap<String, DecodingKey>;

impl PublicKeys {
    /// From a PEM file, or from all `*.pem` files of a folder; no key at all is an error.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let keys = read_keys(path)?;
        if keys.is_empty() {
            return Err(KeyError::Empty { path: path.to_owned() });
        }
        Ok(Self {
            keys,
            source: Some(path.to_owned()),
        })
    }

    /// As [`PublicKeys::load`], for a path where the signer may not have put anything yet: until it has, every token is
    /// refused.
    pub fn watch(path: &Path) -> Result<Self, KeyError> {
        let keys = match read_keys(path) {
            Err(KeyError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => KeyMap::new(),
            read => read?,
        };
        if keys.is_empty() {
            tracing::warn!(path = %path.display(), "no public key yet, nobody gets in until there is one");
        }
        Ok(Self {
            keys,
            source: Some(path.to_owned()),
        })
    }

    fn add(&mut self, key: &VerifyingKey) {
        insert(&mut self.keys, key);
    }

    pub(super) fn into_parts(self) -> (KeyMap, Option<PathBuf>) {
        (self.keys, self.source)
    }
}

impl fmt::Debug for PublicKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys.keys()).finish()
    }
}

/// The keys at `path` now. One file that is no key is an error: half a set would refuse good tokens in silence.
pub(super) fn read_keys(path: &Path) -> Result<KeyMap, KeyError> {
    let read = |source| KeyError::Read {
        path: path.to_owned(),
        source,
    };
    let mut files = vec![path.to_owned()];
    if fs::metadata(path).map_err(read)?.is_dir() {
        let entries = fs::read_dir(path)
            .map_err(read)?
            .collect::<Result<Vec<_>, _>>()
            .map_err(read)?;
        files = entries
            .into_iter()
            .map(|entry| entry.path())
            .filter(|file| is_pem(file))
            .collect();
    }
    let mut keys = KeyMap::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|source| KeyError::Read {
            path: file.clone(),
            source,
        })?;
        let key = VerifyingKey::from_public_key_pem(&text).map_err(|_| KeyError::Syntax {
            what: file.display().to_string(),
        })?;
        insert(&mut keys, &key);
    }
    Ok(keys)
}

fn insert(keys: &mut KeyMap, key: &VerifyingKey) {
    keys.insert(key_id(key), DecodingKey::from_ed_der(key.as_bytes()));
}

fn is_pem(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pem")
}

/// The key's own hash names it, so that nothing has to be configured twice.
fn key_id(key: &VerifyingKey) -> String {
    let mut id = sha256_hex(key.as_bytes());
    id.truncate(16);
    id
}

/// Signs tokens. Held by agent-orchestrator and by nobody else.
pub struct TokenSigner {
    key: SigningKey,
    id: String,
    encoding: EncodingKey,
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSigner")
            .field("key_id", &self.id)
            .finish_non_exhaustive()
    }
}

impl TokenSigner {
    /// A new key pair from the machine's random source.
    pub fn generate() -> Result<Self, KeyError> {
        Self::from_key(SigningKey::from_bytes(&rand::random()))
    }

    /// From a private key in PKCS#8 PEM.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let syntax = || KeyError::Syntax {
            what: "the private key".to_owned(),
        };
        Self::from_key(SigningKey::from_pkcs8_pem(pem).map_err(|_| syntax())?)
    }

    /// The key pair in `folder`, made there if there is none: [`PRIVATE_FILE`] for the owner only, and the public key in
    /// [`PUBLIC_FOLDER`] for the other services.
    pub fn load_or_create(folder: &Path) -> Result<Self, KeyError> {
        let path = folder.join(PRIVATE_FILE);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| KeyError::Read { path, source }
        };
        data_dir::create_private(folder).map_err(failed(folder))?;
        let signer = match Self::read(&path)? {
            Some(signer) => signer,
            None => Self::create(&path)?,
        };
        let public = folder.join(PUBLIC_FOLDER);
        data_dir::create_private(&public).map_err(failed(&public))?;
        let file = public.join(format!("{}.pem", signer.id));
        if !file.exists() {
            data_dir::write_private(&file, signer.public_pem()?.as_bytes()).map_err(failed(&file))?;
        }
        Ok(signer)
    }

    /// The key in the file at `path`; `None` without one. A key that others could read is refused: it may be in more hands
    /// than ours, and only a person can know.
    fn read(path: &Path) -> Result<Option<Self>, KeyError> {
        let failed = |source| KeyError::Read {
            path: path.to_owned(),
            source,
        };
        let mode = match fs::metadata(path) {
            Ok(found) => found.permissions().mode() & 0o777,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed {
                path: path.to_owned(),
                mode,
            });
        }
        Self::from_pem(&fs::read_to_string(path).map_err(failed)?).map(Some)
    }

    /// A new key in a file at `path`. Of two processes that come at the same time, one makes it and both use it.
    fn create(path: &Path) -> Result<Self, KeyError> {
        let signer = Self::generate()?;
        match data_dir::create_private_file(path, signer.private_pem()?.as_bytes()) {
            Ok(()) => Ok(signer),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(path)?.ok_or(KeyError::Read {
                path: path.to_owned(),
                source: error,
            }),
            Err(source) => Err(KeyError::Read {
                path: path.to_owned(),
                source,
            }),
        }
    }

    fn from_key(key: SigningKey) -> Result<Self, KeyError> {
        let syntax = |_| KeyError::Syntax {
            what: "the private key".to_owned(),
        };
        let der = key.to_pkcs8_der().map_err(syntax)?;
        let encoding = EncodingKey::from_ed_der(der.as_bytes());
        Ok(Self {
            id: key_id(&key.verifying_key()),
            key,
            encoding,
        })
    }

    /// Signs a token.
    pub fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.id.clone());
        jsonwebtoken::encode(&header, claims, &self.encoding).map_err(KeyError::Sign)
    }

    /// The id in the header of its tokens.
    pub fn key_id(&self) -> &str {
        &self.id
    }

    /// What its tokens are verified with.
    pub fn public_keys(&self) -> PublicKeys {
        let mut keys = PublicKeys::default();
        keys.add(&self.key.verifying_key());
        keys
    }

    /// The public key in PEM, for other machines.
    pub fn public_pem(&self) -> Result<String, KeyError> {
        let syntax = |_| KeyError::Syntax {
            what: "the public key".to_owned(),
        };
        self.key
            .verifying_key()
            .to_public_key_pem(LineEnding::LF)
            .map_err(syntax)
    }

    fn private_pem(&self) -> Result<String, KeyError> {
        let syntax = |_| KeyError::Syntax {
            what: "the private key".to_owned(),
        };
        Ok(self.key.to_pkcs8_pem(LineEnding::LF).map_err(syntax)?.to_string())
    }
}
