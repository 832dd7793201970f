//! Queries over the index. Matches are offered to the ranking of the core, best first, until it has enough, so that neither
//! demotion nor a talkative conversation can starve the others (`Q-5`, `Q-6`).

#[cfg(test)]
mod tests;

use futures::TryStreamExt;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Row, Sqlite, SqliteConnection};
use steward_base::names::{SessionId, TeamId};
use steward_base::{Integrity, Timestamp, error_chain};
use steward_recall_core::Error;
use steward_recall_core::message::{Message, NewMessage, ToolResult};
use steward_recall_core::search::rank::{Candidate, Ranking};
use steward_recall_core::search::{Glimpse, Hit, HitQuery, Look, RecentQuery, Sort, Surroundings};
use steward_recall_core::session::{Session, SessionSource};
use steward_recall_core::store::Visibility;

use super::failure::Failure;
use super::rows::{self, json_names, signed, unsigned};
use crate::fts::strengths;

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

/// In one row, since each row wakes the caller up, which costs more than to look it up. `+ 0` keeps SQLite from compiling the
/// statement anew for each number.
macro_rules! in_one_row {
    ($best:literal) => {
        concat!(
            "SELECT json_group_array(json_array(id, root, seq, role, created, demoted, hex(strengths))) FROM (",
            filtered!(best!($best), " LIMIT ?12 + 0"),
            ")"
        )
    };
}

/// As many as nearly every question needs.
const BEST: &str = in_one_row!("300");
/// For questions to which the best matches are no answer: they are somebody else's, automatic ones, in context, or all of one
/// conversation.
const MORE: &str = in_one_row!("2000");
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
pub(super) async fn hits(connection: &mut SqliteConnection, query: &HitQuery) -> Result<Vec<Hit>, Failure> {
    let asked = narrowed(connection, query).await?;
    let new_ranking = || Ranking::new(query.sort, query.limit, query.depth).weighing(&asked.weights);
    let mut ranking = new_ranking();
    let mut rows = query.depth;
    for step in steps(query.sort) {
        let Some(bound) = step.bound else {
            ranking = new_ranking();
            offer_each(connection, &asked, step.sql, &mut ranking).await?;
            break;
        };
        if bound < rows {
            continue;
        }
        ranking = new_ranking();
        let offered = offer_best(connection, &asked, (step.sql, rows), &mut ranking).await?;
        if ranking.is_settled() || (offered < rows && !has_more_matches(connection, &asked, bound).await?) {
            break;
        }
        rows = MORE_MATCHES;
    }
    Ok(ranking.into_hits())
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

/// Counts up to a bound how many messages match each of some expressions, and how soon they were found.
pub(super) const COUNTS: &str = "SELECT json_group_array(json(found)) FROM (
         SELECT (SELECT json_array(count(*), max(doc)) FROM (
                     SELECT rowid AS doc FROM message_index WHERE message_index MATCH j.value LIMIT 4096)) AS found
         FROM json_each(?) j ORDER BY j.key)";
/// The same bound.
const COUNTED: u64 = 4_096;

/// Of a wide question only the rarest terms.
async fn narrowed<'q>(connection: &mut SqliteConnection, wanted: &'q HitQuery) -> Result<Asked<'q>, Failure> {
    let alternatives = wanted.query.alternatives();
    if alternatives.is_empty() {
        return Ok(Asked {
            wanted,
            matching: wanted.query.to_match(),
            scored: i64::from(i32::MAX),
            weights: wanted.query.weights(),
        });
    }
    let counted: String = sqlx::query_scalar(COUNTS)
        .bind(json_names(alternatives.iter().map(String::as_str)))
        .fetch_one(&mut *connection)
        .await?;
    let counted: Vec<(u64, Option<u64>)> = serde_json::from_str(&counted)?;
    let newest: Option<i64> = sqlx::query_scalar("SELECT max(doc) FROM message")
        .fetch_one(connection)
        .await?;
    let newest = unsigned(newest.unwrap_or(0));
    // What was found so often so early is found as often later.
    let estimated = counted.into_iter().map(|(matches, last)| match last {
        Some(last) if matches >= COUNTED => matches.max(matches.saturating_mul(newest) / last.max(1)),
        _ => matches,
    });
    let rarest = wanted.query.rarest(&estimated.collect::<Vec<_>>());
    Ok(Asked {
        wanted,
        matching: rarest.query.to_match(),
        scored: i64::try_from(rarest.scored).unwrap_or(i64::MAX),
        weights: rarest.query.weights().into_iter().take(rarest.scored).collect(),
    })
}

/// Whether the index has more matches than a statement looks at.
async fn has_more_matches(connection: &mut SqliteConnection, asked: &Asked<'_>, bound: usize) -> Result<bool, Failure> {
    let bound = i64::try_from(bound).unwrap_or(i64::MAX);
    let counted: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT 1 FROM message_index WHERE message_index MATCH ? LIMIT ? + 1)",
    )
    .bind(&asked.matching)
    .bind(bound)
    .fetch_one(connection)
    .await?;
    Ok(counted > bound)
}

/// Offers the best matches and says how many there were.
async fn offer_best(
    connection: &mut SqliteConnection,
    asked: &Asked<'_>,
    (sql, rows): (&'static str, usize),
    ranking: &mut Ranking,
) -> Result<usize, Failure> {
    type Found = (String, String, i64, String, i64, i64, String);
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let row = bound_to(sql, asked).bind(rows).fetch_one(connection).await?;
    let found: Vec<Found> = serde_json::from_str(row.try_get(0)?)?;
    let offered = found.len();
    for (session, root, seq, role, created, demoted, strengths) in found {
        let candidate = Candidate {
            session: session_id(&session)?,
            root: session_id(&root)?,
            seq: unsigned(seq),
            role: rows::role(&role)?,
            created: Timestamp::from_micros(created),
            demoted: demoted != 0,
            strengths: strengths::parts(&unhex(&strengths)),
        };
        if ranking.offer(candidate).is_break() {
            break;
        }
    }
    Ok(offered)
}

/// Offers one match after the other until enough is known.
async fn offer_each(
    connection: &mut SqliteConnection,
    asked: &Asked<'_>,
    sql: &'static str,
    ranking: &mut Ranking,
) -> Result<(), Failure> {
    let mut found = bound_to(sql, asked).fetch(connection);
    while let Some(row) = found.try_next().await? {
        let candidate = Candidate {
            session: session_id(row.try_get(0)?)?,
            root: session_id(row.try_get(1)?)?,
            seq: unsigned(row.try_get(2)?),
            role: rows::role(row.try_get(3)?)?,
            created: Timestamp::from_micros(row.try_get(4)?),
            demoted: row.try_get(5)?,
            strengths: strengths::parts(row.try_get(6)?),
        };
        if ranking.offer(candidate).is_break() {
            break;
        }
    }
    Ok(())
}

/// A statement with what all of them are told.
fn bound_to<'q>(sql: &'static str, question: &'q Asked<'_>) -> Query<'q, Sqlite, SqliteArguments> {
    let wanted = &question.wanted;
    let asker = &wanted.asker;
    sqlx::query(sql)
        .bind(&question.matching)
        .bind(asker.team.as_str())
        .bind(asker.user.as_str())
        .bind(json_names(wanted.sources.iter().map(|source| source.as_str())))
        .bind(wanted.roles.is_empty())
        .bind(json_names(wanted.roles.iter().map(|role| role.as_str())))
        .bind(wanted.after.map_or(i64::MIN, Timestamp::as_micros))
        .bind(wanted.before.map_or(i64::MAX, Timestamp::as_micros))
        .bind(asker.current.as_ref().map_or("", SessionId::as_str))
        .bind(demoted())
        .bind(question.scored)
}

/// The bytes of hexadecimal digits.
fn unhex(digits: &str) -> Vec<u8> {
    let value = |digit: u8| {
        char::from(digit)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    let (pairs, _) = digits.as_bytes().as_chunks::<2>();
    pairs
        .iter()
        .map(|[high, low]| value(*high).unwrap_or(0) << 4 | value(*low).unwrap_or(0))
        .collect()
}

/// The sessions that are looked at, each with the messages that are seen of it in one value: the text cut unless it is the
/// hit's, and nothing that is not shown. One statement, hence all as it was at one moment.
const LOOK: &str = "
    WITH look (place, id, least, most, first, last, hit) AS MATERIALIZED (
        SELECT key, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?2))
    SELECT s.*, l.place,
           (SELECT json_group_array(json_array(m.seq, m.role, m.created, m.integrity, m.tool_name, m.tool_calls,
                       iif(m.seq = l.hit OR octet_length(m.said) <= 16384, m.said, substr(m.said, 1, ?3)),
                       CASE WHEN octet_length(m.said) <= 16384 THEN 0
                            WHEN instr(m.said, char(0)) THEN octet_length(m.said) ELSE length(m.said) END))
            FROM (SELECT seq FROM message WHERE session = s.number AND seq BETWEEN l.first AND l.last AND rewound = 0
                         AND compacted BETWEEN l.least AND l.most
                  UNION SELECT * FROM (SELECT seq FROM message WHERE session = s.number AND rewound = 0
                         AND compacted BETWEEN l.least AND l.most ORDER BY seq LIMIT ?4 + 0)
                  UNION SELECT * FROM (SELECT seq FROM message WHERE session = s.number AND rewound = 0
                         AND compacted BETWEEN l.least AND l.most ORDER BY seq DESC LIMIT ?4 + 0)) p
            CROSS JOIN message m ON m.session = s.number AND m.seq = p.seq) AS seen
    FROM look l CROSS JOIN session s ON s.team = ?1 AND s.id = l.id";

/// Looks at sessions.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    team: &TeamId,
    looks: &[Look],
) -> Result<Vec<Option<Surroundings>>, Failure> {
    if looks.is_empty() {
        return Ok(Vec::new());
    }
    let asked = looks.iter().map(|look| {
        let (from, to) = match look.visibility {
            Visibility::All | Visibility::Searchable => (0, 1),
            Visibility::OutOfContext => (1, 1),
            Visibility::InContext => (0, 0),
        };
        let (first, last) = (signed(*look.around.start()), signed(*look.around.end()));
        serde_json::json!([look.session.as_str(), from, to, first, last, signed(look.hit)])
    });
    let found = sqlx::query(LOOK)
        .bind(team.as_str())
        .bind(asked.collect::<serde_json::Value>().to_string())
        .bind(looks.iter().map(|look| look.chars).max())
        .bind(looks.iter().map(|look| look.ends).max())
        .fetch_all(connection)
        .await?;
    let mut seen = vec![None; looks.len()];
    for row in &found {
        let place: i64 = row.try_get("place")?;
        let surroundings = Surroundings {
            session: rows::session(row)?,
            messages: glimpses(row.try_get("seen")?)?,
        };
        if let Some(seen) = usize::try_from(place).ok().and_then(|place| seen.get_mut(place)) {
            *seen = Some(surroundings);
        }
    }
    Ok(seen)
}

/// What was seen of messages, in ascending order. Bytes that are no text show as signs that say so, and calls that cannot be read
/// are left out: one bad row must not hide the others.
fn glimpses(seen: &[u8]) -> Result<Vec<Glimpse>, Failure> {
    type Seen = (i64, String, i64, u8, Option<String>, String, String, i64);
    let seen: Vec<Seen> = serde_json::from_str(&String::from_utf8_lossy(seen))?;
    let mut glimpses = Vec::with_capacity(seen.len());
    for (seq, role, created, integrity, tool_name, calls, text, chars) in seen {
        let result = tool_name.map(|tool_name| ToolResult {
            call_id: String::new(),
            tool_name,
            is_error: false,
        });
        let message = Message {
            seq: unsigned(seq),
            body: NewMessage {
                role: rows::role(&role)?,
                tool_calls: serde_json::from_str(&calls).unwrap_or_else(|error| {
                    tracing::error!(
                        seq,
                        error = error_chain(&error),
                        "the calls of a message cannot be read"
                    );
                    Vec::new()
                }),
                result,
                text,
                sent_text: None,
                spans: Vec::new(),
                usage: None,
                turn: String::new(),
                native: None,
            },
            model: String::new(),
            integrity: Integrity::from_level(integrity)
                .ok_or_else(|| Error::damaged(format!("{integrity} is no integrity")))?,
            rewound: false,
            compacted: false,
            replaces: None,
            created: Timestamp::from_micros(created),
        };
        // Short texts are counted here. SQLite counts up to the first NUL only.
        let counted = message.body.text.chars().count() as u64;
        glimpses.push(Glimpse {
            text_chars: unsigned(chars).max(counted),
            message,
        });
    }
    glimpses.sort_by_key(|glimpse| glimpse.message.seq);
    Ok(glimpses)
}

/// Recently active conversations, one per lineage.
pub(super) async fn recent(connection: &mut SqliteConnection, query: &RecentQuery) -> Result<Vec<Session>, Failure> {
    let asker = &query.asker;
    let found = sqlx::query(
        "SELECT * FROM session WHERE team = ?2 AND id IN (
             SELECT id FROM (
                 SELECT id, source, last_active,
                        row_number() OVER (PARTITION BY root ORDER BY source IN (SELECT value FROM json_each(?1)),
                                           last_active DESC, id DESC) AS place
                 FROM session
                 WHERE team = ?2 AND user = ?3 AND last_seq > 0 AND source IN (SELECT value FROM json_each(?4))
                       AND root <> coalesce((SELECT root FROM session WHERE team = ?2 AND id = ?5), ''))
             WHERE place = 1
             ORDER BY source IN (SELECT value FROM json_each(?1)), last_active DESC, id DESC LIMIT ?6)
         ORDER BY source IN (SELECT value FROM json_each(?1)), last_active DESC, id DESC",
    )
    .bind(demoted())
    .bind(asker.team.as_str())
    .bind(asker.user.as_str())
    .bind(json_names(
        SessionSource::visible().iter().map(|source| source.as_str()),
    ))
    .bind(asker.current.as_ref().map_or("", SessionId::as_str))
    .bind(i64::try_from(query.limit).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
    found.iter().map(rows::session).collect()
}

fn demoted() -> String {
    json_names(
        SessionSource::ALL
            .iter()
            .filter(|source| source.is_demoted())
            .map(|source| source.as_str()),
    )
}

fn session_id(text: &str) -> Result<SessionId, Failure> {
    SessionId::parse(text).map_err(|error| Error::damaged(error).into())
}
