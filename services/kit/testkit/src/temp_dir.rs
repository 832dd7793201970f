//! A folder per test. It vanishes when the test passes and stays, with its path printed, when the test fails.

use std::path::{Path, PathBuf};

/// A temporary folder of one test.
#[derive(Debug)]
pub struct TempDir {
    folder: Option<tempfile::TempDir>,
    path: PathBuf,
}

impl TempDir {
    /// A fresh, empty folder whose name starts with `name`.
    pub fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("steward-{name}-"))
            .tempdir()
            .expect("the system's temporary folder takes a new folder");
        let path = folder.path().to_path_buf();
        Self {
            folder: Some(folder),
            path,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path below it; nothing is created.
    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }
}

impl Drop for TempDir {
    #[expect(clippy::print_stderr, reason = "a failed test says where its files are")]
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take().filter(|_| std::thread::panicking()) {
            eprintln!("the test's files are kept in {}", folder.keep().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_with_a_passing_test_and_stays_with_a_failing_one() {
        let passed = TempDir::new("passed");
        let gone = passed.path().to_path_buf();
        std::fs::write(passed.join("file"), "x").expect("writable");
        drop(passed);
        assert!(!gone.exists());

        let failed = TempDir::new("failed");
        let kept = failed.path().to_path_buf();
        let outcome = std::thread::spawn(move || {
            let _folder = failed;
            panic!("a test fails on purpose");
        })
        .join();
        assert!(outcome.is_err() && kept.exists());
        std::fs::remove_dir_all(kept).expect("removable");
    }
}
