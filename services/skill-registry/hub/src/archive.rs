//! Unpacks an archive into a [`Tree`] in memory: entry by entry, counting while it reads, refusing whatever a folder of
//! plain files cannot hold. Nothing is written anywhere before the whole of it was accepted (`H-3`).

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use steward_skill_scanner::{File, Tree, path};

/// How much an archive may hold. Counted while it is unpacked, whatever its headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most entries, folders included.
    pub entries: usize,
    /// Most bytes that are kept.
    pub bytes: u64,
    /// Most bytes that are unpacked, those left aside included.
    pub unpacked: u64,
    /// Most bytes of one file.
    pub file_bytes: u64,
    /// Most bytes unpacked for each byte of the archive, beyond a first mebibyte.
    pub ratio: u64,
    /// Most parts of a path.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 1_000,
            bytes: 10 << 20,
            unpacked: 10 << 20,
            file_bytes: 8 << 20,
            ratio: 100,
            depth: 16,
        }
    }
}

impl Limits {
    /// For an archive of a whole repository of which one folder is kept.
    pub fn repository() -> Self {
        Self {
            entries: 100_000,
            unpacked: 512 << 20,
            ..Self::default()
        }
    }
}

/// Which part of an archive is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'s> {
    /// Leave out the first part of each path, which hosts put there.
    pub strip_top: bool,
    /// Only what lies below this folder, relative to it.
    pub within: Option<&'s str>,
}

/// Why an archive is refused as a whole. Names the member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// Neither gzip, tar nor zip.
    #[error("it is no archive that is known here (tar, tar.gz, zip)")]
    Unknown,
    /// The bytes do not make an archive.
    #[error("it is broken: {problem}")]
    Broken {
        /// What the reader says.
        problem: String,
    },
    /// A cap was reached.
    #[error("it holds more than is taken: {what}")]
    TooMuch {
        /// Which cap.
        what: &'static str,
    },
    /// Unpacking took too long.
    #[error("it takes too long to unpack")]
    TooSlow,
    /// A member that no folder of plain files can hold.
    #[error("{member} {problem}")]
    Member {
        /// Its name as the archive writes it.
        member: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Unpacks `bytes`. `in_time` is asked before each piece and stops the work by answering no.
pub fn unpack(
    bytes: &[u8],
    selection: Selection<'_>,
    limits: &Limits,
    in_time: &dyn Fn() -> bool,
) -> Result<Tree, ArchiveError> {
    let mut taker = Taker {
        selection,
        limits,
        in_time,
        archive: bytes.len() as u64,
        entries: 0,
        unpacked: 0,
        kept: 0,
        folded: BTreeMap::new(),
        tree: Tree::new(),
    };
    if bytes.starts_with(b"\x1f\x8b") {
        let mut inflated = flate2::read::MultiGzDecoder::new(bytes);
        read_tar(&mut inflated, &mut taker)?;
    } else if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        read_zip(bytes, &mut taker)?;
    } else if bytes.get(257..262) == Some(b"ustar") {
        read_tar(&mut Cursor::new(bytes), &mut taker)?;
    } else {
        return Err(ArchiveError::Unknown);
    }
    for key in taker.folded.keys() {
        let mut parent = key.as_str();
        while let Some((above, _)) = parent.rsplit_once('/') {
            if let Some(member) = taker.folded.get(above) {
                return Err(refused(member, "is a file and a folder"));
            }
            parent = above;
        }
    }
    Ok(taker.tree)
}

struct Taker<'t> {
    selection: Selection<'t>,
    limits: &'t Limits,
    in_time: &'t dyn Fn() -> bool,
    archive: u64,
    entries: usize,
    unpacked: u64,
    kept: u64,
    folded: BTreeMap<String, String>,
    tree: Tree,
}

impl Taker<'_> {
    fn count(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(ArchiveError::TooMuch { what: "entries" });
        }
        if (self.in_time)() {
            Ok(())
        } else {
            Err(ArchiveError::TooSlow)
        }
    }

    /// The path inside the skill, or nothing if the member is not wanted.
    fn wanted(&self, member: &str) -> Option<String> {
        let mut path = member;
        if self.selection.strip_top {
            path = path.split_once('/')?.1;
        }
        if let Some(within) = self
            .selection
            .within
            .map(|within| within.trim_matches('/'))
            .filter(|within| !within.is_empty())
        {
            path = path.strip_prefix(within)?.strip_prefix('/')?;
        }
        (!path.is_empty()).then(|| path.to_owned())
    }

    /// Reads a member to its end under every cap.
    fn read(&mut self, reader: &mut dyn Read, keep: bool, member: &str) -> Result<Vec<u8>, ArchiveError> {
        let mut content = Vec::new();
        let mut size = 0_u64;
        let mut buffer = [0_u8; 8 * 1024];
        loop {
            let count = reader.read(&mut buffer).map_err(|error| broken(&error))?;
            if count == 0 {
                return Ok(content);
            }
            size += count as u64;
            self.unpacked += count as u64;
            if self.unpacked > self.limits.unpacked {
                return Err(ArchiveError::TooMuch { what: "bytes" });
            }
            if self.unpacked > (1 << 20) && self.unpacked > self.archive.saturating_mul(self.limits.ratio) {
                return Err(ArchiveError::TooMuch {
                    what: "bytes for its size",
                });
            }
            if !(self.in_time)() {
                return Err(ArchiveError::TooSlow);
            }
            if keep {
                if size > self.limits.file_bytes {
                    return Err(refused(member, "is larger than a file may be"));
                }
                content.extend_from_slice(buffer.get(..count).unwrap_or_default());
            }
        }
    }

    fn keep(&mut self, member: &str, path: String, bytes: Vec<u8>, executable: bool) -> Result<(), ArchiveError> {
        if let Some(problem) = path::problem(&path, self.limits.depth) {
            return Err(refused(member, problem));
        }
        self.kept += bytes.len() as u64;
        if self.kept > self.limits.bytes {
            return Err(ArchiveError::TooMuch { what: "bytes" });
        }
        if self.folded.insert(path::folded(&path), member.to_owned()).is_some() {
            return Err(refused(
                member,
                "is there twice, where case or Unicode form does not count",
            ));
        }
        self.tree.insert(
            path,
            File {
                bytes: bytes.into(),
                executable,
            },
        );
        Ok(())
    }
}

fn refused(member: &str, problem: &'static str) -> ArchiveError {
    ArchiveError::Member {
        member: member.chars().take(200).collect(),
        problem,
    }
}

fn broken(error: &dyn std::fmt::Display) -> ArchiveError {
    ArchiveError::Broken {
        problem: error.to_string(),
    }
}

fn read_tar(reader: &mut dyn Read, taker: &mut Taker<'_>) -> Result<(), ArchiveError> {
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(|error| broken(&error))? {
        let mut entry = entry.map_err(|error| broken(&error))?;
        taker.count()?;
        let kind = entry.header().entry_type();
        let raw = entry.path_bytes().into_owned();
        let name = String::from_utf8_lossy(&raw).into_owned();
        if kind.is_pax_global_extensions() {
            taker.read(&mut entry, false, &name)?;
            continue;
        }
        let wanted = taker.wanted(&name);
        let Some(path) = wanted else {
            taker.read(&mut entry, false, &name)?;
            // Outside of the wanted folder anything may stand, except at the root of what is taken whole.
            if taker.selection.within.is_none() && !kind.is_dir() && !taker.selection.strip_top {
                return Err(refused(&name, "has no usable path"));
            }
            continue;
        };
        if std::str::from_utf8(&raw).is_err() {
            return Err(refused(&name, "has a name that is not UTF-8"));
        }
        if kind.is_dir() {
            let path = path.trim_end_matches('/');
            if let Some(problem) = path::problem(path, taker.limits.depth).filter(|_| !matches!(path, "" | ".")) {
                return Err(refused(&name, problem));
            }
            continue;
        }
        if kind.is_symlink() || kind.is_hard_link() {
            return Err(refused(&name, "is a link"));
        }
        if !(kind.is_file() || kind.is_contiguous()) {
            return Err(refused(&name, "is neither a file nor a folder"));
        }
        let mode = entry.header().mode().map_err(|error| broken(&error))?;
        let stated = entry.size();
        let bytes = taker.read(&mut entry, true, &name)?;
        if bytes.len() as u64 != stated {
            return Err(refused(&name, "is shorter than its header says"));
        }
        let path = path.strip_prefix("./").map_or(path.clone(), str::to_owned);
        taker.keep(&name, path, bytes, mode & 0o100 != 0)?;
    }
    Ok(())
}

fn read_zip(bytes: &[u8], taker: &mut Taker<'_>) -> Result<(), ArchiveError> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let listed = members_listed(bytes);
    // The reader keeps one of several members of one name; which one a person's own tool keeps is another matter.
    if archive.offset() != 0 || listed.is_some_and(|listed| listed != archive.len()) {
        return Err(ArchiveError::Broken {
            problem: "its directory does not agree with what it holds".to_owned(),
        });
    }
    let mut covered: Vec<(u64, u64)> = Vec::new();
    for index in 0..archive.len() {
        taker.count()?;
        let raw = archive.by_index_raw(index).map_err(|error| broken(&error))?;
        let name = String::from_utf8_lossy(raw.name_raw()).into_owned();
        if std::str::from_utf8(raw.name_raw()).is_err() {
            return Err(refused(&name, "has a name that is not UTF-8"));
        }
        if raw.encrypted() {
            return Err(refused(&name, "is encrypted"));
        }
        let mode = raw.unix_mode().unwrap_or(0);
        match mode & 0o170_000 {
            0 | 0o100_000 | 0o040_000 => {}
            0o120_000 => return Err(refused(&name, "is a link")),
            _ => return Err(refused(&name, "is neither a file nor a folder")),
        }
        let start = raw.header_start();
        if !agrees(bytes, start, raw.name_raw()) {
            return Err(refused(&name, "has two headers that do not agree"));
        }
        covered.push((
            start,
            raw.data_start().unwrap_or(start).saturating_add(raw.compressed_size()),
        ));
        let (is_dir, stated) = (raw.is_dir(), raw.size());
        drop(raw);
        let Some(path) = taker.wanted(&name) else { continue };
        if is_dir {
            if let Some(problem) = path::problem(path.trim_end_matches('/'), taker.limits.depth) {
                return Err(refused(&name, problem));
            }
            continue;
        }
        let mut entry = archive.by_index(index).map_err(|error| broken(&error))?;
        let content = taker.read(&mut entry, true, &name)?;
        drop(entry);
        if content.len() as u64 != stated {
            return Err(refused(&name, "is not as long as its header says"));
        }
        taker.keep(&name, path, content, mode & 0o100 != 0)?;
    }
    covered.sort_unstable();
    let overlaps = covered
        .windows(2)
        .any(|pair| matches!(pair, [(_, end), (start, _)] if end > start));
    if overlaps {
        return Err(ArchiveError::Broken {
            problem: "members overlap".to_owned(),
        });
    }
    Ok(())
}

/// How many members the directory at the end says it lists; nothing if it is of the larger kind, which says it elsewhere.
fn members_listed(bytes: &[u8]) -> Option<usize> {
    let floor = bytes.len().saturating_sub(65_557);
    let tail = bytes.get(floor..)?;
    let at = tail.windows(4).rposition(|window| window == b"PK\x05\x06")?;
    let count = tail.get(at + 10..at + 12)?.try_into().ok().map(u16::from_le_bytes)?;
    (count != u16::MAX).then_some(usize::from(count))
}

/// Whether the header before the data names the member like the directory at the end, and is not encrypted either.
fn agrees(bytes: &[u8], start: u64, name: &[u8]) -> bool {
    let local = usize::try_from(start).ok().and_then(|start| bytes.get(start..));
    let Some(local) = local.filter(|local| local.starts_with(b"PK\x03\x04")) else {
        return false;
    };
    let number = |at: usize| {
        local
            .get(at..at + 2)
            .and_then(|pair| pair.try_into().ok())
            .map(u16::from_le_bytes)
    };
    let (Some(flags), Some(length)) = (number(6), number(26)) else {
        return false;
    };
    flags & 1 == 0 && local.get(30..30 + usize::from(length)) == Some(name)
}

#[cfg(test)]
mod tests;
