//! Private folders and files: 0700 and 0600, written so that a crash leaves the old content or the new one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the folder and its missing parents with mode 0700; tightens the mode of the folder itself if it was wider.
pub fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Replaces the file's content, mode 0600: written beside it, flushed to disk, moved over it, folder flushed. Writers at
/// the same time do not disturb each other; the last one's content stays.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    place(path, content, |beside| fs::rename(beside, path))
}

/// As [`write_private`] for a file that must not be there yet: `AlreadyExists` otherwise, and then nothing is changed. Of
/// several who come at the same time, one succeeds.
pub fn create_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link, unlike a move, never replaces what is there.
    place(path, content, |beside| {
        fs::hard_link(beside, path).and_then(|()| fs::remove_file(beside))
    })
}

fn place(path: &Path, content: &[u8], place: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut beside = path.as_os_str().to_owned();
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    beside.push(format!(".{}-{write}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write_new(&beside, content).and_then(|()| place(&beside));
    if let Err(error) = written {
        // Which part failed is unknown here; a leftover would only confuse.
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    // A leftover of a crashed process with the same id must not lend its mode.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Holds a folder for this process, until it is dropped or the process ends in any way.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

/// Takes the folder for this process, so that no database file is ever opened by two. `WouldBlock` says that another
/// process, or another stack in this one, has it.
pub fn lock(folder: &Path) -> io::Result<FolderLock> {
    create_private(folder)?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(".lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(FolderLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!("{} is in use by another steward process", folder.display()),
        )),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_read_what_is_written() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        create_private(&folder).unwrap();
        let file = folder.join("token");
        write_private(&file, b"one").unwrap();
        write_private(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            1,
            "nothing is left beside the file"
        );
    }

    #[test]
    fn a_folder_that_others_could_read_is_tightened() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        create_private(root.path()).unwrap();
        assert_eq!(mode(root.path()), 0o700);
    }

    #[test]
    fn writers_at_the_same_time_leave_one_whole_content_and_one_of_several_makers_succeeds() {
        let root = tempfile::tempdir().unwrap();
        let (shared, made) = (root.path().join("shared"), root.path().join("made"));
        let made_by: Vec<u8> = std::thread::scope(|scope| {
            let writers: Vec<_> = (b'a'..=b'h')
                .map(|letter| {
                    let (shared, made) = (&shared, &made);
                    scope.spawn(move || {
                        for _ in 0..20 {
                            write_private(shared, &[letter; 4096]).unwrap();
                        }
                        match create_private_file(made, &[letter]) {
                            Ok(()) => Some(letter),
                            Err(error) => {
                                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
                                None
                            }
                        }
                    })
                })
                .collect();
            writers
                .into_iter()
                .filter_map(|writer| writer.join().unwrap())
                .collect()
        });
        let content = fs::read(&shared).unwrap();
        assert!(content.len() == 4096 && content.iter().all(|letter| *letter == content[0]));
        assert_eq!(fs::read(&made).unwrap(), made_by);
        assert_eq!((mode(&shared), mode(&made)), (0o600, 0o600));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2, "nothing is left beside");
    }

    #[test]
    fn a_folder_has_one_holder_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let held = lock(root.path()).unwrap();
        assert_eq!(lock(root.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        lock(root.path()).unwrap();
    }
}
