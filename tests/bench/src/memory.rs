//! `memory`: writes through memory-service, beside a flush of the same disk; snapshots, beside a select of as many rows;
//! the threat scan of 1 MiB, beside one pass over its characters.

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use steward_client::MemoryClient;
use steward_guard::Scope;
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;
use steward_testkit::hard_texts;

use crate::arguments::{Arguments, Memory};
use crate::corpus::{Language, Lexicon};
use crate::floor::Bare;
use crate::measure::Meter;
use crate::random::Random;
use crate::rig::{PERSON, Rig};

/// Entries that are kept; older ones are removed, since a book has a budget.
const KEPT: u32 = 8;
/// Scans of the text.
const SCANS: usize = 9;
const MIB: usize = 1024 * 1024;
/// Length of a text that is made to be hard.
const HARD: usize = 40 * 1024;

const FLOOR: &str = "CREATE TABLE entry (number INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT";

pub(crate) async fn run(options: &Memory, arguments: &Arguments) -> anyhow::Result<Value> {
    let folder = arguments.fresh_folder()?;
    let lexicon = Lexicon::new(arguments.seed);
    let mut random = Random::new(arguments.seed, "memory");

    let rig = Rig::new(folder.path())?;
    let deps = steward_memory::Deps { auth: rig.auth.clone() };
    let built = steward_memory::build(steward_memory::Config::default(), deps, &rig.boot).await?;
    let client = MemoryClient::new(built.local_client().with_credentials(rig.person()?));
    let entries: Vec<String> = (0..options.writes)
        .map(|number| format!("note {number} {}", lexicon.text(&mut random, Language::Mixed, 12)))
        .collect();
    let (adding, removing) = write(&client, &entries).await?;
    let mut reading = Meter::default();
    for _ in 0..options.snapshots {
        let request = pb::GetSnapshotRequest {
            user: PERSON.to_owned(),
            ..pb::GetSnapshotRequest::default()
        };
        let snapshot = reading.time(client.get_snapshot(request)).await?;
        ensure!(snapshot.text.contains("note "), "the snapshot shows no entry");
    }
    drop((client, built));
    rig.stop().await?;

    let flushing = flush(folder.path(), options.writes)?;
    let (inserting, selecting) = floor(folder.path(), &entries, options.snapshots)?;
    let (scanning, walking) = scan(&lexicon, &mut random);
    let (worst, shape) = hardest();
    Ok(json!({
        "writes": options.writes,
        "add_p50_ms": adding.wall().p50(),
        "add_p99_ms": adding.wall().p99(),
        "add_p50_cpu_ms": adding.cpu().p50(),
        "remove_p50_ms": removing.wall().p50(),
        "fsync_p50_ms": flushing.wall().p50(),
        "fsync_p99_ms": flushing.wall().p99(),
        "floor_insert_p50_ms": inserting.wall().p50(),
        "snapshot_p50_ms": reading.wall().p50(),
        "snapshot_p99_ms": reading.wall().p99(),
        "snapshot_p50_cpu_ms": reading.cpu().p50(),
        "floor_snapshot_p50_ms": selecting.wall().p50(),
        "floor_snapshot_p99_ms": selecting.wall().p99(),
        "scan_1mb_cpu_ms": scanning.cpu().p50(),
        "floor_scan_1mb_cpu_ms": walking.cpu().p50(),
        "scan_40k_worst_cpu_ms": worst,
        "scan_40k_worst_shape": shape,
    }))
}

/// Adds every entry; once there are enough, the oldest goes before the next comes.
async fn write(client: &MemoryClient, entries: &[String]) -> anyhow::Result<(Meter, Meter)> {
    let (mut adding, mut removing) = (Meter::default(), Meter::default());
    for (number, content) in (0_u32..).zip(entries) {
        if let Some(oldest) = number.checked_sub(KEPT) {
            let remove = pb::RemoveEntry {
                old_text: format!("note {oldest} "),
            };
            let request = apply(Action::Remove(remove), format!("remove-{oldest}"));
            changed(&removing.time(client.apply(request)).await?)?;
        }
        let add = pb::AddEntry {
            content: content.clone(),
        };
        let request = apply(Action::Add(add), format!("add-{number}"));
        changed(&adding.time(client.apply(request)).await?)?;
    }
    Ok((adding, removing))
}

fn apply(action: Action, request_id: String) -> pb::ApplyRequest {
    pb::ApplyRequest {
        store: format!("{PERSON}/memory/notes"),
        operations: vec![pb::Operation { action: Some(action) }],
        request_id,
        ..pb::ApplyRequest::default()
    }
}

fn changed(answer: &pb::ApplyResponse) -> anyhow::Result<()> {
    ensure!(answer.changes.len() == 1, "nothing was changed: {}", answer.tool_text);
    Ok(())
}

/// A page written and flushed, as often as an entry was added.
fn flush(folder: &Path, times: u32) -> anyhow::Result<Meter> {
    let mut file = File::create(folder.join("flush")).context("make a file to flush")?;
    let mut meter = Meter::default();
    for _ in 0..times {
        meter.time_blocking(|| {
            file.write_all(&[b'x'; 4096])?;
            file.sync_data()
        })?;
    }
    Ok(meter)
}

fn floor(folder: &Path, entries: &[String], snapshots: u32) -> anyhow::Result<(Meter, Meter)> {
    let bare = Bare::open(folder, FLOOR)?;
    let (mut inserting, mut selecting) = (Meter::default(), Meter::default());
    for entry in entries {
        inserting.time_blocking(|| bare.commit("INSERT INTO entry (content) VALUES (?)", (entry,)))?;
    }
    for _ in 0..snapshots {
        let rows = selecting.time_blocking(|| {
            let mut select = bare
                .connection()
                .prepare_cached("SELECT content FROM entry ORDER BY number DESC LIMIT ?")?;
            let rows = select.query_map((KEPT,), |row| row.get(0))?;
            rows.collect::<Result<Vec<String>, _>>()
        })?;
        ensure!(!rows.is_empty(), "the bare table is empty");
    }
    bare.close()?;
    Ok((inserting, selecting))
}

fn scan(lexicon: &Lexicon, random: &mut Random) -> (Meter, Meter) {
    let mut text = String::with_capacity(MIB + 4096);
    while text.len() < MIB {
        text.push_str(&lexicon.text(random, Language::Mixed, 40));
        text.push('\n');
    }
    text.truncate(text.floor_char_boundary(MIB));
    // The first scan builds the engine.
    black_box(steward_guard::check(&text, Scope::Strict));
    let (mut scanning, mut walking) = (Meter::default(), Meter::default());
    for _ in 0..SCANS {
        scanning.time_blocking(|| black_box(steward_guard::check(black_box(&text), Scope::Strict)));
        walking.time_blocking(|| {
            let letters = black_box(&text).chars().flat_map(char::to_lowercase);
            black_box(letters.filter(|letter| letter.is_alphabetic()).count())
        });
    }
    (scanning, walking)
}

/// The text of those that are made to be hard which takes longest, by its median, in milliseconds of CPU.
fn hardest() -> (f64, String) {
    let mut worst = (0.0, String::new());
    for (name, text) in hard_texts(HARD) {
        let mut meter = Meter::default();
        for _ in 0..SCANS {
            meter.time_blocking(|| black_box(steward_guard::check(black_box(&text), Scope::Strict)));
        }
        let took = meter.cpu().p50();
        if took > worst.0 {
            worst = (took, name);
        }
    }
    worst
}
