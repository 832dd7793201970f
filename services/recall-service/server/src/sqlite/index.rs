//! The full-text index: taken out with the rows, checked against them, rebuilt from them. How it gets what is new is
//! `catch_up`'s affair.

use steward_recall_core::Error;
use steward_recall_core::store::IntegrityReport;
use steward_recall_core::tokenizer::{self, Purpose};
use steward_store::{Db, Sqlite, StoreError, params};

use super::catch_up::{self, Progress};
use super::failure::Failure;

const TOKENIZER_VERSION: &str = "tokenizer_version";

/// Takes the messages `from..=to` of a session out, which must happen before their rows change: an index without a copy
/// of the text needs to be told what it held. Of rows that it does not have yet nothing is taken out: the view ends where it
/// does.
pub(super) fn remove(db: Db<'_>, session: i64, from: i64, to: i64) -> Result<(), Failure> {
    db.execute(
        "INSERT INTO message_index (message_index, rowid, said, tool, day)
         SELECT 'delete', t.doc, t.said, t.tool, t.day
         FROM message m CROSS JOIN message_text t ON t.doc = m.doc
         WHERE m.session = ? AND m.seq BETWEEN ? AND ? AND m.rewound = 0",
        [session, from, to],
    )?;
    Ok(())
}

/// The number after which the next message is numbered: beyond all that are there, and all that were in the index.
pub(super) const LAST_DOC: &str = "SELECT max(coalesce((SELECT max(doc) FROM message), 0),
     coalesce((SELECT covered FROM index_state), 0))";

/// Rebuilds the index of a database that another version of the tokenizer built, and one that is plainly not whole. Whether
/// messages wait for it.
pub(super) async fn bring_up_to_date(sqlite: &Sqlite) -> Result<bool, Failure> {
    let found = sqlite.view_beside(|db| {
        let is_whole = looks_whole(db)?;
        Ok::<_, Failure>(State {
            built_with: built_with(db)?,
            is_whole,
            is_unset: is_whole && is_unset(db)?,
            is_behind: is_behind(db)?,
        })
    });
    let found = found.await?;
    let (from, is_whole) = (found.built_with, found.is_whole);
    if from == Some(tokenizer::VERSION) && is_whole {
        if found.is_unset {
            sqlite.update(set).await?;
        }
        return Ok(found.is_behind);
    }
    tracing::info!(path = %sqlite.path().display(), from, to = tokenizer::VERSION, is_whole, "rebuilding the index");
    rebuild(sqlite).await?;
    Ok(false)
}

/// What a file says of its index.
struct State {
    built_with: Option<u32>,
    is_whole: bool,
    /// Whether FTS5 has yet to be told how to work.
    is_unset: bool,
    is_behind: bool,
}

fn is_behind(db: Db<'_>) -> Result<bool, Failure> {
    let waiting: Option<bool> = db.value(
        "SELECT (SELECT max(doc) FROM message) > (SELECT covered FROM index_state)",
        (),
    )?;
    Ok(waiting.unwrap_or(false))
}

/// How FTS5 is told to work. Merging is ours, since by itself it merges within whichever write comes by. What is deleted leaves
/// no words behind: by itself it only notes that they are gone, until some later merge (`M-14`).
const OPTIONS: [(&str, i64); 2] = [("automerge", 0), ("secure-delete", 1)];

fn is_unset(db: Db<'_>) -> Result<bool, Failure> {
    for (option, value) in OPTIONS {
        let set: Option<i64> = db.optional("SELECT v FROM message_index_config WHERE k = ?", [option])?;
        if set != Some(value) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn set(db: Db<'_>) -> Result<(), Failure> {
    for (option, value) in OPTIONS {
        db.execute(
            "INSERT INTO message_index (message_index, rank) VALUES (?, ?)",
            params![option, value],
        )?;
    }
    Ok(())
}

/// A look at the index that costs little: whether it has as many entries as there are messages to find, and finds the first
/// and the last of them.
fn looks_whole(db: Db<'_>) -> Result<bool, Failure> {
    match look(db) {
        Ok(is_whole) => Ok(is_whole),
        Err(StoreError::Damaged { .. } | StoreError::Statement { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn look(db: Db<'_>) -> Result<bool, StoreError> {
    let counts_agree: bool = db.value(
        "SELECT (SELECT count(*) FROM message_index_docsize)
                = (SELECT count(doc) FROM message) - (SELECT count(doc) FROM message WHERE doc > covered)
                  - (SELECT count(doc) FROM message WHERE rewound = 1 AND doc <= covered)
         FROM index_state",
        (),
    )?;
    let ends: Vec<(i64, String)> = db.all(
        "SELECT doc, substr(said || ' ' || tool, 1, 500) FROM message_text
         WHERE doc IN ((SELECT min(doc) FROM message_text), (SELECT max(doc) FROM message_text))",
        (),
        |row| Ok::<_, StoreError>((row.get(0)?, row.get(1)?)),
    )?;
    for (doc, text) in ends {
        let Some(word) = tokenizer::positions(&text, Purpose::Query).into_iter().next() else {
            continue;
        };
        let is_found = db.exists(
            "SELECT rowid FROM message_index WHERE message_index MATCH ? AND rowid = ?",
            params![format!("\"{}\"", &text[word.start..word.end]), doc],
        )?;
        if !is_found {
            return Ok(false);
        }
    }
    Ok(counts_agree)
}

/// Builds the index anew from the rows.
pub(super) async fn rebuild(sqlite: &Sqlite) -> Result<(), Failure> {
    let rebuilt = sqlite.update(|db| {
        recreate(db)?;
        for step in [
            "INSERT OR REPLACE INTO index_state SELECT 1, coalesce(max(doc), 0) FROM message",
            "INSERT INTO message_index (message_index) VALUES ('rebuild')",
        ] {
            db.execute(step, ())?;
        }
        set(db)?;
        db.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
            params![TOKENIZER_VERSION, tokenizer::VERSION.to_string()],
        )?;
        Ok(())
    });
    rebuilt.await
}

/// Makes the index anew and empty, so that even a damaged one is no obstacle. FTS5 refuses to drop an index of which it
/// lacks a table; such a table is made first.
fn recreate(db: Db<'_>) -> Result<(), Failure> {
    const DROP: &str = "DROP TABLE IF EXISTS message_index";
    const TABLES: [&str; 5] = [
        "CREATE TABLE IF NOT EXISTS message_index_data (id INTEGER PRIMARY KEY, block BLOB)",
        "CREATE TABLE IF NOT EXISTS message_index_idx (segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS message_index_docsize (id INTEGER PRIMARY KEY, sz BLOB)",
        "CREATE TABLE IF NOT EXISTS message_index_config (k PRIMARY KEY, v) WITHOUT ROWID",
        "INSERT OR REPLACE INTO message_index_config VALUES ('version', 4)",
    ];
    if db.execute(DROP, ()).is_err() {
        for table in TABLES {
            db.execute(table, ())?;
        }
        db.execute(DROP, ())?;
    }
    // Left over where somebody dropped the index but not what belongs to it.
    for table in [
        "DROP TABLE IF EXISTS message_index_data",
        "DROP TABLE IF EXISTS message_index_idx",
        "DROP TABLE IF EXISTS message_index_docsize",
        "DROP TABLE IF EXISTS message_index_config",
    ] {
        db.execute(table, ())?;
    }
    db.execute(
        "CREATE VIRTUAL TABLE message_index USING fts5 (
             said, tool, day, content = 'message_text', content_rowid = 'doc', tokenize = 'steward')",
        (),
    )?;
    Ok(())
}

/// Compares rows, file and index, once what waits is in the index.
pub(super) async fn check(sqlite: &Sqlite, progress: &Progress) -> Result<IntegrityReport, Failure> {
    match catch_up::bring(sqlite, progress).await {
        // Of damage the comparison tells.
        Ok(()) | Err(Failure(Error::Damaged { .. } | Error::Internal { .. })) => {}
        Err(error) => return Err(error),
    }
    let mut problems = sqlite.integrity_check().await?;
    // By a reader, since the writer may remember what the index was before it was damaged.
    let found = sqlite.view_beside(|db| {
        let gaps = db.all(
            "SELECT s.id, s.last_seq, count(m.seq) FROM session s
             LEFT JOIN message m ON m.session = s.number
             GROUP BY s.number HAVING count(m.seq) <> s.last_seq OR coalesce(max(m.seq), 0) <> s.last_seq",
            (),
            |row| {
                let (session, last, count): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok::<_, Failure>(format!(
                    "session {session} ends at message {last} but has {count} messages"
                ))
            },
        )?;
        let messages: i64 = db.value("SELECT count(*) FROM message", ())?;
        Ok::<_, Failure>((gaps, messages, built_with(db)?.unwrap_or(0), looks_whole(db)?))
    });
    let (gaps, messages, version, is_whole) = found.await?;
    problems.extend(gaps);
    if !is_whole || !index_agrees(sqlite).await? {
        problems.push("the index does not agree with the messages; rebuild it".to_owned());
    }
    Ok(IntegrityReport {
        problems,
        messages: u64::try_from(messages).unwrap_or(0),
        tokenizer_version: version,
    })
}

/// FTS5's own comparison of the index with the rows. It is written as an insert, hence needs the writer.
async fn index_agrees(sqlite: &Sqlite) -> Result<bool, Failure> {
    let checked = sqlite.update(|db| {
        db.execute(
            "INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)",
            (),
        )
    });
    match checked.await {
        Ok(_) => Ok(true),
        Err(StoreError::Damaged { .. } | StoreError::Statement { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn built_with(db: Db<'_>) -> Result<Option<u32>, Failure> {
    let value: Option<String> = db.optional("SELECT value FROM meta WHERE key = ?", [TOKENIZER_VERSION])?;
    Ok(value.and_then(|value| value.parse().ok()))
}
