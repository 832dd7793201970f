//! Queries over the index. Matches are offered to the ranking of the core, best first, until it has enough, so that neither
//! demotion nor a talkative conversation can starve the others (`Q-5`, `Q-6`).

use futures::TryStreamExt;
use sqlx::{Row, SqliteConnection};
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::Error;
use steward_recall_core::search::rank::{Candidate, Ranking};
use steward_recall_core::search::{Glimpse, Hit, HitQuery, Look, RecentQuery, Sort, Surroundings};
use steward_recall_core::session::{Session, SessionSource};
use steward_recall_core::store::Visibility;

use super::failure::Failure;
use super::rows::{self, json_names, signed, unsigned};
use super::sessions::Numbered;
use crate::fts::strengths;

/// Filters stand behind the index: its matches are looked up one by one, in order, until enough is known. `CROSS JOIN` fixes
/// that order; left to itself, the planner asks the index for every message.
///
/// What the asker has in context is left out: messages of the current session that are not compacted, and what they are
/// copies of in the session that the current one continues.
macro_rules! filtered {
    ($matches:literal, $order:literal) => {
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

/// The best matches of the index, as many as nearly every question needs.
const BEST: &str = filtered!(
    "SELECT rowid AS doc, steward_strengths(message_index) AS strengths FROM message_index
     WHERE message_index MATCH ?1 ORDER BY 2, rowid DESC LIMIT 1000",
    ""
);
/// The same without a bound, for the few questions to which the best matches are no answer: all of them are somebody
/// else's, or automatic ones, or in context.
const ALL: &str = filtered!(
    "SELECT rowid AS doc, steward_strengths(message_index) AS strengths FROM message_index
     WHERE message_index MATCH ?1 ORDER BY 2, rowid DESC LIMIT 1000000000",
    ""
);
const MATCHES: usize = 1_000;
const NEWEST: &str = filtered!(
    "SELECT rowid AS doc, steward_strengths(message_index) AS strengths FROM message_index WHERE message_index MATCH ?1",
    " ORDER BY demoted, m.created DESC, m.doc DESC"
);
const OLDEST: &str = filtered!(
    "SELECT rowid AS doc, steward_strengths(message_index) AS strengths FROM message_index WHERE message_index MATCH ?1",
    " ORDER BY demoted, m.created, m.doc"
);

/// The statements for hits in this order; the second where the first has not found enough.
pub(super) const fn hits_sql(sort: Sort) -> (&'static str, Option<&'static str>) {
    match sort {
        Sort::Relevance => (BEST, Some(ALL)),
        Sort::Newest => (NEWEST, None),
        Sort::Oldest => (OLDEST, None),
    }
}

/// The best hits, one per lineage.
pub(super) async fn hits(connection: &mut SqliteConnection, query: &HitQuery) -> Result<Vec<Hit>, Failure> {
    let (first, further) = hits_sql(query.sort);
    let mut ranking = offered(connection, query, first).await?;
    if let Some(further) = further
        && !ranking.is_settled()
        && has_more_matches(connection, query).await?
    {
        ranking = offered(connection, query, further).await?;
    }
    Ok(ranking.into_hits())
}

/// Whether the index has more matches than the first statement looks at.
async fn has_more_matches(connection: &mut SqliteConnection, query: &HitQuery) -> Result<bool, Failure> {
    let counted: i64 =
        sqlx::query_scalar("SELECT count(*) FROM (SELECT 1 FROM message_index WHERE message_index MATCH ? LIMIT 1001)")
            .bind(query.query.to_match())
            .fetch_one(connection)
            .await?;
    Ok(usize::try_from(counted).unwrap_or(usize::MAX) > MATCHES)
}

async fn offered(connection: &mut SqliteConnection, query: &HitQuery, sql: &'static str) -> Result<Ranking, Failure> {
    let asker = &query.asker;
    let mut found = sqlx::query(sql)
        .bind(query.query.to_match())
        .bind(asker.team.as_str())
        .bind(asker.user.as_str())
        .bind(json_names(query.sources.iter().map(|source| source.as_str())))
        .bind(query.roles.is_empty())
        .bind(json_names(query.roles.iter().map(|role| role.as_str())))
        .bind(query.after.map_or(i64::MIN, Timestamp::as_micros))
        .bind(query.before.map_or(i64::MAX, Timestamp::as_micros))
        .bind(asker.current.as_ref().map_or("", SessionId::as_str))
        .bind(demoted())
        .fetch(connection);
    let mut ranking = Ranking::new(query.sort, query.limit, query.depth);
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
    Ok(ranking)
}

/// Columns of a message for whoever looks at it: the text cut unless it is the hit's, and nothing that is not shown.
const LOOK: &str = "
    WITH picked (seq) AS (
        SELECT seq FROM message
        WHERE session = ?1 AND seq BETWEEN ?4 AND ?5 AND rewound = 0 AND compacted BETWEEN ?2 AND ?3
        UNION SELECT * FROM (SELECT seq FROM message
            WHERE session = ?1 AND rewound = 0 AND compacted BETWEEN ?2 AND ?3 ORDER BY seq LIMIT ?6)
        UNION SELECT * FROM (SELECT seq FROM message
            WHERE session = ?1 AND rewound = 0 AND compacted BETWEEN ?2 AND ?3 ORDER BY seq DESC LIMIT ?6)
    )
    SELECT m.seq, m.role, m.rewound, m.compacted, m.created, m.tool_call_id, m.tool_name, m.is_error, m.usage_input,
           m.usage_cached_input, m.usage_cache_write, m.usage_output, m.model, m.integrity, m.turn,
           iif(m.seq = ?7 OR octet_length(m.said) <= 16384, m.said, substr(m.said, 1, ?8)) AS said,
           CASE WHEN octet_length(m.said) <= 16384 THEN 0 WHEN instr(m.said, char(0)) THEN octet_length(m.said)
                ELSE length(m.said) END AS chars, NULL AS sent, '[]' AS spans,
           m.tool_calls, NULL AS native_provider, NULL AS native_model, NULL AS native_blocks
    FROM picked p CROSS JOIN message m ON m.session = ?1 AND m.seq = p.seq
    ORDER BY m.seq";

/// Looks at sessions; the connection is in a transaction.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    team: &TeamId,
    looks: &[Look],
) -> Result<Vec<Option<Surroundings>>, Failure> {
    let sessions = sqlx::query("SELECT * FROM session WHERE team = ? AND id IN (SELECT value FROM json_each(?))")
        .bind(team.as_str())
        .bind(json_names(looks.iter().map(|look| look.session.as_str())))
        .fetch_all(&mut *connection)
        .await?;
    let sessions: Vec<Numbered> = sessions.iter().map(Numbered::from_row).collect::<Result<_, _>>()?;
    let mut seen = Vec::with_capacity(looks.len());
    for look in looks {
        let found = sessions.iter().find(|found| found.session.id == look.session);
        seen.push(match found {
            Some(found) => Some(Surroundings {
                session: found.session.clone(),
                messages: look_at(connection, found.number, look).await?,
            }),
            None => None,
        });
    }
    Ok(seen)
}

async fn look_at(connection: &mut SqliteConnection, session: i64, look: &Look) -> Result<Vec<Glimpse>, Failure> {
    let (least_compacted, most_compacted) = match look.visibility {
        Visibility::All | Visibility::Searchable => (0, 1),
        Visibility::OutOfContext => (1, 1),
        Visibility::InContext => (0, 0),
    };
    let found = sqlx::query(LOOK)
        .bind(session)
        .bind(least_compacted)
        .bind(most_compacted)
        .bind(signed(*look.around.start()))
        .bind(signed(*look.around.end()))
        .bind(look.ends)
        .bind(signed(look.hit))
        .bind(look.chars)
        .fetch_all(connection)
        .await?;
    let glimpse = |row| {
        let message = rows::message(row)?;
        // Short texts are counted here. SQLite counts up to the first NUL only.
        let seen = message.body.text.chars().count() as u64;
        Ok(Glimpse {
            text_chars: unsigned(row.try_get("chars")?).max(seen),
            message,
        })
    };
    found.iter().map(glimpse).collect()
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
