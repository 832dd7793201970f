//! The keys that the teams' secrets are encrypted with, and the encryption: ChaCha20-Poly1305 with a nonce of its own for
//! each value, bound to the team and the variable that it is for. Why so stands in `services/adr/`.
//!
//! The first key of the file seals, all of them open. On one machine the file is made when the first secret is set; where a
//! setting names it, whoever runs the installation makes it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use steward_base::hash::sha256_parts;
use steward_runtime::data_dir;

use crate::config::Config;

const KEY_BYTES: usize = 32;
/// Digits of a key's name.
const ID_CHARS: usize = 16;

/// Why a key or a sealed value cannot be used. Never says what is in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// The file cannot be read or made.
    #[error("{} cannot be read or made", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line is no key.
    #[error("line {line} of {} is no key: a key is 64 hexadecimal digits", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// Everyone on the machine can read the keys.
    #[error("{} can be read by everyone; take that away from it", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
    },
    /// The file that a setting names has no key.
    #[error("{} has no key", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The key that sealed a value is not in the file.
    #[error("the key {id} is not there")]
    Unknown {
        /// Its name.
        id: String,
    },
    /// The sealed bytes are not what was sealed for this team and variable.
    #[error("the sealed value was changed, or is another one's")]
    Damaged,
    /// The machine gives no random numbers, or the cipher refuses.
    #[error("nothing can be encrypted at the moment")]
    Cipher,
}

/// One key, by a name that follows from it and tells nothing of it.
struct Key {
    id: String,
    cipher: LessSafeKey,
}

/// The keys, newest first.
pub(crate) struct Keyring {
    path: PathBuf,
    /// Whether the file is made when there is none.
    makes: bool,
    keys: RwLock<Arc<Vec<Key>>>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A value as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// Name of the key.
    pub(crate) key: String,
    /// Nonce, ciphertext, tag.
    pub(crate) bytes: Vec<u8>,
}

impl Keyring {
    /// Without any key, and without a file.
    pub(crate) fn none() -> Self {
        Self {
            path: PathBuf::new(),
            makes: false,
            keys: RwLock::default(),
        }
    }

    /// As the settings say, `folder` being the service's own.
    pub(crate) fn open_for(config: &Config, folder: &Path) -> Result<Self, KeyError> {
        if config.secret_keys.as_os_str().is_empty() {
            Self::open(folder.join("secrets.key"), true)
        } else {
            Self::open(config.secret_keys.clone(), false)
        }
    }

    /// Reads the file. One that is not there is made when a key is needed, or else is an error now.
    pub(crate) fn open(path: PathBuf, makes: bool) -> Result<Self, KeyError> {
        let keys = match std::fs::read_to_string(&path) {
            Ok(text) => {
                check_mode(&path)?;
                parse(&path, &text)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && makes => Vec::new(),
            Err(source) => return Err(KeyError::File { path, source }),
        };
        if keys.is_empty() && !makes {
            return Err(KeyError::Empty { path });
        }
        Ok(Self {
            path,
            makes,
            keys: RwLock::new(Arc::new(keys)),
        })
    }

    /// Encrypts a value for one team and variable.
    pub(crate) fn seal(&self, team: &str, name: &str, value: &str) -> Result<Sealed, KeyError> {
        let keys = self.with_a_key()?;
        let key = keys.first().ok_or(KeyError::Cipher)?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| KeyError::Cipher)?;
        let mut sealed = value.as_bytes().to_vec();
        key.cipher
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                bound(team, name, &key.id),
                &mut sealed,
            )
            .map_err(|_| KeyError::Cipher)?;
        Ok(Sealed {
            key: key.id.clone(),
            bytes: [nonce.as_slice(), &sealed].concat(),
        })
    }

    /// Decrypts it again.
    pub(crate) fn open_sealed(&self, team: &str, name: &str, sealed: &Sealed) -> Result<String, KeyError> {
        let keys = self.present();
        let key = keys.iter().find(|key| key.id == sealed.key);
        let key = key.ok_or_else(|| KeyError::Unknown { id: sealed.key.clone() })?;
        let (nonce, rest) = sealed.bytes.split_at_checked(NONCE_LEN).ok_or(KeyError::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| KeyError::Damaged)?;
        let mut rest = rest.to_vec();
        let opened = key
            .cipher
            .open_in_place(nonce, bound(team, name, &key.id), &mut rest)
            .map_err(|_| KeyError::Damaged)?;
        String::from_utf8(opened.to_vec()).map_err(|_| KeyError::Damaged)
    }

    /// Whether a value that this key sealed can be opened.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.present().iter().any(|key| key.id == id)
    }

    /// The name of the key that seals now; none as long as there is none.
    pub(crate) fn newest(&self) -> Option<String> {
        self.present().first().map(|key| key.id.clone())
    }

    fn present(&self) -> Arc<Vec<Key>> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keys; makes the first one where there is none.
    fn with_a_key(&self) -> Result<Arc<Vec<Key>>, KeyError> {
        let present = self.present();
        if !present.is_empty() || !self.makes {
            return Ok(present);
        }
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys.is_empty() {
            *keys = Arc::new(make(&self.path)?);
        }
        Ok(Arc::clone(&keys))
    }
}

/// What a sealed value is bound to; length-prefixed, so that no two differ by moving a boundary.
fn bound(team: &str, name: &str, key: &str) -> Aad<String> {
    Aad::from(sha256_parts([
        b"steward-secret/1".as_slice(),
        team.as_bytes(),
        name.as_bytes(),
        key.as_bytes(),
    ]))
}

/// Makes the file with one key that only its owner can read, or reads the one that another made meanwhile.
fn make(path: &Path) -> Result<Vec<Key>, KeyError> {
    let failed = |source| KeyError::File {
        path: path.to_owned(),
        source,
    };
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::Cipher)?;
    let text = format!("{}\n", hex::encode(bytes));
    match data_dir::create_private_file(path, text.as_bytes()) {
        Ok(()) => parse(path, &text),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            parse(path, &std::fs::read_to_string(path).map_err(failed)?)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Keys are one a line; empty lines and those that begin with `#` say nothing.
fn parse(path: &Path, text: &str) -> Result<Vec<Key>, KeyError> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| {
            let wrong = || KeyError::Line {
                path: path.to_owned(),
                line: number,
            };
            let bytes = hex::decode(line).map_err(|_| wrong())?;
            let unbound = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| wrong())?;
            let mut id = sha256_parts([b"steward-secret-key/1".as_slice(), &bytes]);
            id.truncate(ID_CHARS);
            Ok(Key {
                id,
                cipher: LessSafeKey::new(unbound),
            })
        })
        .collect()
}

#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = std::fs::metadata(path).map_err(|source| KeyError::File {
        path: path.to_owned(),
        source,
    })?;
    let is_open = metadata.permissions().mode() & 0o007 != 0;
    if is_open {
        Err(KeyError::Open { path: path.to_owned() })
    } else {
        Ok(())
    }
}

#[cfg(not(unix))]
fn check_mode(_: &Path) -> Result<(), KeyError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_testkit::TempDir;

    fn made(folder: &TempDir) -> Keyring {
        Keyring::open(folder.path().join("secrets.key"), true).unwrap()
    }

    fn write(path: &Path, text: &str) {
        data_dir::write_private(path, text.as_bytes()).unwrap();
    }

    /// `S-8`.
    #[test]
    fn a_value_opens_for_its_own_team_and_variable_only_and_is_never_sealed_the_same_twice() {
        let folder = TempDir::new("keyring");
        let keys = made(&folder);
        let one = keys.seal("red", "API_TOKEN", "v-4711").unwrap();
        let two = keys.seal("red", "API_TOKEN", "v-4711").unwrap();
        assert_ne!(one.bytes, two.bytes);
        assert!(!one.bytes.windows(6).any(|window| window == b"v-4711"));
        assert_eq!(keys.open_sealed("red", "API_TOKEN", &one).unwrap(), "v-4711");
        for (team, name) in [("blue", "API_TOKEN"), ("red", "API_BASE"), ("redA", "PI_TOKEN")] {
            assert!(
                matches!(keys.open_sealed(team, name, &one), Err(KeyError::Damaged)),
                "{team} {name}"
            );
        }
        for at in 0..one.bytes.len() {
            let mut changed = one.clone();
            changed.bytes[at] ^= 1;
            assert!(keys.open_sealed("red", "API_TOKEN", &changed).is_err(), "byte {at}");
        }
        let cut = Sealed {
            bytes: one.bytes[..NONCE_LEN - 1].to_vec(),
            ..one
        };
        assert!(keys.open_sealed("red", "API_TOKEN", &cut).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_made_once_for_its_owner_and_refused_when_everyone_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = TempDir::new("keyring");
        let path = folder.path().join("secrets.key");
        let (first, second) = (made(&folder), made(&folder));
        assert!(
            !path.exists() && first.newest().is_none(),
            "no key is made before one is needed"
        );
        let sealed = first.seal("red", "A", "x").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        second.seal("red", "A", "y").unwrap();
        assert_eq!(
            second.open_sealed("red", "A", &sealed).unwrap(),
            "x",
            "both use the one file"
        );
        assert_eq!(made(&folder).open_sealed("red", "A", &sealed).unwrap(), "x");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Keyring::open(path, true), Err(KeyError::Open { .. })));
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let folder = TempDir::new("keyring");
        let path = folder.path().join("keys");
        let (old, new) = ("11".repeat(32), "22".repeat(32));
        write(&path, &old);
        let before = Keyring::open(path.clone(), false).unwrap();
        let sealed = before.seal("red", "A", "x").unwrap();
        write(&path, &format!("# rotated\n{new}\n\n{old}\n"));
        let both = Keyring::open(path.clone(), false).unwrap();
        assert_eq!(both.open_sealed("red", "A", &sealed).unwrap(), "x");
        let renewed = both.seal("red", "A", "x").unwrap();
        assert_ne!(renewed.key, sealed.key);
        write(&path, &new);
        let after = Keyring::open(path.clone(), false).unwrap();
        assert_eq!(after.open_sealed("red", "A", &renewed).unwrap(), "x");
        assert!(matches!(
            after.open_sealed("red", "A", &sealed),
            Err(KeyError::Unknown { .. })
        ));
        assert!(!after.knows(&sealed.key) && after.knows(&renewed.key));
        let shown = format!("{after:?}");
        assert!(!shown.contains(&new), "{shown}");
        for wrong in ["", "# none\n", "zz", &"1".repeat(63), &"11".repeat(31)] {
            write(&path, wrong);
            assert!(Keyring::open(path.clone(), false).is_err(), "{wrong:?}");
        }
        assert!(Keyring::open(folder.path().join("nowhere"), false).is_err());
    }
}
