//! Queries over the index. Filters stand inside the statement, before any limit, and every match is offered to the fold,
//! so that neither demotion nor a talkative conversation can starve the others (`Q-5`, `Q-6`).

use futures::TryStreamExt;
use sqlx::{Row, SqliteConnection};
use steward_base::Timestamp;
use steward_base::names::SessionId;
use steward_recall_core::Error;
use steward_recall_core::search::{Fold, Hit, HitQuery, RecentQuery, Sort};
use steward_recall_core::session::{Session, SessionSource};

use super::failure::Failure;
use super::rows::{self, json_names, unsigned};
use super::sessions::session_summaries;

/// `bm25` is smaller for better matches; words that were said weigh more than those of tools. `CROSS JOIN` fixes the order:
/// the index is asked once and its matches are looked up. Left to itself, the planner asks the index for every message.
///
/// What the asker has in context is left out: messages of the current session that are not compacted, and what they are
/// copies of in the session that the current one continues.
macro_rules! ordered_hits {
    ($order:literal) => {
        concat!(
            "SELECT m.session, s.root, m.seq, -bm25(message_index, 1.0, 0.4) AS score
             FROM message_index
             CROSS JOIN message m ON m.doc = message_index.rowid
             CROSS JOIN session s ON s.team = m.team AND s.id = m.session
             WHERE message_index MATCH ?1 AND s.team = ?2 AND s.user = ?3 AND m.rewound = 0
                   AND s.source IN (SELECT value FROM json_each(?4))
                   AND (?5 OR m.role IN (SELECT value FROM json_each(?6)))
                   AND m.created >= ?7 AND m.created < ?8
                   AND NOT (m.session = ?9 AND m.compacted = 0)
                   AND NOT (m.session <> ?9 AND s.root = (SELECT root FROM session WHERE team = ?2 AND id = ?9)
                        AND EXISTS (SELECT 1 FROM message c
                                    WHERE c.team = ?2 AND c.session = ?9 AND c.rewound = 0 AND c.compacted = 0
                                          AND c.role = m.role AND c.said = m.said AND c.tool_text = m.tool_text))
             ORDER BY s.source IN (SELECT value FROM json_each(?10)), ",
            $order
        )
    };
}

/// The statement for hits in this order.
pub(super) fn hits_sql(sort: Sort) -> &'static str {
    match sort {
        Sort::Relevance => ordered_hits!("score DESC, m.created DESC, m.doc DESC"),
        Sort::Newest => ordered_hits!("m.created DESC, m.doc DESC"),
        Sort::Oldest => ordered_hits!("m.created, m.doc"),
    }
}

/// The best hits, one per lineage.
pub(super) async fn hits(connection: &mut SqliteConnection, query: &HitQuery) -> Result<Vec<Hit>, Failure> {
    let asker = &query.asker;
    let mut found = sqlx::query(hits_sql(query.sort))
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
    let mut fold = Fold::new(query.limit);
    while let Some(row) = found.try_next().await? {
        let hit = Hit {
            session: session_id(row.try_get("session")?)?,
            root: session_id(row.try_get("root")?)?,
            seq: unsigned(row.try_get("seq")?),
            score: row.try_get("score")?,
        };
        if fold.offer(hit).is_break() {
            break;
        }
    }
    Ok(fold.into_hits())
}

/// Recently active conversations, one per lineage.
pub(super) async fn recent(connection: &mut SqliteConnection, query: &RecentQuery) -> Result<Vec<Session>, Failure> {
    let asker = &query.asker;
    let found = sqlx::query(session_summaries!(
        "WHERE team = ?2 AND id IN (
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
    ))
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
