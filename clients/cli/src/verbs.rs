//! One module per noun; each has its verbs, its tables and nothing else.

pub mod access;
pub mod curator;
pub mod health;
pub mod memory;
pub mod recall;
pub mod reviews;
pub mod sessions;
pub mod skills;

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

/// A text that a person hands over: a file, or standard input for `-`.
fn read_text(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}
