//! Long runs with broken input: front matter and whole scans. `cargo test -p steward-skill-scanner --test fuzz --release
//! -- --ignored` runs ten minutes; `STEWARD_FUZZ_SECONDS` sets another time. A failure prints the seed that repeats it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use steward_skill_scanner::{File, Options, Scanner, Tree, header};

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

struct Source(u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or(0)
    }

    fn input(&mut self) -> Vec<u8> {
        let seed = SEEDS[self.below(SEEDS.len())].as_bytes();
        let start = self.below(seed.len());
        let length = self.below(2_000);
        let mut bytes = seed[start..(start + length).min(seed.len())].to_vec();
        for _ in 0..self.below(12) {
            let at = self.below(bytes.len() + 1);
            match self.below(4) {
                0 => drop(bytes.splice(at..at, PIECES[self.below(PIECES.len())].iter().copied())),
                1 if at < bytes.len() => bytes[at] = self.next().to_le_bytes()[0],
                2 => bytes.truncate(at),
                _ => {
                    let piece: Vec<u8> = bytes[at..(at + self.below(60)).min(bytes.len())].to_vec();
                    for _ in 0..self.below(20) {
                        bytes.extend_from_slice(&piece);
                    }
                }
            }
        }
        bytes
    }
}

fn run(work: impl Fn(&mut Source)) {
    let seconds = std::env::var_os("STEWARD_FUZZ_SECONDS").and_then(|text| text.to_str()?.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(600));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut runs = 0_u64;
    while Instant::now() < end {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut Source(seed | 1))));
        assert!(result.is_ok(), "seed {seed:#x} after {runs} runs");
        runs += 1;
    }
    assert!(runs > 0);
}

#[test]
#[ignore = "runs for ten minutes"]
fn scans_of_broken_input_end_and_point_into_their_files() {
    let scanner = Scanner::new().unwrap();
    run(|source| {
        let mut tree = Tree::new();
        let mut skill = b"---\nname: sample\ndescription: Does it.\n---\n".to_vec();
        skill.extend(source.input());
        tree.insert("SKILL.md", File::plain(skill));
        for name in ["a.sh", "b.py", "c.js", "d", "e.json", "f.png"] {
            if source.below(3) == 0 {
                tree.insert(name, File::plain(source.input()));
            }
        }
        let started = Instant::now();
        let report = scanner.scan(&tree, &Options::default());
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
    run(|source| {
        let mut bytes = b"---\n".to_vec();
        bytes.extend(source.input());
        bytes.extend(b"\n---\nbody");
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(header) = header::parse(&text) {
            assert!(!header.name.is_empty() && header.name.chars().count() <= 64);
            assert!(header.description.chars().count() <= 1_024);
        }
    });
}
