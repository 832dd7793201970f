//! Between columns and records. What cannot be read becomes a broken record that hides no other (D-16, `S-15`).

use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{JobRef, Origin, Timestamp};
use steward_skill_core::error::StoreFault;
use steward_skill_core::gate::Provenance;
use steward_skill_core::name::{Category, Scope};
use steward_skill_core::path::SkillPath;
use steward_skill_core::record::{
    Authorship, BrokenRecord, FileEntry, Found, HeaderState, Revision, SkillRecord, State, Usage,
};
use steward_store::Row;

/// The columns of a skill in the order of [`Column`]; a statement may read others behind them.
macro_rules! skill_columns {
    () => {
        "team, uid, scope, owner, category, name, provenance, author, pinned, protected, archived, archival, version, \
         revision, number, tree, header, views, uses, review_views, patches, last_used, last_patched, created, updated"
    };
}
pub(super) use skill_columns;

/// The columns of a revision.
macro_rules! revision_columns {
    () => {
        "number, id, parent, tree, action, author, origin, session, turn, job, fence, reason, evidence, restored_from, created"
    };
}
pub(super) use revision_columns;

/// Where [`skill_columns`] has a column: looking for the name in each of a thousand rows costs more than reading them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Team,
    Uid,
    Scope,
    Owner,
    Category,
    Name,
    Provenance,
    Author,
    Pinned,
    Protected,
    Archived,
    Archival,
    Version,
    Revision,
    Number,
    Tree,
    Header,
    Views,
    Uses,
    ReviewViews,
    Patches,
    LastUsed,
    LastPatched,
    Created,
    Updated,
}

impl Column {
    pub(super) const fn at(self) -> usize {
        self as usize
    }
}

/// A row that begins with [`skill_columns`].
struct SkillRow<'r>(&'r Row<'r>);

impl SkillRow<'_> {
    fn maybe(&self, column: Column) -> Result<Option<&str>, String> {
        let value = self.0.get_ref(column.at()).map_err(|error| error.to_string())?;
        value.as_str_or_null().map_err(|error| format!("{column:?}: {error}"))
    }

    fn text(&self, column: Column) -> Result<&str, String> {
        self.maybe(column)?.ok_or_else(|| format!("{column:?} is missing"))
    }

    fn maybe_number(&self, column: Column) -> Result<Option<i64>, String> {
        self.0.get(column.at()).map_err(|error| error.to_string())
    }

    fn number(&self, column: Column) -> Result<i64, String> {
        self.0.get(column.at()).map_err(|error| error.to_string())
    }

    fn count(&self, column: Column) -> Result<u64, String> {
        self.number(column).map(unsigned)
    }

    fn time(&self, column: Column) -> Result<Option<Timestamp>, String> {
        Ok(self.maybe_number(column)?.map(Timestamp::from_micros))
    }
}

/// Numbers are written from `u64` and never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// SQLite has 63 bits; counters and fences stay far below.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row of `skills`.
pub(super) fn skill(row: &Row<'_>) -> Found {
    let row = SkillRow(row);
    record(&row).map_err(|problem| broken(&row, problem))
}

fn broken(row: &SkillRow<'_>, problem: String) -> BrokenRecord {
    let text = |column| row.text(column).unwrap_or_default();
    let (category, name) = (text(Column::Category), text(Column::Name));
    let folder = if category.is_empty() {
        name.to_owned()
    } else {
        format!("{category}/{name}")
    };
    BrokenRecord {
        skill: format!("{}/{folder}", text(Column::Scope)),
        uid: text(Column::Uid).to_owned(),
        problem,
    }
}

fn record(row: &SkillRow<'_>) -> Result<SkillRecord, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let text = |column| row.text(column);
    let scope = Scope::from_columns(text(Column::Scope)?, text(Column::Owner)?).ok_or("its scope is not known")?;
    let author = row.maybe(Column::Author)?;
    let state = match (row.number(Column::Archived)?, row.maybe(Column::Archival)?) {
        (0, None) => State::Active,
        (1, Some(json)) => State::Archived(serde_json::from_str(json).map_err(|error| format!("archival: {error}"))?),
        _ => return Err("it is neither in use nor archived".to_owned()),
    };
    Ok(SkillRecord {
        team: TeamId::parse(text(Column::Team)?).map_err(|error| said(&error))?,
        uid: text(Column::Uid)?.to_owned(),
        scope,
        name: SkillId::parse(text(Column::Name)?).map_err(|error| said(&error))?,
        category: Category::parse(text(Column::Category)?).map_err(|error| said(&error))?,
        provenance: Provenance::parse(text(Column::Provenance)?).ok_or("its provenance is not known")?,
        author: author.map(UserId::parse).transpose().map_err(|error| said(&error))?,
        pinned: row.number(Column::Pinned)? != 0,
        protected: row.number(Column::Protected)? != 0,
        state,
        version: row.count(Column::Version)?,
        revision: text(Column::Revision)?.to_owned(),
        number: row.count(Column::Number)?,
        tree: text(Column::Tree)?.to_owned(),
        header: serde_json::from_str::<HeaderState>(text(Column::Header)?)
            .map_err(|error| format!("header: {error}"))?,
        usage: Usage {
            views: row.count(Column::Views)?,
            uses: row.count(Column::Uses)?,
            review_views: row.count(Column::ReviewViews)?,
            patches: row.count(Column::Patches)?,
            last_used: row.time(Column::LastUsed)?,
            last_patched: row.time(Column::LastPatched)?,
        },
        created: Timestamp::from_micros(row.number(Column::Created)?),
        updated: Timestamp::from_micros(row.number(Column::Updated)?),
    })
}

/// A row of `revisions`, with its files.
pub(super) fn revision(row: &Row<'_>, files: Vec<FileEntry>) -> Result<Revision, StoreFault> {
    let number = row.get::<_, i64>("number").unwrap_or_default();
    revision_fields(row, files).map_err(|problem| StoreFault::Damaged {
        what: format!("revision {number}: {problem}"),
    })
}

fn revision_fields(row: &Row<'_>, files: Vec<FileEntry>) -> Result<Revision, String> {
    let text = |column: &str| row.get::<_, String>(column).map_err(|error| error.to_string());
    let maybe = |column: &str| row.get::<_, Option<String>>(column).map_err(|error| error.to_string());
    let number = |column: &str| row.get::<_, i64>(column).map_err(|error| error.to_string());
    let fence = row.get::<_, Option<i64>>("fence").map_err(|error| error.to_string())?;
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
pub(super) fn file(row: &Row<'_>) -> Result<FileEntry, StoreFault> {
    let damaged = |problem: String| StoreFault::Damaged {
        what: format!("a file of a revision: {problem}"),
    };
    let path = row
        .get::<_, String>("path")
        .map_err(|error| damaged(error.to_string()))?;
    Ok(FileEntry {
        path: SkillPath::parse(&path).map_err(|error| damaged(error.to_string()))?,
        sha256: row.get("sha256").map_err(|error| damaged(error.to_string()))?,
        size: unsigned(row.get("size").map_err(|error| damaged(error.to_string()))?),
    })
}
