//! A long run with broken archives. `cargo test -p steward-skill-hub --test fuzz --release -- --ignored` runs ten
//! minutes; `STEWARD_FUZZ_SECONDS` sets another time. A failure prints the seed that repeats it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use steward_skill_hub::archive::{Limits, Selection, unpack};
use steward_skill_scanner::path;

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn below(state: &mut u64, limit: usize) -> usize {
    usize::try_from(next(state) % (limit.max(1) as u64)).unwrap_or(0)
}

const FILES: [(&str, &[u8]); 3] = [
    ("SKILL.md", b"---\nname: tidy\ndescription: Tidies.\n---\nx\n"),
    (
        "references/a.md",
        b"some notes that are a little longer than the others",
    ),
    ("scripts/run.sh", b"#!/bin/sh\necho run\n"),
];

fn zipped() -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in FILES {
        writer
            .start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn tarred() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in FILES {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn damage(bytes: &mut Vec<u8>, state: &mut u64) {
    for _ in 0..below(state, 8) {
        let at = below(state, bytes.len());
        match below(state, 4) {
            0 if at < bytes.len() => bytes[at] = next(state).to_le_bytes()[0],
            1 => bytes.truncate(at),
            2 => {
                let piece = bytes[at..(at + below(state, 80)).min(bytes.len())].to_vec();
                let to = below(state, bytes.len() + 1);
                drop(bytes.splice(to..to, piece));
            }
            _ => drop(bytes.splice(at..at, *b"../")),
        }
    }
}

#[test]
#[ignore = "runs for ten minutes"]
fn broken_archives_are_refused_or_stay_inside_and_within_the_caps() {
    let seconds = std::env::var_os("STEWARD_FUZZ_SECONDS").and_then(|text| text.to_str()?.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(600));
    let (zip, tar) = (zipped(), tarred());
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut accepted = 0_u64;
    while Instant::now() < end {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let mut state = seed | 1;
        let (mut bytes, packed) = match below(&mut state, 3) {
            0 => (zip.clone(), false),
            1 => (tar.clone(), false),
            _ => (tar.clone(), true),
        };
        damage(&mut bytes, &mut state);
        if packed {
            bytes = gzipped(&bytes);
        }
        let result = std::panic::catch_unwind(|| unpack(&bytes, Selection::default(), &Limits::default(), &|| true));
        let result = result.unwrap_or_else(|_| panic!("seed {seed:#x}"));
        if let Ok(tree) = result {
            accepted += 1;
            assert!(tree.bytes() <= Limits::default().bytes, "seed {seed:#x}");
            for (name, _) in tree.iter() {
                assert_eq!(path::problem(name, 16), None, "seed {seed:#x}: {name:?}");
            }
        }
    }
    assert!(accepted > 0, "no archive survived: the run tries nothing");
}
