//! Long runs with broken input: front matter and whole scans. `cargo test -p steward-skill-scanner --test fuzz -- --ignored`
//! runs ten minutes each; `steward_testkit::fuzz` says how long a run lasts and how one is repeated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fmt::{self, Debug};
use std::time::{Duration, Instant};

use steward_skill_scanner::{File, Options, Scanner, Tree, header};
use steward_testkit::fuzz::{Bytes, Source, long_run};

/// Texts from which input is made: samples of attacks and the rules' own examples.
const SEEDS: [&str; 8] = [
    include_str!("../probes/commands.toml"),
    include_str!("../probes/data.toml"),
    include_str!("../probes/words.toml"),
    include_str!("../rules/exfiltration.toml"),
    include_str!("../rules/injection.toml"),
    include_str!("../rules/staged.toml"),
    include_str!("../rules/commands.toml"),
    include_str!("../rules/supply.toml"),
];
/// Pieces that parsers stumble over.
const PIECES: [&[u8]; 24] = [
    b"---\n",
    b"```bash\n",
    b"```\n",
    b"<!--",
    b"-->",
    b"$(",
    b"\\\n",
    b"'''",
    b"\"\"\"",
    b"\x00",
    b"\xff\xfe",
    b"\xf3\xa0\x81\xa1",
    b"\xe2\x80\xae",
    b"\xe2\x80\x8b",
    b"| base64 -d | sh",
    b"eval ",
    b"exec(",
    b"(((((((((",
    b"[[[[[[[[",
    b"&a *a",
    b"\\x41\\x42\\x43\\x44\\x45\\x46",
    b"aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=",
    b"\r\n",
    b"${x:1:2}",
];

fn input(source: &mut Source) -> Vec<u8> {
    let seed = source.one_of(&SEEDS).as_bytes();
    let start = source.below(seed.len());
    let length = source.below(2_000);
    let mut bytes = seed[start..(start + length).min(seed.len())].to_vec();
    for _ in 0..source.below(12) {
        let at = source.below(bytes.len() + 1);
        match source.below(4) {
            0 => drop(bytes.splice(at..at, source.one_of(&PIECES).iter().copied())),
            1 if at < bytes.len() => bytes[at] = source.byte(),
            2 => bytes.truncate(at),
            _ => {
                let piece: Vec<u8> = bytes[at..(at + source.below(60)).min(bytes.len())].to_vec();
                for _ in 0..source.below(20) {
                    bytes.extend_from_slice(&piece);
                }
            }
        }
    }
    bytes
}

/// A skill, shown file by file.
struct Skill(Tree);

impl Debug for Skill {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.iter().map(|(path, file)| (path, Bytes(file.bytes.to_vec())));
        formatter.debug_map().entries(files).finish()
    }
}

fn skill(source: &mut Source) -> Skill {
    let mut tree = Tree::new();
    let mut skill = b"---\nname: sample\ndescription: Does it.\n---\n".to_vec();
    skill.extend(input(source));
    tree.insert("SKILL.md", File::plain(skill));
    for name in ["a.sh", "b.py", "c.js", "d", "e.json", "f.png"] {
        if source.below(3) == 2 {
            tree.insert(name, File::plain(input(source)));
        }
    }
    Skill(tree)
}

fn front_matter(source: &mut Source) -> Bytes {
    Bytes([b"---\n", &input(source)[..], b"\n---\nbody"].concat())
}

#[test]
#[ignore = "runs for ten minutes"]
fn scans_of_broken_input_end_and_point_into_their_files() {
    let scanner = Scanner::new().unwrap();
    long_run(skill, |Skill(tree)| {
        let started = Instant::now();
        let report = scanner.scan(tree, &Options::default());
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "a scan of {} bytes took too long",
            tree.bytes()
        );
        for finding in &report.findings {
            let file = tree.get(&finding.path);
            let within = file.is_none_or(|file| finding.end <= file.bytes.len());
            assert!(
                finding.start <= finding.end && (within || finding.rule == "look-alike-package"),
                "{finding:?}"
            );
        }
    });
}

#[test]
#[ignore = "runs for ten minutes"]
fn broken_front_matter_is_read_or_refused() {
    long_run(front_matter, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(header) = header::parse(&text) {
            assert!(!header.name.is_empty() && header.name.chars().count() <= 64);
            assert!(header.description.chars().count() <= 1_024);
        }
    });
}
