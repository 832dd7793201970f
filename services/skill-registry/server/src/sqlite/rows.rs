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

/// The same as one text, which costs a read of a thousand skills a fraction of what as many columns do. No field holds the
/// separators: ids and names are checked, JSON writes them out.
pub(super) const PACKED: &str = "uid || char(31) || scope || char(31) || owner || char(31) || category || char(31) || \
     name || char(31) || provenance || char(31) || coalesce(author, char(30)) || char(31) || pinned || char(31) || \
     protected || char(31) || archived || char(31) || coalesce(archival, char(30)) || char(31) || version || char(31) || \
     revision || char(31) || number || char(31) || tree || char(31) || header || char(31) || views || char(31) || uses \
     || char(31) || review_views || char(31) || patches || char(31) || coalesce(last_used, char(30)) || char(31) || \
     coalesce(last_patched, char(30)) || char(31) || created || char(31) || updated";
/// Between skills.
pub(super) const BETWEEN: char = '\u{1d}';
const FIELD: char = '\u{1f}';
const NULL: &str = "\u{1e}";
/// The fields of [`PACKED`] in their order.
const FIELDS: [&str; 24] = [
    "uid",
    "scope",
    "owner",
    "category",
    "name",
    "provenance",
    "author",
    "pinned",
    "protected",
    "archived",
    "archival",
    "version",
    "revision",
    "number",
    "tree",
    "header",
    "views",
    "uses",
    "review_views",
    "patches",
    "last_used",
    "last_patched",
    "created",
    "updated",
];

/// Where the fields of a skill are read from.
trait Fields {
    fn maybe(&self, field: &str) -> Result<Option<String>, String>;
    fn maybe_number(&self, field: &str) -> Result<Option<i64>, String>;

    fn text(&self, field: &str) -> Result<String, String> {
        self.maybe(field)?.ok_or_else(|| format!("{field} is missing"))
    }

    fn number(&self, field: &str) -> Result<i64, String> {
        self.maybe_number(field)?.ok_or_else(|| format!("{field} is missing"))
    }
}

impl Fields for SqliteRow {
    fn maybe(&self, field: &str) -> Result<Option<String>, String> {
        self.try_get(field).map_err(|error| error.to_string())
    }

    fn maybe_number(&self, field: &str) -> Result<Option<i64>, String> {
        self.try_get(field).map_err(|error| error.to_string())
    }
}

struct Packed<'a>(Vec<&'a str>);

impl Packed<'_> {
    fn field(&self, field: &str) -> Result<Option<&str>, String> {
        let at = FIELDS.iter().position(|known| *known == field);
        let text = at
            .and_then(|at| self.0.get(at))
            .ok_or_else(|| format!("{field} is missing"))?;
        Ok(Some(*text).filter(|text| *text != NULL))
    }
}

impl Fields for Packed<'_> {
    fn maybe(&self, field: &str) -> Result<Option<String>, String> {
        Ok(self.field(field)?.map(str::to_owned))
    }

    fn maybe_number(&self, field: &str) -> Result<Option<i64>, String> {
        let number = self.field(field)?.map(str::parse).transpose();
        number.map_err(|error| format!("{field}: {error}"))
    }
}

/// A skill of the team, packed.
pub(super) fn packed(team: &TeamId, text: &str) -> Found {
    let fields = Packed(text.split(FIELD).collect());
    if fields.0.len() == FIELDS.len() {
        found(team.clone(), &fields)
    } else {
        Err(broken(&fields, "a field holds a separator".to_owned()))
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
pub(super) fn skill(row: &SqliteRow) -> Found {
    match row
        .text("team")
        .and_then(|team| TeamId::parse(team).map_err(|error| error.to_string()))
    {
        Ok(team) => found(team, row),
        Err(problem) => Err(broken(row, problem)),
    }
}

fn found(team: TeamId, fields: &impl Fields) -> Found {
    record(team, fields).map_err(|problem| broken(fields, problem))
}

fn broken(fields: &impl Fields, problem: String) -> BrokenRecord {
    let text = |field: &str| fields.text(field).unwrap_or_default();
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
}

fn record(team: TeamId, fields: &impl Fields) -> Result<SkillRecord, String> {
    let text = |field: &str| fields.text(field);
    let number = |field: &str| fields.number(field);
    let time = |field: &str| Ok::<_, String>(fields.maybe_number(field)?.map(Timestamp::from_micros));
    let scope = Scope::from_columns(&text("scope")?, &text("owner")?).ok_or("its scope is not known")?;
    let author = fields.maybe("author")?;
    let state = match (number("archived")?, fields.maybe("archival")?) {
        (0, None) => State::Active,
        (1, Some(json)) => State::Archived(serde_json::from_str(&json).map_err(|error| format!("archival: {error}"))?),
        _ => return Err("it is neither in use nor archived".to_owned()),
    };
    Ok(SkillRecord {
        team,
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
