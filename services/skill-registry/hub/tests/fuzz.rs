//! A long run with broken archives. `cargo test -p steward-skill-hub --test fuzz -- --ignored` runs ten minutes;
//! `steward_testkit::fuzz` says how long a run lasts and how one is repeated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::io::Write as _;

use steward_skill_hub::archive::{Limits, Selection, unpack};
use steward_skill_scanner::path;
use steward_testkit::fuzz::{Bytes, Source, long_run};

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

fn damage(bytes: &mut Vec<u8>, source: &mut Source) {
    for _ in 0..source.below(8) {
        let at = source.below(bytes.len());
        match source.below(4) {
            0 if at < bytes.len() => bytes[at] = source.byte(),
            1 => bytes.truncate(at),
            2 => {
                let piece = bytes[at..(at + source.below(80)).min(bytes.len())].to_vec();
                let to = source.below(bytes.len() + 1);
                drop(bytes.splice(to..to, piece));
            }
            _ => drop(bytes.splice(at..at, *b"../")),
        }
    }
}

#[test]
#[ignore = "runs for ten minutes"]
fn broken_archives_are_refused_or_stay_inside_and_within_the_caps() {
    let (zip, tar) = (zipped(), tarred());
    let archive = |source: &mut Source| {
        let (mut bytes, packed) = match source.below(3) {
            0 => (zip.clone(), false),
            1 => (tar.clone(), false),
            _ => (tar.clone(), true),
        };
        damage(&mut bytes, source);
        Bytes(if packed { gzipped(&bytes) } else { bytes })
    };
    let accepted = Cell::new(0_u64);
    long_run(archive, |bytes| {
        let Ok(tree) = unpack(bytes, Selection::default(), &Limits::default(), &|| true) else {
            return;
        };
        accepted.set(accepted.get() + 1);
        assert!(tree.bytes() <= Limits::default().bytes);
        for (name, _) in tree.iter() {
            assert_eq!(path::problem(name, 16), None, "{name:?}");
        }
    });
    assert!(accepted.get() > 0, "no archive survived: the run tries nothing");
}
