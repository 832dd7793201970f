//! The table of rules in the README, held to the code: no rule is missing, and each test that it names is there.

use steward_testkit::rules;

#[test]
fn every_rule_of_the_readme_has_its_tests() {
    let others = ["A-1", "L-6", "L-7"].map(str::to_owned);
    rules::check_table(
        "services/memory-service/README.md",
        rules::numbered("M", 1..=19).chain(others),
        &[
            "services/memory-service",
            "services/kit/guard",
            "services/agent-orchestrator",
            "tests/tests",
        ],
    );
}
