use std::io::Write as _;

use proptest::prelude::*;

use super::*;

const SKILL: &[u8] = b"---\nname: tidy\ndescription: Tidies.\n---\nx\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("finished")
}

/// A tar with raw names, as a hostile packer writes it.
fn tarred(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(if name.contains("scripts/") { 0o4755 } else { 0o644 });
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/hosts").expect("a link name");
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, std::io::empty()).expect("appended");
        } else {
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, *content).expect("appended");
        }
    }
    gzip(&builder.into_inner().expect("finished"))
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(*name, options).expect("started");
        writer.write_all(content).expect("written");
    }
    writer.finish().expect("finished").into_inner()
}

fn take(bytes: &[u8]) -> Result<Tree, ArchiveError> {
    unpack(bytes, Selection::default(), &Limits::default(), &|| true)
}

#[test]
fn h_3_plain_archives_are_unpacked_whole() {
    let file = tar::EntryType::Regular;
    let tar = tarred(&[
        ("SKILL.md", file, SKILL),
        ("scripts/", tar::EntryType::Directory, b""),
        ("scripts/run.sh", file, b"#!/bin/sh\n"),
    ]);
    let zip = zipped(&[("SKILL.md", SKILL), ("scripts/run.sh", b"#!/bin/sh\n")]);
    for bytes in [tar, zip] {
        let tree = take(&bytes).expect("accepted");
        assert_eq!(tree.len(), 2);
        assert_eq!(
            tree.get("SKILL.md").map(|file| file.bytes.to_vec()),
            Some(SKILL.to_vec())
        );
    }
}

#[test]
fn h_3_one_folder_of_a_repository_is_taken() {
    let file = tar::EntryType::Regular;
    let tar = tarred(&[
        ("repo-abc/README.md", file, b"x"),
        ("repo-abc/link", tar::EntryType::Symlink, b""),
        ("repo-abc/skills/tidy/SKILL.md", file, SKILL),
        ("repo-abc/skills/tidy/scripts/run.sh", file, b"#!/bin/sh\n"),
        ("repo-abc/skills/tidy-more/SKILL.md", file, SKILL),
    ]);
    let selection = Selection {
        strip_top: true,
        within: Some("skills/tidy"),
    };
    let tree = unpack(&tar, selection, &Limits::repository(), &|| true).expect("accepted");
    let paths: Vec<&str> = tree.iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["SKILL.md", "scripts/run.sh"]);
    assert!(tree.get("scripts/run.sh").is_some_and(|file| file.executable));
}

#[test]
fn d_19_nothing_that_leads_out_of_the_folder_is_taken() {
    let file = tar::EntryType::Regular;
    for (name, kind) in [
        ("../../evil.md", file),
        ("/tmp/evil.md", file),
        ("..\\..\\evil.md", file),
        ("references/k", tar::EntryType::Symlink),
        ("references/h", tar::EntryType::Link),
        ("dev/null", tar::EntryType::Char),
        ("pipe", tar::EntryType::Fifo),
    ] {
        let result = take(&tarred(&[("SKILL.md", file, SKILL), (name, kind, b"x")]));
        assert!(
            matches!(&result, Err(ArchiveError::Member { member, .. }) if member == name),
            "{name}: {result:?}"
        );
    }
    for name in ["../../evil.md", "/tmp/evil.md", "..\\evil.md", "C:\\x", "nul"] {
        let result = take(&zipped(&[("SKILL.md", SKILL), (name, b"x")]));
        assert!(matches!(result, Err(ArchiveError::Member { .. })), "{name}: {result:?}");
    }
    let twice = take(&zipped(&[("SKILL.md", SKILL), ("a/B.md", b"x"), ("A/b.md", b"y")]));
    assert!(matches!(twice, Err(ArchiveError::Member { .. })), "{twice:?}");
    let both = take(&tarred(&[("a", file, b"x"), ("a/b", file, b"y")]));
    assert!(matches!(both, Err(ArchiveError::Member { .. })), "{both:?}");
}

#[test]
fn h_3_a_bomb_stops_at_the_caps_while_it_is_unpacked() {
    let zeros = vec![0_u8; 9 << 20];
    for bytes in [
        zipped(&[("SKILL.md", &zeros)]),
        tarred(&[("SKILL.md", tar::EntryType::Regular, &zeros)]),
    ] {
        assert!(bytes.len() < 100_000);
        assert!(
            matches!(
                take(&bytes),
                Err(ArchiveError::TooMuch {
                    what: "bytes for its size"
                })
            ),
            "{:?}",
            take(&bytes)
        );
    }
    let many: Vec<(String, Vec<u8>)> = (0..1_100).map(|index| (format!("f{index}"), vec![1])).collect();
    let many: Vec<(&str, &[u8])> = many
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_slice()))
        .collect();
    assert_eq!(take(&zipped(&many)), Err(ArchiveError::TooMuch { what: "entries" }));
    let slow = unpack(
        &zipped(&[("SKILL.md", SKILL)]),
        Selection::default(),
        &Limits::default(),
        &|| false,
    );
    assert_eq!(slow, Err(ArchiveError::TooSlow));
}

#[test]
fn h_3_encrypted_and_contradicting_members_are_refused() {
    let plain = zipped(&[("SKILL.md", SKILL)]);
    let mut encrypted = plain.clone();
    encrypted[6] |= 1;
    assert!(matches!(
        take(&encrypted),
        Err(ArchiveError::Member { .. } | ArchiveError::Broken { .. })
    ));
    let mut renamed = plain.clone();
    renamed[30..38].copy_from_slice(b"EVIL1.md");
    let result = take(&renamed);
    assert!(
        matches!(&result, Err(ArchiveError::Member { problem, .. }) if problem.contains("two headers")),
        "{result:?}"
    );
    let mut twice = zipped(&[("SKILL.md", SKILL), ("EVIL1.md", b"x")]);
    for at in 0..twice.len() - 8 {
        if &twice[at..at + 8] == b"EVIL1.md" {
            twice[at..at + 8].copy_from_slice(b"SKILL.md");
        }
    }
    assert!(
        matches!(
            take(&twice),
            Err(ArchiveError::Broken { .. } | ArchiveError::Member { .. })
        ),
        "{:?}",
        take(&twice)
    );
    assert_eq!(take(b"plain text"), Err(ArchiveError::Unknown));
    assert!(take(&plain[..plain.len() - 10]).is_err());
    let cut = tarred(&[("SKILL.md", tar::EntryType::Regular, SKILL)]);
    assert!(take(&cut[..cut.len() / 2]).is_err());
}

proptest! {
    #[test]
    fn no_bytes_break_it_and_what_it_takes_stays_inside(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 0..3_u8) {
        match kind {
            0 => bytes = gzip(&bytes),
            1 => { bytes.splice(0..0, *b"PK\x03\x04"); }
            _ => {}
        }
        if let Ok(tree) = take(&bytes) {
            for (path, _) in tree.iter() {
                prop_assert_eq!(path::problem(path, 16), None);
            }
        }
    }

    #[test]
    fn a_damaged_zip_never_yields_a_path_that_leads_out(at in 0..400_usize, value in any::<u8>()) {
        let mut bytes = zipped(&[("SKILL.md", SKILL), ("references/a.md", b"text of the file")]);
        let length = bytes.len();
        bytes[at % length] = value;
        if let Ok(tree) = take(&bytes) {
            for (path, _) in tree.iter() {
                prop_assert_eq!(path::problem(path, 16), None);
            }
        }
    }
}
