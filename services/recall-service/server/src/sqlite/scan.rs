//! Search without an index, for a team whose index is damaged and cannot be made anew right now: the newest messages are read
//! one after the other and compared by the core, as the index would.
//!
//! It is bounded, so that it may miss what is older; whoever asks is told that the answer is incomplete. What it reads are the
//! rows, which are whole where only the index is not: damage in them is an error here as anywhere.

use steward_base::Timestamp;
use steward_recall_core::search::rank::{Candidate, Ranking};
use steward_recall_core::search::{Hit, HitQuery};
use steward_recall_core::session::SessionSource;
use steward_recall_core::store::memory::{candidate, order};
use steward_store::{Db, params};

use super::failure::Failure;
use super::rows::{self, Columns, json_names};

/// Messages that are looked at, of whoever they are.
const MOST: i64 = 10_000;
/// Messages of one statement.
const STEP: i64 = 500;

/// The columns of a message, then those of its session: what can be found of the messages `?1..=?2`, with the filters of a search. Of a long one the beginning is compared.
const FOUND: &str =
    "SELECT m.seq, m.role, substr(m.said, 1, 65536), NULL, m.tool_calls, m.tool_call_id, m.tool_name, m.is_error, '[]',
         NULL, NULL, NULL, NULL, m.turn, NULL, NULL, NULL, m.model, m.integrity, m.rewound, m.compacted, m.created, m.place,
         m.replaces_to, s.id, s.root, s.source IN (SELECT value FROM json_each(?10))
     FROM message m CROSS JOIN session s ON s.number = m.session
     WHERE m.doc BETWEEN ?1 AND ?2 AND s.team = ?3 AND s.user = ?4 AND m.rewound = 0
           AND s.source IN (SELECT value FROM json_each(?5))
           AND (?6 OR m.role IN (SELECT value FROM json_each(?7)))
           AND m.created >= ?8 AND m.created < ?9
           AND NOT (s.id = ?11 AND m.compacted = 0)
           AND NOT (s.id <> ?11 AND s.root = (SELECT root FROM session WHERE team = ?3 AND id = ?11)
                AND EXISTS (SELECT 1 FROM session c CROSS JOIN message d ON d.session = c.number
                            WHERE c.team = ?3 AND c.id = ?11 AND d.rewound = 0 AND d.compacted = 0
                                  AND d.role = m.role AND d.said = m.said AND d.tool_text = m.tool_text))";

/// The hits among the newest messages.
pub(super) fn hits(db: Db<'_>, query: &HitQuery) -> Result<Vec<Hit>, Failure> {
    let last: Option<i64> = db.value("SELECT max(doc) FROM message", ())?;
    let mut found = Vec::new();
    let mut to = last.unwrap_or(0);
    let oldest = (to - MOST).max(0);
    while to > oldest {
        let from = (to - STEP).max(oldest) + 1;
        found.extend(step(db, query, (from, to))?.into_iter().flatten());
        to = from - 1;
    }
    found.sort_by(|one, two| order(one, two, query.sort));
    let mut ranking = Ranking::new(query.sort, query.limit, query.depth);
    for candidate in found {
        if ranking.offer(candidate).is_break() {
            break;
        }
    }
    Ok(ranking.into_hits())
}

fn step(db: Db<'_>, query: &HitQuery, (from, to): (i64, i64)) -> Result<Vec<Option<Candidate>>, Failure> {
    let asker = &query.asker;
    let demoted = SessionSource::ALL.iter().filter(|source| source.is_demoted());
    db.all(
        FOUND,
        params![
            from,
            to,
            asker.team.as_str(),
            asker.user.as_str(),
            json_names(query.sources.iter().map(|source| source.as_str())),
            query.roles.is_empty(),
            json_names(query.roles.iter().map(|role| role.as_str())),
            query.after.map_or(i64::MIN, Timestamp::as_micros),
            query.before.map_or(i64::MAX, Timestamp::as_micros),
            json_names(demoted.map(|source| source.as_str())),
            asker.current.as_ref().map_or("", |current| current.as_str()),
        ],
        |row| {
            let mut columns = Columns::of(row);
            let message = rows::message(&mut columns)?;
            let (session, root) = (columns.session_id()?, columns.session_id()?);
            Ok(candidate((&session, &root, columns.flag()?), &message, &query.query))
        },
    )
}
