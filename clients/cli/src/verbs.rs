//! One module per noun; each has its verbs, its tables and nothing else.

pub mod access;
pub mod audit;
pub mod curator;
pub mod health;
pub mod hub;
mod inbox;
pub mod memory;
pub mod models;
pub mod people;
pub mod recall;
pub mod reviews;
pub mod secrets;
pub mod sessions;
pub mod skills;

use std::fs::File;
use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use anyhow::Context as _;

use crate::output::{NOTICE, Output, printable};

/// A text that a person hands over: a file, or standard input for `-`.
fn read_text(file: &Path) -> anyhow::Result<String> {
    String::from_utf8(read_bytes(file)?).with_context(|| format!("{} is not UTF-8 text", file.display()))
}

/// What a person hands over, byte for byte: a file, or standard input for `-`.
fn read_bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// A file that only this person can read. What stands in the way is not for us to overwrite.
fn new_file(file: &Path) -> std::io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

/// Writes a file that only this person can read.
fn write_new(file: &Path, content: &[u8]) -> std::io::Result<()> {
    new_file(file)?.write_all(content)
}

/// Whether something that cannot be undone may be done: `--yes` says so, else the person is asked. Without a terminal
/// nobody can be asked, and the answer is no.
fn permitted(yes: bool, question: &str, output: &mut Output) -> bool {
    if yes {
        return true;
    }
    if output.is_json() || !std::io::stdin().is_terminal() {
        output.aside("give --yes to do this without being asked");
        return false;
    }
    let mut err = anstream::stderr().lock();
    let _ = write!(err, "{NOTICE}{}{NOTICE:#} [y/N] ", printable(question));
    let _ = err.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer).is_ok();
    read && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
