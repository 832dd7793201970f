//! What goes into the log, as facts by which people can tell what happened.

use std::collections::BTreeMap;

use steward_skill_provenance::Provenance;

use super::Actor;
use crate::audit::{Action, Event};
use crate::quarantine::{Item, told};
use crate::source::Resolved;
use crate::store::Install;

pub(super) fn event(action: Action, subject: &str, actor: Actor<'_>, details: BTreeMap<String, String>) -> Event {
    Event {
        action,
        subject: subject.to_owned(),
        actor: actor.user.to_owned(),
        details,
    }
}

pub(super) fn facts(resolved: &Resolved) -> BTreeMap<String, String> {
    [
        ("source", &resolved.source),
        ("reference", &resolved.reference),
        ("revision", &resolved.revision),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.clone()))
    .collect()
}

/// What the signatures said; nothing where there was none and none was required.
fn signatures(provenance: &Provenance) -> Option<(String, String)> {
    let mut told: Vec<String> = provenance.signatures.iter().map(ToString::to_string).collect();
    if provenance.required && !provenance.is_by_publisher() {
        told.push("one by its publisher is required".to_owned());
    }
    (!told.is_empty()).then(|| ("signatures".to_owned(), told.join("; ")))
}

pub(super) fn install_event(install: &Install<'_>) -> Event {
    let (item, lock) = (install.item, &install.installed.lock);
    let action = if install.before.is_some() {
        Action::Update
    } else {
        Action::Install
    };
    let mut facts = facts(&item.resolved);
    facts.insert("digest".to_owned(), lock.digest.clone());
    facts.insert("item".to_owned(), item.id.clone());
    facts.extend(signatures(&lock.provenance));
    if let Some(reason) = &lock.forced {
        facts.insert("forced".to_owned(), reason.clone());
    }
    if let Some(before) = install.before {
        facts.insert("replaces".to_owned(), before.digest.clone());
    }
    event(action, &lock.name, install.actor, facts)
}

pub(super) fn arrival_events(actor: Actor<'_>, item: &Item, digest: String) -> Vec<Event> {
    let name = &item.resolved.name;
    let mut fetched = facts(&item.resolved);
    fetched.insert("digest".to_owned(), digest);
    fetched.insert("item".to_owned(), item.id.clone());
    let mut events = vec![event(Action::Fetch, name, actor, fetched)];
    if let Some(report) = &item.report {
        let details = [
            ("verdict", report.verdict.to_string()),
            ("scan", report.id()),
            ("scanner", report.scanner.clone()),
            ("rule_set", report.rule_set.clone()),
        ];
        let details = details.into_iter().map(|(key, value)| (key.to_owned(), value));
        let details = details.chain(signatures(&item.provenance)).collect();
        events.push(event(Action::Verdict, name, actor, details));
    } else {
        let details = BTreeMap::from([("problems".to_owned(), told(&item.problems).join("; "))]);
        events.push(event(Action::Refuse, name, actor, details));
    }
    let details = BTreeMap::from([("decision".to_owned(), item.state.as_str().to_owned())]);
    events.push(event(Action::Decision, name, actor, details));
    events
}
