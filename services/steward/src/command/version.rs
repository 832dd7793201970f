//! `steward version`: the program's version and the versions of the contract that it speaks.

use std::collections::BTreeSet;
use std::process::ExitCode;

use steward_cli::Output;
use steward_proto::methods::METHODS;

pub(super) fn run(json: bool) -> ExitCode {
    let mut output = Output::new(json);
    let version = env!("CARGO_PKG_VERSION");
    let packages = packages();
    if json {
        output.line(&serde_json::json!({"version": version, "packages": packages}).to_string());
    } else {
        output.line(&format!("steward {version}"));
        output.aside(&format!(
            "speaks {}",
            packages.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    ExitCode::SUCCESS
}

/// `steward.memory.v1` and its like.
fn packages() -> BTreeSet<&'static str> {
    METHODS
        .iter()
        .filter_map(|method| method.path.trim_start_matches('/').split_once('/'))
        .filter_map(|(service, _)| service.rsplit_once('.'))
        .map(|(package, _)| package)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_are_those_of_the_contract() {
        assert!(packages().contains("steward.memory.v1"));
        assert!(packages().iter().all(|package| package.starts_with("steward.")));
    }
}
