//! The rules of the house, as sentences that fail: who may depend on whom, how long a file may be, where wire types and
//! SQL may stand. `services/ARCHITECTURE.md` and `services/adr/0001-crate-cut.md` say why.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Longest hand-written file, in lines.
const FILE_HARD: usize = 600;
/// Longest `src/main.rs`, in lines.
const MAIN: usize = 40;
/// Files that may be longer, and why. Empty is the goal.
const LONGER: &[(&str, &str)] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap()
}

/// Direct normal dependencies, by package name.
fn dependencies(package: &Package) -> BTreeSet<String> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal)
        .map(|dependency| dependency.name.clone())
        .collect()
}

fn folder(package: &Package) -> String {
    let manifest = package.manifest_path.parent().unwrap().as_std_path().to_owned();
    manifest.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

fn is_core(folder: &str) -> bool {
    folder.starts_with("services/") && folder.ends_with("/core")
}

fn is_server(folder: &str) -> bool {
    folder.starts_with("services/") && folder.ends_with("/server")
}

#[test]
fn a_core_depends_on_base_and_guard_and_on_no_transport_or_database() {
    for package in metadata().packages.iter().filter(|package| is_core(&folder(package))) {
        for dependency in dependencies(package) {
            if dependency.starts_with("steward-") {
                let runs_the_agent =
                    ["steward-orchestrator-core", "steward-curator-core"].contains(&package.name.as_str());
                let permitted: &[&str] = if runs_the_agent {
                    &["steward-agent", "steward-model", "steward-base", "steward-guard"]
                } else if package.name.as_str() == "steward-skill-core" {
                    // Its gate for skills that agents write asks the scanner (ADR 0011).
                    &["steward-skill-scanner", "steward-base", "steward-guard"]
                } else {
                    &["steward-base", "steward-guard"]
                };
                assert!(
                    permitted.contains(&dependency.as_str()),
                    "{} depends on {dependency}: a core may use base and guard, and the two that run the agent its kernel \
                     and the neutral types of a model request (ADR 0001)",
                    package.name
                );
            }
            for banned in ["tonic", "prost", "sqlx", "reqwest", "axum", "hyper", "libsqlite3-sys"] {
                assert!(
                    !dependency.starts_with(banned),
                    "{} depends on {dependency}: a core knows no transport and no database (ADR 0001)",
                    package.name
                );
            }
        }
    }
}

#[test]
fn a_server_depends_on_its_own_core_and_on_no_other_service() {
    let metadata = metadata();
    let services: Vec<(String, String)> = metadata
        .packages
        .iter()
        .map(|package| (package.name.to_string(), folder(package)))
        .filter(|(_, folder)| is_core(folder) || is_server(folder))
        .collect();
    for package in metadata.packages.iter().filter(|package| is_server(&folder(package))) {
        let own = folder(package).trim_end_matches("/server").to_owned();
        for dependency in dependencies(package) {
            if let Some((name, place)) = services.iter().find(|(name, _)| *name == dependency) {
                assert!(
                    place.starts_with(&own),
                    "{} depends on {name}: services reach each other through steward-client only (ADR 0001, 0004)",
                    package.name
                );
            }
        }
    }
}

#[test]
fn the_scanner_is_pure_and_the_hub_knows_no_transport_and_no_database() {
    let metadata = metadata();
    for (place, ours, banned) in [
        (
            "services/skill-registry/scanner",
            &["steward-base", "steward-guard"][..],
            &["tokio", "reqwest", "tonic", "prost", "sqlx", "axum"][..],
        ),
        (
            "services/skill-registry/provenance",
            &["steward-base", "steward-skill-scanner"],
            &["tokio", "reqwest", "tonic", "prost", "sqlx", "axum"],
        ),
        (
            "services/skill-registry/hub",
            &[
                "steward-base",
                "steward-fetch",
                "steward-skill-provenance",
                "steward-skill-scanner",
            ],
            &["reqwest", "tonic", "prost", "sqlx", "axum"],
        ),
        (
            "services/recall-service/exchange",
            &["steward-base"],
            &["tokio", "reqwest", "tonic", "prost", "sqlx", "axum"],
        ),
    ] {
        let package = metadata
            .packages
            .iter()
            .find(|package| folder(package) == place)
            .unwrap();
        for dependency in dependencies(package) {
            assert!(
                !dependency.starts_with("steward-") || ours.contains(&dependency.as_str()),
                "{place} depends on {dependency} (ADR 0011)"
            );
            assert!(
                !banned.iter().any(|banned| dependency.starts_with(banned)),
                "{place} depends on {dependency} (ADR 0011)"
            );
        }
    }
}

#[test]
fn the_kit_depends_on_no_service_and_base_on_nothing_of_ours() {
    for package in &metadata().packages {
        let place = folder(package);
        let dependencies = dependencies(package);
        if place == "services/kit/base" {
            let ours: Vec<_> = dependencies.iter().filter(|name| name.starts_with("steward")).collect();
            assert!(ours.is_empty(), "steward-base depends on {ours:?}");
            for banned in ["tokio", "tonic", "sqlx", "reqwest"] {
                assert!(!dependencies.contains(banned), "steward-base depends on {banned}");
            }
        }
        if place.starts_with("services/kit/") {
            for service in ["recall", "memory", "skill", "orchestrator", "curator"] {
                let reached = dependencies
                    .iter()
                    .any(|name| name.starts_with(&format!("steward-{service}")));
                assert!(
                    !reached,
                    "{} depends on {service}: the kit knows no service (ADR 0001)",
                    package.name
                );
            }
        }
    }
}

#[test]
fn every_member_takes_the_workspace_lints() {
    for package in &metadata().packages {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} does not take the workspace lints",
            package.name
        );
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if !["target", "gen", "node_modules", "data"].contains(&name.as_str()) && !name.starts_with('.') {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(&root(), &mut found);
    assert!(found.len() > 50, "the source walk found nearly nothing");
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, text)
        })
        .collect()
}

#[test]
fn files_stay_within_their_budget() {
    let mut over = Vec::new();
    for (name, text) in all_sources() {
        let lines = text.lines().count();
        let limit = if name.ends_with("/src/main.rs") {
            MAIN
        } else {
            FILE_HARD
        };
        let excepted = LONGER.iter().any(|(file, reason)| *file == name && !reason.is_empty());
        if lines > limit && !excepted {
            over.push(format!("{name} has {lines} lines, the limit is {limit}: split it"));
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

#[test]
fn module_files_stand_beside_their_folders_and_say_what_they_are() {
    let mut wrong = Vec::new();
    for (name, text) in all_sources() {
        // Cargo's own layout for code that several integration tests share.
        let shared_by_tests = name.contains("/tests/") && name.ends_with("/mod.rs");
        if name.ends_with("/mod.rs") && !shared_by_tests {
            wrong.push(format!("{name}: no mod.rs; put the module's file beside its folder"));
        }
        let is_test_module = name.ends_with("/tests.rs") || name.contains("/tests/") && name.contains("/src/");
        if !text.starts_with("//!") && !is_test_module {
            wrong.push(format!("{name}: begins without saying what it is (`//!`)"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wire_types_stay_at_the_edge_of_a_server() {
    let mut wrong = Vec::new();
    for (name, text) in all_sources() {
        let in_server = name.starts_with("services/") && name.contains("/server/src/");
        let at_edge = [
            "/grpc/",
            "/grpc.rs",
            "/peers/",
            "/peers.rs",
            "/lib.rs",
            "/build.rs",
            "/background",
        ]
        .iter()
        .any(|place| name.contains(place))
            || name.contains("/tests");
        if in_server && !at_edge && text.contains("steward_proto::") {
            wrong.push(format!(
                "{name} uses wire types: convert in grpc/convert.rs or peers/ (STYLE.md)"
            ));
        }
        if in_server && !name.contains("/sqlite") && !name.contains("/tests") && text.contains("sqlx::query") {
            wrong.push(format!("{name} holds SQL: it belongs in sqlite/ (STYLE.md)"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_stands_in_the_tokenizer_shim_only() {
    for (name, text) in all_sources() {
        let shim = name.starts_with("services/recall-service/server/src/fts");
        let uses = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or_default();
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe extern")
        });
        let this_file = name == "tests/tests/architecture.rs";
        assert!(
            shim || this_file || !uses,
            "{name} uses unsafe code outside recall's FTS5 shim"
        );
    }
}
