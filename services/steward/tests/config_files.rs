//! The files in `deploy/config` are made from the code. After a change of a setting:
//! `cargo test -p steward --test config_files -- --ignored`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::PathBuf;

use steward::config::Config;
use steward::example;
use steward_runtime::config::{Layers, load};

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../deploy/config", name]
        .iter()
        .collect()
}

fn generated() -> [(&'static str, String); 2] {
    let schema = serde_json::to_string_pretty(&example::schema()).unwrap() + "\n";
    [("example.toml", example::toml()), ("schema.json", schema)]
}

#[test]
fn the_files_in_deploy_are_those_of_the_code() {
    for (name, text) in generated() {
        let kept = std::fs::read_to_string(file(name)).unwrap_or_default();
        assert!(
            kept == text,
            "deploy/config/{name} is stale; run `cargo test -p steward --test config_files -- --ignored`"
        );
    }
}

#[test]
#[ignore = "writes deploy/config"]
fn regenerate() {
    for (name, text) in generated() {
        std::fs::write(file(name), text).unwrap();
    }
}

#[test]
fn the_example_loads_and_gives_the_defaults() {
    let folder = steward_testkit::TempDir::new("example");
    let path = folder.join("example.toml");
    std::fs::write(&path, example::toml()).unwrap();
    let layers = Layers {
        file: Some(path),
        ..Layers::default()
    };
    let loaded = load::<Config>(&layers).unwrap();
    let value = |config: &Config| serde_json::to_value(config).unwrap();
    assert_eq!(value(&loaded.config), value(&Config::default()));
}

#[test]
fn every_setting_is_in_the_example_and_is_explained() {
    let text = example::toml();
    let lines: Vec<_> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let setting = line.strip_prefix("# ").unwrap_or(line);
        let is_setting = setting.split_once(" =").is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
        });
        if is_setting || line.starts_with('[') {
            assert!(lines[index - 1].starts_with('#'), "{line} has no comment");
        }
    }
    for name in [
        "listen",
        "base_url",
        "notes_chars",
        "open_teams",
        "reviewers",
        "sample_ratio",
    ] {
        assert!(text.contains(&format!("{name} =")), "{name} is missing");
    }
}
