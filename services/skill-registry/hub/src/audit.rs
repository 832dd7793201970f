//! The hub's memory of what it did (`H-7`): entries that only grow, each bound to the one before, and a tree over all of
//! them by which one entry can be shown to be among them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steward_base::Timestamp;
use steward_base::hash::sha256_parts;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Bytes came into quarantine.
    Fetch,
    /// A fetch or an archive was refused.
    Refuse,
    /// A scan gave a verdict.
    Verdict,
    /// The policy or a person decided.
    Decision,
    /// A skill was installed.
    Install,
    /// An installed skill was replaced by a newer revision.
    Update,
    /// An installed skill was removed.
    Remove,
    /// A single finding was accepted.
    Accept,
    /// A tree was yanked or revoked.
    Withdraw,
    /// A withdrawal ended, or was overruled.
    Reinstate,
    /// A skill is given out to others.
    Publish,
    /// It no longer is.
    Unpublish,
}

impl Action {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Refuse => "refuse",
            Self::Verdict => "verdict",
            Self::Decision => "decision",
            Self::Install => "install",
            Self::Update => "update",
            Self::Remove => "remove",
            Self::Accept => "accept",
            Self::Withdraw => "withdraw",
            Self::Reinstate => "reinstate",
            Self::Publish => "publish",
            Self::Unpublish => "unpublish",
        }
    }
}

/// What is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// To which skill or quarantine item.
    pub subject: String,
    /// Who did it.
    pub actor: String,
    /// Facts: source, revision, digest, verdict, reason.
    pub details: BTreeMap<String, String>,
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From one, without gaps.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
    /// What happened.
    pub action: Action,
    /// To which skill or quarantine item.
    pub subject: String,
    /// Who did it.
    pub actor: String,
    /// Facts.
    pub details: BTreeMap<String, String>,
    /// The hash of the entry before; 64 zeros for the first.
    pub previous: String,
    /// The hash of this entry, which covers all fields above.
    pub hash: String,
}

/// The hash before the first entry.
pub fn beginning() -> String {
    "0".repeat(64)
}

impl Entry {
    /// The entry that follows `last`.
    pub fn after(last: Option<&Self>, event: Event, at: Timestamp) -> Self {
        let mut entry = Self {
            sequence: last.map_or(0, |last| last.sequence) + 1,
            at,
            action: event.action,
            subject: event.subject,
            actor: event.actor,
            details: event.details,
            previous: last.map_or_else(beginning, |last| last.hash.clone()),
            hash: String::new(),
        };
        entry.hash = entry.computed();
        entry
    }

    fn computed(&self) -> String {
        let (sequence, at) = (self.sequence.to_be_bytes(), self.at.as_micros().to_be_bytes());
        let fixed: [&[u8]; 6] = [
            &sequence,
            &at,
            self.action.as_str().as_bytes(),
            self.subject.as_bytes(),
            self.actor.as_bytes(),
            self.previous.as_bytes(),
        ];
        let details = self
            .details
            .iter()
            .flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]);
        sha256_parts(fixed.into_iter().chain(details))
    }
}

/// Checks a whole chain; the sequence of the first entry that is not what it was, or nothing.
pub fn first_broken(entries: &[Entry]) -> Option<u64> {
    let mut previous = beginning();
    for (index, entry) in entries.iter().enumerate() {
        let expected = index as u64 + 1;
        if entry.sequence != expected || entry.previous != previous || entry.hash != entry.computed() {
            return Some(expected);
        }
        previous.clone_from(&entry.hash);
    }
    None
}

type Node = [u8; 32];

fn leaf(hash: &str) -> Node {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(hash.as_bytes());
    hasher.finalize().into()
}

fn joined(left: &Node, right: &Node) -> Node {
    let mut hasher = Sha256::new();
    hasher.update([1]);
    hasher.update(left);
    hasher.update(right);
    hasher.finalize().into()
}

/// The largest power of two below `count`.
fn split(count: usize) -> usize {
    count.next_power_of_two() / 2
}

fn root_of(leaves: &[Node]) -> Node {
    match leaves {
        [] => Sha256::digest([]).into(),
        [only] => *only,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            joined(&root_of(left), &root_of(right))
        }
    }
}

fn path_of(leaves: &[Node], index: usize) -> Vec<Node> {
    if leaves.len() <= 1 {
        return Vec::new();
    }
    let middle = split(leaves.len());
    let (left, right) = leaves.split_at(middle);
    let (mut path, other) = if index < middle {
        (path_of(left, index), root_of(right))
    } else {
        (path_of(right, index - middle), root_of(left))
    };
    path.push(other);
    path
}

/// The root of the tree over all entries (RFC 6962), as hexadecimal text. Published, it fixes the log as it stands.
pub fn root(hashes: &[String]) -> String {
    let leaves: Vec<Node> = hashes.iter().map(|hash| leaf(hash)).collect();
    hex::encode(root_of(&leaves))
}

/// What shows that the entry at `index` is in the log; nothing if there is none.
pub fn inclusion(hashes: &[String], index: usize) -> Option<Vec<String>> {
    let leaves: Vec<Node> = hashes.iter().map(|hash| leaf(hash)).collect();
    (index < leaves.len()).then(|| path_of(&leaves, index).iter().map(hex::encode).collect())
}

/// The root that a node at `index` of `count` leaves leads to.
fn climb(count: usize, index: usize, node: Node, path: &[Node]) -> Option<Node> {
    let Some((last, rest)) = path.split_last() else {
        return (count == 1).then_some(node);
    };
    if count < 2 {
        return None;
    }
    let middle = split(count);
    if index < middle {
        Some(joined(&climb(middle, index, node, rest)?, last))
    } else {
        Some(joined(last, &climb(count - middle, index - middle, node, rest)?))
    }
}

/// Whether `hash` is the entry at `index` of a log of `count` entries with this root.
pub fn includes(root: &str, count: usize, index: usize, hash: &str, path: &[String]) -> bool {
    let mut nodes = Vec::with_capacity(path.len());
    for node in path {
        match hex::decode(node).ok().and_then(|bytes| Node::try_from(bytes).ok()) {
            Some(node) => nodes.push(node),
            None => return false,
        }
    }
    index < count && climb(count, index, leaf(hash), &nodes).is_some_and(|found| hex::encode(found) == root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(count: usize) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for index in 0..count {
            let event = Event {
                action: Action::Install,
                subject: format!("skill-{index}"),
                actor: "users/ada".to_owned(),
                details: BTreeMap::from([("digest".to_owned(), "d".repeat(64))]),
            };
            let next = Entry::after(
                entries.last(),
                event,
                Timestamp::from_secs(1_000 + i64::try_from(index).expect("few entries")),
            );
            entries.push(next);
        }
        entries
    }

    #[test]
    fn h_7_a_changed_removed_or_moved_entry_breaks_the_chain() {
        let entries = log(5);
        assert_eq!(first_broken(&entries), None);
        let mut changed = entries.clone();
        changed[2].actor = "users/eve".to_owned();
        assert_eq!(first_broken(&changed), Some(3));
        let mut rehashed = changed;
        rehashed[2].hash = rehashed[2].computed();
        assert_eq!(first_broken(&rehashed), Some(4));
        let mut removed = entries.clone();
        removed.remove(1);
        assert_eq!(first_broken(&removed), Some(2));
        let mut swapped = entries;
        swapped.swap(0, 1);
        assert_eq!(first_broken(&swapped), Some(1));
    }

    #[test]
    fn h_7_every_entry_can_be_shown_to_be_in_the_log_and_no_other() {
        for count in 1..20 {
            let hashes: Vec<String> = log(count).into_iter().map(|entry| entry.hash).collect();
            let root = root(&hashes);
            for index in 0..count {
                let path = inclusion(&hashes, index).expect("in the log");
                assert!(includes(&root, count, index, &hashes[index], &path));
                assert!(!includes(&root, count, index, &"0".repeat(64), &path));
                assert!(!includes(&root, count, (index + 1) % (count + 1), &hashes[index], &path) || count == 0);
            }
            assert_eq!(inclusion(&hashes, count), None);
        }
    }
}
