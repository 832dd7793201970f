//! The tables of rules in the services' READMEs, held to the code. Where a rule is carried out by several services, its tests
//! may stand in any of them.

use steward_testkit::rules::{check_table, numbered};

#[test]
fn the_tables_of_rules_name_tests_that_are_there() {
    let everywhere = ["services", "tests/tests"];
    let recall = numbered("Q", 1..=11).chain(numbered("Z", 4..=4));
    check_table("services/recall-service/README.md", recall, &everywhere);
    // Merging (C-5 to C-9) and quotas are not built, and the tables say so.
    let curation = numbered("C", 1..=4).chain(numbered("C", 10..=11));
    check_table("services/curator-worker/README.md", curation, &everywhere);
    let access = numbered("A", 1..=3).chain(numbered("A", 5..=5));
    let turns = numbered("T", 1..=11).chain(numbered("P", 1..=9)).chain(access);
    check_table("services/agent-orchestrator/README.md", turns, &everywhere);
}
