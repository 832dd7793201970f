use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::config::Secret;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    memory: Memory,
    model: Model,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Memory {
    listen: String,
    max_entries: u32,
    enabled: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            max_entries: 100,
            enabled: true,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Model {
    key: Option<Secret<String>>,
    routes: Vec<String>,
    headers: BTreeMap<String, String>,
}

impl Validate for Config {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.memory.max_entries == 0 {
            problems.push(Problem::new("max_entries", "must be at least 1").within("memory"));
        }
        problems
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn later_layers_win_and_every_setting_knows_its_origin() {
    let file = file("[memory]\nlisten = \"file\"\nmax_entries = 7\nenabled = false\n");
    let layers = Layers {
        file: Some(file.path().to_owned()),
        environment: pairs(&[
            ("STEWARD__MEMORY__MAX_ENTRIES", "8"),
            ("STEWARD__MODEL__KEY", "123456"),
            ("HOME", "/"),
        ]),
        flags: pairs(&[("memory.listen", "flag")]),
    };
    let loaded = load::<Config>(&layers).unwrap();
    assert_eq!(loaded.config.memory.listen, "flag");
    assert_eq!(loaded.config.memory.max_entries, 8);
    assert!(!loaded.config.memory.enabled);
    assert_eq!(loaded.config.model.key.as_ref().unwrap().reveal(), "123456");
    let dump = loaded.dump();
    assert!(dump.contains("memory.listen = \"flag\"  # flag"), "{dump}");
    assert!(
        dump.contains("memory.max_entries = 8  # STEWARD__MEMORY__MAX_ENTRIES"),
        "{dump}"
    );
    assert!(
        dump.contains(&format!("memory.enabled = false  # {}", file.path().display())),
        "{dump}"
    );
    assert!(dump.contains("model.routes = []  # default"), "{dump}");
    assert!(!dump.contains("123456"), "{dump}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let file = file("[memory]\nmax_entries = 0\ncolour = \"red\"\n[memmory]\nlisten = \"x\"\n");
    let layers = Layers {
        file: Some(file.path().to_owned()),
        environment: pairs(&[("STEWARD__MEMORY__ENABLED", "perhaps")]),
        flags: Vec::new(),
    };
    let mut paths: Vec<_> = load::<Config>(&layers)
        .unwrap_err()
        .into_iter()
        .map(|problem| problem.path)
        .collect();
    paths.sort();
    assert_eq!(
        paths,
        ["memmory", "memory.colour", "memory.enabled", "memory.max_entries"]
    );
}

#[test]
fn lists_and_tables_can_come_from_the_environment() {
    let layers = Layers {
        environment: pairs(&[
            ("STEWARD__MODEL__ROUTES", "[\"a\", \"b\"]"),
            ("STEWARD__MODEL__HEADERS", "{ trace = \"on\" }"),
        ]),
        ..Layers::default()
    };
    let config = load::<Config>(&layers).unwrap().config;
    assert_eq!(config.model.routes, ["a", "b"]);
    assert_eq!(config.model.headers["trace"], "on");
}

#[test]
fn a_missing_or_broken_file_is_a_problem_and_not_a_default() {
    let missing = Layers {
        file: Some("/nowhere/steward.toml".into()),
        ..Layers::default()
    };
    assert!(
        load::<Config>(&missing).unwrap_err()[0]
            .message
            .contains("/nowhere/steward.toml")
    );
    let broken = file("[memory");
    let layers = Layers {
        file: Some(broken.path().to_owned()),
        ..Layers::default()
    };
    assert!(load::<Config>(&layers).unwrap_err()[0].message.contains("not TOML"));
}

#[test]
fn without_any_layer_the_defaults_hold() {
    let loaded = load::<Config>(&Layers::default()).unwrap();
    assert_eq!(loaded.config.memory.max_entries, 100);
    assert!(loaded.settings.iter().all(|setting| setting.origin == "default"));
}

#[test]
fn no_problem_shows_a_value_that_could_be_a_key() {
    let broken = file("[model]\nkey = s3cr3t\n");
    let wrong = file("[model]\nkey = [\"s3cr3t\"]\n[memory]\nmax_entries = \"s3cr3t\"\nenabled = \"s3cr3t\"\n");
    for (file, environment) in [
        (Some(broken.path()), pairs(&[])),
        (Some(wrong.path()), pairs(&[])),
        (None, pairs(&[("STEWARD__MODEL", "s3cr3t")])),
        (None, pairs(&[("STEWARD__MODEL", "{ key = s3cr3t }")])),
        (None, pairs(&[("STEWARD__MODEL__ROUTES", "s3cr3t")])),
        (None, pairs(&[("STEWARD__MODEL__KEY__X", "s3cr3t")])),
    ] {
        let layers = Layers {
            file: file.map(Path::to_owned),
            environment,
            flags: Vec::new(),
        };
        let problems = load::<Config>(&layers).unwrap_err();
        assert!(!crate::config::list(&problems).contains("s3cr3t"), "{problems:?}");
    }
    let problem = load::<Config>(&Layers {
        file: Some(broken.path().to_owned()),
        ..Layers::default()
    })
    .unwrap_err()
    .remove(0);
    assert!(problem.message.contains("line 2 is not TOML"), "{problem}");
}

#[test]
fn a_variable_that_names_nothing_is_a_problem_and_changes_nothing() {
    for name in [
        "STEWARD__",
        "STEWARD____LISTEN",
        "STEWARD__MEMORY__",
        "STEWARD__MEMORY____LISTEN",
        "STEWARD__MEMMORY__LISTEN",
        "STEWARD__MEMORY__LISTENN",
        "STEWARD__MODEL__KEY__DEEPER",
    ] {
        let layers = Layers {
            environment: pairs(&[(name, "x")]),
            ..Layers::default()
        };
        let problems = load::<Config>(&layers).unwrap_err();
        assert_eq!(problems.len(), 1, "{name}: {problems:?}");
        let text = problems[0].to_string();
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn an_address_in_brackets_stays_text() {
    let layers = Layers {
        environment: pairs(&[("STEWARD__MEMORY__LISTEN", "[::1]:7400")]),
        ..Layers::default()
    };
    assert_eq!(load::<Config>(&layers).unwrap().config.memory.listen, "[::1]:7400");
}

#[test]
fn a_dump_shows_no_password_of_an_address() {
    let shown = |listen: &str| {
        let layers = Layers {
            flags: pairs(&[("memory.listen", listen)]),
            ..Layers::default()
        };
        let settings = load::<Config>(&layers).unwrap().settings;
        let found = settings.into_iter().find(|setting| setting.path == "memory.listen");
        found.unwrap().value
    };
    assert_eq!(
        shown("https://ann:s3cr3t@host:1/a@b"),
        "\"https://<hidden>@host:1/a@b\""
    );
    assert_eq!(shown("https://host/a@b"), "\"https://host/a@b\"");
    assert_eq!(shown("ann@host"), "\"ann@host\"");
}

#[test]
fn a_variable_for_one_setting_wins_over_one_for_its_section_in_any_order() {
    let mut environment = pairs(&[
        ("STEWARD__MEMORY__LISTEN", "one"),
        ("STEWARD__MEMORY", "{ listen = \"section\", max_entries = 3 }"),
    ]);
    for _ in 0..2 {
        environment.reverse();
        let layers = Layers {
            environment: environment.clone(),
            ..Layers::default()
        };
        let memory = load::<Config>(&layers).unwrap().config.memory;
        assert_eq!((memory.listen.as_str(), memory.max_entries), ("one", 3));
    }
}
