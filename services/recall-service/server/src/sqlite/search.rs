//! Queries over the index. Matches are offered to the ranking of the core, best first, until it has enough, so that neither
//! demotion nor a talkative conversation can starve the others (`Q-5`, `Q-6`).

#[cfg(test)]
mod tests;

use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::Error;
use steward_recall_core::message::{Message, NewMessage, ToolResult};
use steward_recall_core::search::rank::{Candidate, Ranking};
use steward_recall_core::search::{Glimpse, Hit, HitQuery, Look, RecentQuery, Snapshot, Sort, Surroundings};
use steward_recall_core::session::{Session, SessionSource};
use steward_recall_core::store::Visibility;
use steward_store::{Db, Row, ToSql, params};

use super::failure::Failure;
use super::rows::{Columns, json_names, session_columns, signed, unsigned};
use super::scan;
use super::sessions::{self, Numbered};
use crate::fts::strengths;

/// A team's file as it was at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment<'c> {
    pub(super) db: Db<'c>,
    pub(super) by: By,
}

/// Where hits are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Index,
    /// See [`scan`].
    NewestRows,
}

impl Snapshot for Moment<'_> {
    fn hits(&self, query: &HitQuery) -> Result<Vec<Hit>, Error> {
        Ok(match self.by {
            By::Index => hits(self.db, query)?,
            By::NewestRows => scan::hits(self.db, query)?,
        })
    }

    fn look(&self, team: &TeamId, looks: &[Look]) -> Result<Vec<Option<Surroundings>>, Error> {
        looks.iter().map(|one| Ok(look(self.db, team, one)?)).collect()
    }
}

/// Filters stand behind the index: its matches are looked up one by one, in order, until enough is known. `CROSS JOIN` fixes
/// that order; left to itself, the planner asks the index for every message.
///
/// What the asker has in context is left out: messages of the current session that are not compacted, and what they are
/// copies of in the session that the current one continues.
macro_rules! filtered {
    ($matches:expr, $order:literal) => {
        concat!(
            "SELECT s.id, s.root, m.seq, m.role, m.created, s.source IN (SELECT value FROM json_each(?10)) AS demoted,
                    h.strengths
             FROM (",
            $matches,
            ") h
             CROSS JOIN message m ON m.doc = h.doc
             CROSS JOIN session s ON s.number = m.session
             WHERE s.team = ?2 AND s.user = ?3 AND m.rewound = 0
                   AND s.source IN (SELECT value FROM json_each(?4))
                   AND (?5 OR m.role IN (SELECT value FROM json_each(?6)))
                   AND m.created >= ?7 AND m.created < ?8
                   AND NOT (s.id = ?9 AND m.compacted = 0)
                   AND NOT (s.id <> ?9 AND s.root = (SELECT root FROM session WHERE team = ?2 AND id = ?9)
                        AND EXISTS (SELECT 1 FROM session c CROSS JOIN message d ON d.session = c.number
                                    WHERE c.team = ?2 AND c.id = ?9 AND d.rewound = 0 AND d.compacted = 0
                                          AND d.role = m.role AND d.said = m.said AND d.tool_text = m.tool_text))",
            $order
        )
    };
}

/// All matches, each with its strengths.
macro_rules! matches {
    () => {
        "SELECT rowid AS doc, steward_strengths(message_index, ?11) AS strengths FROM message_index
         WHERE message_index MATCH ?1"
    };
}

/// The best of the newest matches. Of a word that stands in more messages than that, none says much about what is looked for.
macro_rules! best {
    ($best:literal) => {
        concat!(
            "SELECT doc, strengths FROM (",
            matches!(),
            " ORDER BY rowid DESC LIMIT 10000) ORDER BY strengths, doc DESC LIMIT ",
            $best
        )
    };
}

/// As many as nearly every question needs. `+ 0` keeps SQLite from compiling the statement anew for each number.
const BEST: &str = filtered!(best!("300"), " LIMIT ?12 + 0");
/// For questions to which the best matches are no answer: they are somebody else's, automatic ones, in context, or all of one
/// conversation.
const MORE: &str = filtered!(best!("2000"), " LIMIT ?12 + 0");
const MORE_MATCHES: usize = 2_000;
/// The same without any bound.
const ALL: &str = filtered!(
    concat!(matches!(), " ORDER BY strengths, rowid DESC LIMIT 1000000000"),
    ""
);
const NEWEST: &str = filtered!(matches!(), " ORDER BY demoted, m.created DESC, m.doc DESC");
const OLDEST: &str = filtered!(matches!(), " ORDER BY demoted, m.created, m.doc");

/// A statement for hits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) sql: &'static str,
    /// Best matches of the index that it looks at, if not all of them.
    bound: Option<usize>,
}

/// The statements for hits in this order; each where those before it have not found enough.
pub(super) const fn steps(sort: Sort) -> &'static [Step] {
    const BY_RELEVANCE: [Step; 3] = [
        Step {
            sql: BEST,
            bound: Some(300),
        },
        Step {
            sql: MORE,
            bound: Some(MORE_MATCHES),
        },
        Step { sql: ALL, bound: None },
    ];
    const BY_AGE: [Step; 1] = [Step {
        sql: NEWEST,
        bound: None,
    }];
    const BY_AGE_REVERSED: [Step; 1] = [Step {
        sql: OLDEST,
        bound: None,
    }];
    match sort {
        Sort::Relevance => &BY_RELEVANCE,
        Sort::Newest => &BY_AGE,
        Sort::Oldest => &BY_AGE_REVERSED,
    }
}

/// The best hits, one per lineage.
fn hits(db: Db<'_>, query: &HitQuery) -> Result<Vec<Hit>, Failure> {
    let asked = narrowed(db, query)?;
    let new_ranking = || Ranking::new(query.sort, query.limit, query.depth).weighing(&asked.weights);
    let mut rows = query.depth;
    for step in steps(query.sort) {
        let Some(bound) = step.bound else {
            let mut ranking = new_ranking();
            offer(db, &asked, (step.sql, None), &mut ranking)?;
            return Ok(ranking.into_hits());
        };
        if bound < rows {
            continue;
        }
        let mut ranking = new_ranking();
        let offered = offer(db, &asked, (step.sql, Some(rows)), &mut ranking)?;
        if ranking.is_settled() || (offered < rows && !has_more_matches(db, &asked, bound)?) {
            return Ok(ranking.into_hits());
        }
        rows = MORE_MATCHES;
    }
    Ok(Vec::new())
}

/// A question as it is asked of the index.
struct Asked<'q> {
    wanted: &'q HitQuery,
    matching: String,
    /// Terms that are scored.
    scored: i64,
    /// How much each of those matters.
    weights: Vec<f32>,
}

/// Counts up to a bound how many messages match an expression, and how soon they were found.
pub(super) const COUNT: &str = "SELECT count(*), max(doc) FROM (
         SELECT rowid AS doc FROM message_index WHERE message_index MATCH ? LIMIT 4096)";
/// The same bound.
const COUNTED: u64 = 4_096;

/// Of a wide question only the rarest terms.
fn narrowed<'q>(db: Db<'_>, wanted: &'q HitQuery) -> Result<Asked<'q>, Failure> {
    let alternatives = wanted.query.alternatives();
    if alternatives.is_empty() {
        return Ok(Asked {
            wanted,
            matching: wanted.query.to_match(),
            scored: i64::from(i32::MAX),
            weights: wanted.query.weights(),
        });
    }
    let newest: Option<i64> = db.value("SELECT max(doc) FROM message", ())?;
    let newest = unsigned(newest.unwrap_or(0));
    let mut estimated = Vec::with_capacity(alternatives.len());
    for alternative in &alternatives {
        let counted = db.first(COUNT, [alternative], |row| {
            Ok::<(i64, Option<i64>), Failure>((row.get(0)?, row.get(1)?))
        })?;
        let (matches, last) = counted.unwrap_or_default();
        let matches = unsigned(matches);
        // What was found so often so early is found as often later.
        estimated.push(match last.map(unsigned) {
            Some(last) if matches >= COUNTED => matches.max(matches.saturating_mul(newest) / last.max(1)),
            _ => matches,
        });
    }
    let rarest = wanted.query.rarest(&estimated);
    Ok(Asked {
        wanted,
        matching: rarest.query.to_match(),
        scored: i64::try_from(rarest.scored).unwrap_or(i64::MAX),
        weights: rarest.query.weights().into_iter().take(rarest.scored).collect(),
    })
}

/// Whether the index has more matches than a statement looks at.
fn has_more_matches(db: Db<'_>, asked: &Asked<'_>, bound: usize) -> Result<bool, Failure> {
    let bound = i64::try_from(bound).unwrap_or(i64::MAX);
    let counted: i64 = db.value(
        "SELECT count(*) FROM (SELECT 1 FROM message_index WHERE message_index MATCH ? LIMIT ? + 1)",
        params![asked.matching, bound],
    )?;
    Ok(counted > bound)
}

/// Offers matches, at most so many if that is said, until enough is known; how many.
fn offer(
    db: Db<'_>,
    asked: &Asked<'_>,
    (sql, most): (&'static str, Option<usize>),
    ranking: &mut Ranking,
) -> Result<usize, Failure> {
    let wanted = asked.wanted;
    let common = params![
        asked.matching,
        wanted.asker.team.as_str(),
        wanted.asker.user.as_str(),
        json_names(wanted.sources.iter().map(|source| source.as_str())),
        wanted.roles.is_empty(),
        json_names(wanted.roles.iter().map(|role| role.as_str())),
        wanted.after.map_or(i64::MIN, Timestamp::as_micros),
        wanted.before.map_or(i64::MAX, Timestamp::as_micros),
        wanted.asker.current.as_ref().map_or("", SessionId::as_str),
        demoted(),
        asked.scored,
    ];
    let most = most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
    let further = most.as_ref().map(|most| most as &dyn ToSql);
    let values: Vec<&dyn ToSql> = common.iter().copied().chain(further).collect();
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query(values.as_slice())?;
    let mut offered = 0;
    while let Some(row) = rows.next()? {
        offered += 1;
        let mut columns = Columns::of(row);
        let candidate = Candidate {
            session: columns.session_id()?,
            root: columns.session_id()?,
            seq: columns.number()?,
            role: columns.role()?,
            created: columns.time()?,
            demoted: columns.flag()?,
            strengths: strengths::parts(columns.bytes()?),
        };
        if ranking.offer(candidate).is_break() {
            break;
        }
    }
    Ok(offered)
}

/// Which messages are seen of a session: those around a hit, and those at both ends.
pub(super) const SEEN: &str = "
    SELECT m.seq, m.role, m.created, m.integrity, m.tool_name, m.tool_calls, m.said
    FROM (SELECT seq FROM message WHERE session = ?1 AND seq BETWEEN ?4 AND ?5 AND rewound = 0
                 AND compacted BETWEEN ?2 AND ?3
          UNION SELECT * FROM (SELECT seq FROM message WHERE session = ?1 AND rewound = 0
                 AND compacted BETWEEN ?2 AND ?3 ORDER BY seq LIMIT ?6 + 0)
          UNION SELECT * FROM (SELECT seq FROM message WHERE session = ?1 AND rewound = 0
                 AND compacted BETWEEN ?2 AND ?3 ORDER BY seq DESC LIMIT ?6 + 0)) p
    CROSS JOIN message m ON m.session = ?1 AND m.seq = p.seq
    ORDER BY m.seq";

/// Looks at one session.
fn look(db: Db<'_>, team: &TeamId, look: &Look) -> Result<Option<Surroundings>, Failure> {
    let Some(Numbered { number, session }) = sessions::summary(db, team, &look.session)? else {
        return Ok(None);
    };
    let (least, most) = match look.visibility {
        Visibility::All | Visibility::Searchable => (0, 1),
        Visibility::OutOfContext => (1, 1),
        Visibility::InContext => (0, 0),
    };
    let messages = db.all(
        SEEN,
        params![
            number,
            least,
            most,
            signed(*look.around.start()),
            signed(*look.around.end()),
            look.ends,
        ],
        |row| glimpse(row, look),
    )?;
    Ok(Some(Surroundings { session, messages }))
}

/// What is seen of a message: the beginning of its text unless it is the hit. Bytes that are no text show as signs that say so,
/// and calls that cannot be read are left out: one bad row must not hide the others.
fn glimpse(row: &Row<'_>, look: &Look) -> Result<Glimpse, Failure> {
    let mut columns = Columns::of(row);
    let (seq, role) = (columns.number()?, columns.role()?);
    let (created, integrity) = (columns.time()?, columns.integrity()?);
    let result = columns.take::<Option<String>>()?.map(|tool_name| ToolResult {
        call_id: String::new(),
        tool_name,
        is_error: false,
    });
    let tool_calls = columns.or_empty("tool_calls");
    let whole = columns.salvaged()?.unwrap_or_default();
    let cut = (seq != look.hit).then(|| whole.char_indices().nth(look.chars as usize));
    let text = match cut.flatten() {
        Some((end, _)) => whole[..end].to_owned(),
        None => whole.clone().into_owned(),
    };
    Ok(Glimpse {
        text_chars: whole.chars().count() as u64,
        message: Message {
            seq,
            body: NewMessage {
                role,
                text,
                sent_text: None,
                tool_calls,
                result,
                spans: Vec::new(),
                usage: None,
                turn: String::new(),
                native: None,
            },
            model: String::new(),
            integrity,
            rewound: false,
            compacted: false,
            replaces: None,
            created,
        },
    })
}

/// Recently active conversations, one per lineage.
pub(super) fn recent(db: Db<'_>, query: &RecentQuery) -> Result<Vec<Session>, Failure> {
    let asker = &query.asker;
    db.all(
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM session WHERE team = ?2 AND id IN (
             SELECT id FROM (
                 SELECT id, source, last_active,
                        row_number() OVER (PARTITION BY root ORDER BY source IN (SELECT value FROM json_each(?1)),
                                           last_active DESC, id DESC) AS place
                 FROM session
                 WHERE team = ?2 AND user = ?3 AND last_seq > 0 AND source IN (SELECT value FROM json_each(?4))
                       AND root <> coalesce((SELECT root FROM session WHERE team = ?2 AND id = ?5), ''))
             WHERE place = 1
             ORDER BY source IN (SELECT value FROM json_each(?1)), last_active DESC, id DESC LIMIT ?6)
         ORDER BY source IN (SELECT value FROM json_each(?1)), last_active DESC, id DESC"
        ),
        params![
            demoted(),
            asker.team.as_str(),
            asker.user.as_str(),
            json_names(SessionSource::visible().iter().map(|source| source.as_str())),
            asker.current.as_ref().map_or("", |current| current.as_str()),
            i64::try_from(query.limit).unwrap_or(i64::MAX),
        ],
        |row| Ok(Numbered::from_row(row)?.session),
    )
}

fn demoted() -> String {
    json_names(
        SessionSource::ALL
            .iter()
            .filter(|source| source.is_demoted())
            .map(|source| source.as_str()),
    )
}
