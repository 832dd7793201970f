//! The table of rules in the README, held to the code. The way out is another crate's, and the ways in are tested over the wire.

use steward_testkit::rules::{check_table, numbered};

#[test]
fn the_table_of_rules_names_tests_that_are_there() {
    let places = ["services/skill-registry", "services/kit/fetch", "tests/tests"];
    check_table("services/skill-registry/hub/README.md", numbered("H", 1..=8), &places);
}
