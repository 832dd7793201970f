use super::*;
use crate::report::Severity;
use crate::split::Place;

/// The line in the first place where the rule applies.
fn placed(line: &str, place: Place) -> Tree {
    match place {
        Place::Header if line.starts_with("---\n") => skill(line),
        Place::Header | Place::Prose => skill(line),
        Place::Comment if line.starts_with("<!--") => skill(line),
        Place::Comment => skill(&format!("<!-- {line} -->")),
        Place::Code => skill(&format!("```\n{line}\n```")),
        Place::Script => {
            let mut tree = skill("See scripts.");
            tree.insert("scripts/x.rb", File::plain(line.as_bytes().to_vec()));
            tree
        }
        Place::Data => {
            let mut tree = skill("See data.");
            tree.insert("package.json", File::plain(line.as_bytes().to_vec()));
            tree
        }
    }
}

fn severity_of(rule: &str, line: &str, places: &[Place]) -> Option<Severity> {
    let report = scanner().scan(&placed(line, places[0]), &Options::default());
    report
        .findings
        .iter()
        .find(|finding| finding.rule == rule)
        .map(|finding| finding.severity)
}

#[test]
fn each_rule_hits_what_it_says_and_misses_what_it_says() {
    let mut wrong = Vec::new();
    for rule in &rules().rules {
        assert!(
            rule.hits.len() + rule.misses.len() >= 2,
            "{} has no tests",
            rule.words.id
        );
        for line in &rule.hits {
            if severity_of(&rule.words.id, line, &rule.places) != Some(rule.words.severity) {
                wrong.push(format!("{} does not hit {line:?}", rule.words.id));
            }
        }
        for line in &rule.misses {
            let found = severity_of(&rule.words.id, line, &rule.places);
            if found.is_some_and(|severity| severity > Severity::Low) {
                wrong.push(format!("{} hits {line:?}", rule.words.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_and_check_carries_its_tags_and_a_way_out() {
    let all = rules()
        .rules
        .iter()
        .map(|rule| &rule.words)
        .chain(rules().checks.values());
    for words in all {
        assert!(!words.fix.is_empty() && !words.title.ends_with('.'), "{}", words.id);
        assert!(
            words.ast.iter().all(|tag| tag.starts_with("AST") && tag.len() == 5),
            "{}",
            words.id
        );
        assert!(
            words
                .ave
                .iter()
                .all(|tag| tag.starts_with("AVE-2026-") && tag.len() == 14),
            "{}",
            words.id
        );
        assert!(!words.ast.is_empty() && !words.ave.is_empty(), "{}", words.id);
    }
}
