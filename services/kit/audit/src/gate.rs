//! How many denied calls are kept one by one, and what becomes of the rest: they are counted. Pure.

use std::collections::HashMap;

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Identity, Timestamp};
use steward_grpc::AuditRecord;

/// Callers that are told apart in a minute; all further ones are treated as one.
const CALLERS: usize = 1024;
const MINUTE: i64 = 60;

/// Whose calls are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    Person(TeamId, UserId),
    Service(String),
    /// Without a valid credential, or one of too many.
    Anyone,
}

impl Who {
    fn of(caller: Option<&Caller>) -> Self {
        let Some(caller) = caller else { return Self::Anyone };
        match (&caller.identity, &caller.team, &caller.user) {
            (Identity::Service { name }, ..) => Self::Service(name.clone()),
            (_, Some(team), Some(user)) => Self::Person(team.clone(), user.clone()),
            _ => Self::Anyone,
        }
    }
}

#[derive(Debug)]
struct Counter {
    kept: u32,
    /// The calls that were not kept, as one record.
    rest: Option<(AuditRecord, Timestamp, u64)>,
}

/// Lets so many calls of a caller through in a minute.
#[derive(Debug)]
pub(crate) struct Gate {
    per_minute: u32,
    minute: i64,
    counters: HashMap<Who, Counter>,
}

/// A record, its time, and for how many calls it stands.
pub(crate) type Counted = (AuditRecord, Timestamp, u64);

impl Gate {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            minute: 0,
            counters: HashMap::new(),
        }
    }

    /// Gives the record back if it is to be kept as it is; else it is counted.
    pub(crate) fn pass(&mut self, record: AuditRecord, now: Timestamp) -> Option<AuditRecord> {
        let mut who = Who::of(record.principal.as_deref());
        if self.counters.len() >= CALLERS && !self.counters.contains_key(&who) {
            who = Who::Anyone;
        }
        self.turn_to(now);
        let counter = self.counters.entry(who).or_insert(Counter { kept: 0, rest: None });
        if counter.kept < self.per_minute {
            counter.kept += 1;
            return Some(record);
        }
        counter.add(record, now);
        None
    }

    /// Counts a record for which there was no place.
    pub(crate) fn count(&mut self, record: AuditRecord, now: Timestamp) {
        let counter = self
            .counters
            .entry(Who::Anyone)
            .or_insert(Counter { kept: 0, rest: None });
        counter.add(record, now);
    }

    /// Takes out what was counted: of minutes that are over, or all of it.
    pub(crate) fn counted(&mut self, now: Timestamp, all: bool) -> Vec<Counted> {
        if !all && minute(now) == self.minute {
            return Vec::new();
        }
        let counted = self
            .counters
            .values_mut()
            .filter_map(|counter| counter.rest.take())
            .collect();
        self.turn_to(now);
        counted
    }

    /// In a new minute everyone starts anew. What was counted stays until it is taken out, which bounds the callers, too.
    fn turn_to(&mut self, now: Timestamp) {
        if minute(now) == self.minute {
            return;
        }
        self.minute = minute(now);
        self.counters.retain(|_, counter| counter.rest.is_some());
        for counter in self.counters.values_mut() {
            counter.kept = 0;
        }
    }
}

impl Counter {
    fn add(&mut self, record: AuditRecord, now: Timestamp) {
        self.rest = Some(match self.rest.take() {
            None => (record, now, 1),
            Some((first, _, count)) => (common(first, &record), now, count.saturating_add(1)),
        });
    }
}

fn minute(now: Timestamp) -> i64 {
    now.as_secs().div_euclid(MINUTE)
}

/// What two records agree in.
fn common(mut one: AuditRecord, other: &AuditRecord) -> AuditRecord {
    if one.method != other.method {
        "_OTHER".clone_into(&mut one.method);
    }
    if one.principal.as_ref().map(|caller| &caller.token_id) != other.principal.as_ref().map(|caller| &caller.token_id)
    {
        one.principal = one.principal.filter(|mine| {
            other.principal.as_ref().is_some_and(|theirs| {
                mine.identity == theirs.identity && mine.team == theirs.team && mine.user == theirs.user
            })
        });
    }
    if one.resources != other.resources {
        one.resources.clear();
    }
    if one.request_id != other.request_id {
        one.request_id = "".into();
    }
    if host(&one.peer) != host(&other.peer) {
        one.peer.clear();
    } else if one.peer != other.peer {
        one.peer.truncate(host(&other.peer).len());
    }
    if one.reason != other.reason {
        one.reason = None;
    }
    one
}

/// An address without its port, which is another one for each connection.
fn host(peer: &str) -> &str {
    peer.rsplit_once(':').map_or(peer, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{denied, person};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn so_many_a_minute_are_kept_and_the_rest_is_one_record_that_says_how_many() {
        let mut gate = Gate::new(2);
        let passed = (0..10).filter(|_| gate.pass(denied(None), at(5)).is_some()).count();
        assert_eq!(passed, 2);
        assert!(gate.counted(at(59), false).is_empty(), "the minute is not over");
        let counted = gate.counted(at(60), false);
        assert_eq!(counted.len(), 1);
        assert_eq!((counted[0].1, counted[0].2), (at(5), 8));
        assert!(gate.pass(denied(None), at(61)).is_some(), "a new minute");
        assert!(gate.counted(at(200), true).is_empty());
    }

    #[test]
    fn one_caller_does_not_use_up_what_another_may() {
        let mut gate = Gate::new(1);
        for _ in 0..3 {
            gate.pass(denied(None), at(0));
        }
        assert!(gate.pass(denied(Some(person("red", "ann"))), at(0)).is_some());
        assert!(gate.pass(denied(Some(person("red", "ann"))), at(0)).is_none());
        assert!(gate.pass(denied(Some(person("blue", "ann"))), at(0)).is_some());
        let mut counts: Vec<_> = gate
            .counted(at(0), true)
            .into_iter()
            .map(|(_, _, count)| count)
            .collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2]);
    }

    #[test]
    fn however_many_callers_there_are_they_are_bounded_in_memory_and_in_records() {
        let mut gate = Gate::new(1);
        for number in 0..3_000 {
            gate.pass(denied(Some(person("red", &format!("user-{number}")))), at(0));
            gate.pass(denied(Some(person("red", &format!("user-{number}")))), at(0));
        }
        assert!(gate.counters.len() <= CALLERS + 1);
        let counted = gate.counted(at(0), true);
        assert!(counted.len() <= CALLERS + 1);
        let all: u64 = counted.iter().map(|(_, _, count)| count).sum();
        // Each caller's first was kept, and the one of those that are treated as one.
        assert_eq!(all, 6_000 - u64::try_from(CALLERS).unwrap() - 1);
    }

    #[test]
    fn a_record_of_several_calls_says_what_they_agree_in() {
        let mut gate = Gate::new(1);
        let mut other = denied(None);
        other.method = "steward.skill.v1.SkillService/PinSkill".to_owned();
        other.peer = "10.0.0.1:50".to_owned();
        gate.pass(denied(None), at(0));
        gate.pass(denied(None), at(0));
        gate.pass(other, at(1));
        let (record, time, count) = gate.counted(at(1), true).remove(0);
        assert_eq!(
            (record.method.as_str(), record.peer.as_str(), count),
            ("_OTHER", "10.0.0.1", 2)
        );
        assert_eq!(record.reason.as_deref(), Some("CREDENTIAL_MISSING"));
        assert_eq!(time, at(1));
    }
}
