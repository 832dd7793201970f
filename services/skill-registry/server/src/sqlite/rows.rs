//! Between columns and records. What cannot be read becomes a broken record that hides no other (D-16, `S-15`).

use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{JobRef, Origin, Timestamp};
use steward_skill_core::error::StoreFault;
use steward_skill_core::gate::Provenance;
use steward_skill_core::name::{Category, Scope};
use steward_skill_core::path::SkillPath;
use steward_skill_core::record::{
    Authorship, BrokenRecord, FileEntry, Found, HeaderState, Revision, SkillRecord, State, Usage,
};

/// The columns of a skill, in the order in which nothing depends on.
macro_rules! skill_columns {
    () => {
        "team, uid, scope, owner, category, name, provenance, author, pinned, protected, archived, archival, version, \
         revision, number, tree, header, views, uses, review_views, patches, last_used, last_patched, created, updated"
    };
}
pub(super) use skill_columns;

/// Numbers are written from `u64` and never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// SQLite has 63 bits; counters and fences stay far below.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row of `skills`.
pub(super) fn skill(row: &SqliteRow) -> Found {
    record(row).map_err(|problem| {
        let text = |column: &str| row.try_get::<String, _>(column).unwrap_or_default();
        let (category, name) = (text("category"), text("name"));
        let folder = if category.is_empty() {
            name
        } else {
            format!("{category}/{name}")
        };
        BrokenRecord {
            skill: format!("{}/{folder}", text("scope")),
            uid: text("uid"),
            problem,
        }
    })
}

fn record(row: &SqliteRow) -> Result<SkillRecord, String> {
    let text = |column: &str| row.try_get::<String, _>(column).map_err(|error| error.to_string());
    let number = |column: &str| row.try_get::<i64, _>(column).map_err(|error| error.to_string());
    let time = |column: &str| {
        let micros = row
            .try_get::<Option<i64>, _>(column)
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(micros.map(Timestamp::from_micros))
    };
    let scope = Scope::from_columns(&text("scope")?, &text("owner")?).ok_or("its scope is not known")?;
    let author = row
        .try_get::<Option<String>, _>("author")
        .map_err(|error| error.to_string())?;
    let archival = row
        .try_get::<Option<String>, _>("archival")
        .map_err(|error| error.to_string())?;
    let state = match (number("archived")?, archival) {
        (0, None) => State::Active,
        (1, Some(json)) => State::Archived(serde_json::from_str(&json).map_err(|error| format!("archival: {error}"))?),
        _ => return Err("it is neither in use nor archived".to_owned()),
    };
    Ok(SkillRecord {
        team: TeamId::parse(text("team")?).map_err(|error| error.to_string())?,
        uid: text("uid")?,
        scope,
        name: SkillId::parse(text("name")?).map_err(|error| error.to_string())?,
        category: Category::parse(&text("category")?).map_err(|error| error.to_string())?,
        provenance: Provenance::parse(&text("provenance")?).ok_or("its provenance is not known")?,
        author: author
            .map(UserId::parse)
            .transpose()
            .map_err(|error| error.to_string())?,
        pinned: number("pinned")? != 0,
        protected: number("protected")? != 0,
        state,
        version: unsigned(number("version")?),
        revision: text("revision")?,
        number: unsigned(number("number")?),
        tree: text("tree")?,
        header: serde_json::from_str::<HeaderState>(&text("header")?).map_err(|error| format!("header: {error}"))?,
        usage: Usage {
            views: unsigned(number("views")?),
            uses: unsigned(number("uses")?),
            review_views: unsigned(number("review_views")?),
            patches: unsigned(number("patches")?),
            last_used: time("last_used")?,
            last_patched: time("last_patched")?,
        },
        created: Timestamp::from_micros(number("created")?),
        updated: Timestamp::from_micros(number("updated")?),
    })
}

/// A row of `revisions`, with its files.
pub(super) fn revision(row: &SqliteRow, files: Vec<FileEntry>) -> Result<Revision, StoreFault> {
    let number = row.try_get::<i64, _>("number").unwrap_or_default();
    revision_fields(row, files).map_err(|problem| StoreFault::Damaged {
        what: format!("revision {number}: {problem}"),
    })
}

fn revision_fields(row: &SqliteRow, files: Vec<FileEntry>) -> Result<Revision, String> {
    let text = |column: &str| row.try_get::<String, _>(column).map_err(|error| error.to_string());
    let maybe = |column: &str| {
        row.try_get::<Option<String>, _>(column)
            .map_err(|error| error.to_string())
    };
    let number = |column: &str| row.try_get::<i64, _>(column).map_err(|error| error.to_string());
    let fence = row
        .try_get::<Option<i64>, _>("fence")
        .map_err(|error| error.to_string())?;
    let job = maybe("job")?.map(|id| JobRef {
        id,
        fence: unsigned(fence.unwrap_or_default()),
    });
    Ok(Revision {
        id: text("id")?,
        parent: maybe("parent")?,
        number: unsigned(number("number")?),
        tree: text("tree")?,
        action: text("action")?,
        files,
        by: Authorship {
            user: maybe("author")?
                .map(UserId::parse)
                .transpose()
                .map_err(|error| error.to_string())?,
            origin: Origin::parse(&text("origin")?).ok_or("its origin is not known")?,
            session: maybe("session")?,
            turn: maybe("turn")?,
            job,
            reason: text("reason")?,
            evidence: serde_json::from_str(&text("evidence")?).map_err(|error| format!("evidence: {error}"))?,
        },
        restored_from: maybe("restored_from")?,
        created: Timestamp::from_micros(number("created")?),
    })
}

/// A row of `revision_files`.
pub(super) fn file(row: &SqliteRow) -> Result<FileEntry, StoreFault> {
    let damaged = |problem: String| StoreFault::Damaged {
        what: format!("a file of a revision: {problem}"),
    };
    let path = row
        .try_get::<String, _>("path")
        .map_err(|error| damaged(error.to_string()))?;
    Ok(FileEntry {
        path: SkillPath::parse(&path).map_err(|error| damaged(error.to_string()))?,
        sha256: row.try_get("sha256").map_err(|error| damaged(error.to_string()))?,
        size: unsigned(row.try_get("size").map_err(|error| damaged(error.to_string()))?),
    })
}
