//! The table of rules in the README, held to the code: no rule of the library is missing, and each test that it names is there.

use steward_testkit::rules;

#[test]
fn every_rule_of_the_readme_has_its_tests() {
    let others = ["L-6", "L-7"].map(str::to_owned);
    rules::check_table(
        "services/skill-registry/README.md",
        rules::numbered("S", 1..=21).chain(others),
        &[
            "services/skill-registry",
            "services/kit/tools",
            "services/agent-orchestrator",
            "tests/tests",
        ],
    );
}
