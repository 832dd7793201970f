//! Every bench runs at a tiny size, through its command line, and prints the figures that it promises. How long anything
//! takes decides nothing here.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail the test with a sentence"
)]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steward-bench"))
        .args(arguments)
        .output()
        .expect("the bench starts")
}

/// Runs a bench and gives its one JSON object.
fn figures(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--json"]].concat());
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{arguments:?} failed: {stderr}");
    assert_eq!(stdout.lines().count(), 1, "one object on one line: {stdout}");
    let figures: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(figures["bench"], arguments[0]);
    assert!(figures["cpus"].as_u64().unwrap() >= 1);
    assert_eq!(figures["profile"], "debug");
    figures
}

/// All of these are numbers above zero.
fn assert_positive(figures: &Value, fields: &[&str]) {
    for field in fields {
        let figure = figures[*field].as_f64();
        assert!(figure.is_some_and(|figure| figure > 0.0), "{field} in {figures}");
    }
}

#[test]
fn a_turns_figures_leave_the_models_time_out() {
    let figures = figures(&[
        "turn",
        "--sessions",
        "3",
        "--turns",
        "2",
        "--model-ms",
        "50",
        "--pause-ms",
        "10",
    ]);
    assert_eq!(
        (figures["sessions"].as_u64(), figures["turns"].as_u64()),
        (Some(3), Some(6))
    );
    let fields = [
        "p50_ms",
        "p99_ms",
        "floor_p50_ms",
        "floor_p99_ms",
        "first_text_p50_ms",
        "turns_per_s",
        "cpu_ms_per_turn",
    ];
    assert_positive(&figures, &fields);
}

#[test]
fn a_start_is_that_of_a_real_process() {
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_steward-bench"));
    let binary = folder.with_file_name("examples").join("steward-under-bench");
    let figures = figures(&["start", "--runs", "1", "--binary", binary.to_str().unwrap()]);
    let fields = ["ready_ms", "first_ready_ms", "floor_ms", "idle_rss_mib", "binary_mb"];
    assert_positive(&figures, &fields);
}

#[test]
fn a_start_of_nothing_is_refused_with_a_sentence() {
    let output = bench(&["start", "--binary", "/nowhere/steward"]);
    assert!(!output.status.success() && output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("there is no /nowhere/steward"), "{stderr}");
}

#[test]
fn appends_are_counted_against_bare_inserts() {
    let figures = figures(&["append", "--messages", "60"]);
    assert_eq!(figures["messages"], 60);
    let fields = [
        "per_cpu_second",
        "floor_per_cpu_second",
        "longest_stall_ms",
        "floor_longest_stall_ms",
        "bytes_per_message",
        "floor_bytes_per_message",
        "text_bytes_per_message",
    ];
    assert_positive(&figures, &fields);
}

#[test]
fn recall_finds_all_there_is_in_every_class() {
    let figures = figures(&["recall", "--messages", "400", "--queries", "8"]);
    assert_eq!(figures["messages"], 400);
    assert_positive(&figures, &["load_per_cpu_second", "bytes_per_message"]);
    for class in ["en1", "en3", "cjk3", "cjk2", "cjk1"] {
        let class = &figures["classes"][class];
        assert_eq!(class["queries"], 8, "{figures}");
        assert_positive(class, &["p50_cpu_ms", "p99_cpu_ms", "floor_p50_cpu_ms", "expected"]);
        assert_eq!(class["found"], class["expected"], "{figures}");
    }
}

#[test]
fn a_dumped_history_is_searched_with_its_own_queries() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    let lines = [
        r#"{"type":"session","id":"a","source":"cli","parent":null,"started_at":1}"#,
        r#"{"type":"message","session_id":"a","seq":0,"role":"user","content":"roll the 部署完成 rollout back","tool_name":null,"tool_calls":null,"ts":2}"#,
        r#"{"type":"session","id":"b","source":"subagent","parent":null,"started_at":3}"#,
        r#"{"type":"message","session_id":"b","seq":0,"role":"user","content":"rollout 完成","tool_name":null,"tool_calls":null,"ts":4}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let queries = [
        r#"{"class":"en1","query":"rollout","truth_sessions":1}"#,
        r#"{"class":"cjk2","query":"完成","truth_sessions":1}"#,
    ];
    std::fs::write(folder.path().join("history.jsonl.queries.jsonl"), queries.join("\n")).unwrap();
    let figures = figures(&["recall", "--corpus", file.to_str().unwrap()]);
    assert_eq!(
        (figures["messages"].as_u64(), figures["sessions"].as_u64()),
        (Some(2), Some(2))
    );
    for (class, queries) in [("en1", 1), ("cjk2", 1), ("en3", 0)] {
        let class = &figures["classes"][class];
        let seen = (
            class["queries"].as_u64(),
            class["found"].as_u64(),
            class["expected"].as_u64(),
        );
        assert_eq!(seen, (Some(queries), Some(queries), Some(queries)), "{figures}");
    }
}

#[test]
fn many_teams_are_searched_with_few_files_open() {
    let figures = figures(&[
        "teams",
        "--teams",
        "4",
        "--messages",
        "50",
        "--searches",
        "6",
        "--open",
        "2",
    ]);
    assert_eq!(
        (figures["teams"].as_u64(), figures["messages"].as_u64()),
        (Some(4), Some(200))
    );
    let fields = [
        "rss_mib",
        "rss_peak_mib",
        "one_p99_cpu_ms",
        "open_p99_cpu_ms",
        "all_p99_cpu_ms",
        "all_p99_ratio",
    ];
    assert_positive(&figures, &fields);
}

#[test]
fn every_job_is_done_once_beside_bare_commits() {
    let figures = figures(&["queue", "--jobs", "12", "--workers", "3"]);
    assert_eq!(figures["jobs"], 12);
    let fields = ["jobs_per_s", "floor_jobs_per_s", "cpu_ms_per_job", "enqueue_p50_ms"];
    assert_positive(&figures, &fields);
}

#[test]
fn calls_are_counted_alone_and_together() {
    let figures = figures(&["rpc", "--calls", "30", "--callers", "4"]);
    let fields = [
        "rps",
        "floor_rps",
        "p50_ms",
        "p99_ms",
        "floor_p50_ms",
        "cpu_ms_per_call",
    ];
    assert_positive(&figures, &fields);
}

#[test]
fn memory_is_measured_beside_a_flush() {
    let figures = figures(&["memory", "--writes", "12", "--snapshots", "5"]);
    let fields = [
        "add_p50_ms",
        "fsync_p50_ms",
        "floor_insert_p50_ms",
        "snapshot_p99_ms",
        "floor_snapshot_p99_ms",
        "scan_1mb_cpu_ms",
        "floor_scan_1mb_cpu_ms",
        "scan_40k_worst_cpu_ms",
    ];
    assert_positive(&figures, &fields);
}

#[test]
fn a_library_is_shown_anew_after_a_change_and_its_skills_are_opened() {
    let figures = figures(&["index", "--skills", "12", "--runs", "2", "--views", "15"]);
    assert_eq!(figures["skills"], 12);
    let fields = [
        "cold_ms",
        "first_ms",
        "warm_ms",
        "view_p99_ms",
        "floor_cold_ms",
        "floor_warm_ms",
        "floor_view_p99_ms",
    ];
    assert_positive(&figures, &fields);
}

#[test]
fn people_get_a_table() {
    let output = bench(&["queue", "--jobs", "4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !text.starts_with('{'), "{text}");
    assert!(text.contains("floor_jobs_per_s"), "{text}");
}

#[test]
fn questions_find_their_conversations_more_often_than_plain_search_does() {
    let sets = concat!(env!("CARGO_MANIFEST_DIR"), "/sets");
    let figures = figures(&["quality", sets]);
    let garden = &figures["sets"]["garden"];
    assert_eq!(garden["questions"], 12);
    let at_least = |field: &str, least: f64| {
        let figure = garden[field].as_f64().expect("a figure");
        assert!(figure >= least, "{field} is {figure}");
    };
    at_least("session_recall_1", 0.9);
    at_least("session_recall_5", 0.99);
    at_least("message_recall_1", 0.6);
    at_least("mrr", 0.9);
    // Two friends who know one another, whose names stand in every message, asked about in other words than they used.
    for (name, first) in [("friends", 0.5), ("friends-zh", 0.5), ("assistant", 0.7)] {
        let of_set = &figures["sets"][name];
        let figure = |field: &str| of_set[field].as_f64().expect("a figure");
        assert!(figure("session_recall_1") >= first, "{name}: {of_set}");
        for field in ["session_recall_1", "session_recall_3", "session_recall_5", "mrr"] {
            assert!(
                figure(field) > figure(&format!("floor_{field}")),
                "{name}, {field}: {of_set}"
            );
        }
    }
}
