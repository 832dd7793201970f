//! Rows as the tables hold them, and the domain values that they stand for. A value that nothing ever wrote is damage and
//! is reported as such, never guessed at. Columns are read by their place, since looking for a name takes longer than what
//! it finds.

use steward_base::names::{EntryId, SessionId, UserId};
use steward_base::{Integrity, Origin, Timestamp};
use steward_memory_core::{Action, Basis, Entry, Evidence, Holds, Provenance, Revision};
use steward_store::{Row, StoreError};

use super::{Failure, damaged};

/// The columns of `revisions AS r` that [`RevisionRow::read`] reads, in its order.
macro_rules! revision_columns {
    () => {
        "r.entry, r.revision, r.action, r.content, r.written_at, r.author, r.origin, r.session, r.turn, r.job, \
         r.evidence_session, r.evidence_spans, r.basis, r.integrity, r.reason, r.approved_by, r.holds_until, r.checks"
    };
}
pub(super) use revision_columns;

/// A row of `revisions`, without its store.
#[derive(Debug)]
pub(super) struct RevisionRow {
    pub(super) entry: String,
    pub(super) revision: i64,
    pub(super) action: String,
    pub(super) content: Option<String>,
    pub(super) written_at: i64,
    pub(super) author: Option<String>,
    pub(super) origin: String,
    pub(super) session: Option<String>,
    pub(super) turn: Option<String>,
    pub(super) job: Option<String>,
    pub(super) evidence_session: Option<String>,
    pub(super) evidence_spans: Option<String>,
    pub(super) basis: Option<String>,
    pub(super) integrity: Option<i64>,
    pub(super) reason: String,
    pub(super) approved_by: Option<String>,
    pub(super) holds_until: Option<i64>,
    pub(super) checks: Option<String>,
}

/// A present entry: its latest revision and when the first one was written.
#[derive(Debug)]
pub(super) struct EntryRow {
    pub(super) created_at: i64,
    pub(super) failed_check: Option<String>,
    pub(super) latest: RevisionRow,
}

impl RevisionRow {
    /// Reads [`revision_columns`], the first of which stands at `from`.
    pub(super) fn read(row: &Row<'_>, from: usize) -> Result<Self, StoreError> {
        let mut columns = from..;
        let mut column = || columns.next().unwrap_or_default();
        Ok(Self {
            entry: row.get(column())?,
            revision: row.get(column())?,
            action: row.get(column())?,
            content: row.get(column())?,
            written_at: row.get(column())?,
            author: row.get(column())?,
            origin: row.get(column())?,
            session: row.get(column())?,
            turn: row.get(column())?,
            job: row.get(column())?,
            evidence_session: row.get(column())?,
            evidence_spans: row.get(column())?,
            basis: row.get(column())?,
            integrity: row.get(column())?,
            reason: row.get(column())?,
            approved_by: row.get(column())?,
            holds_until: row.get(column())?,
            checks: row.get(column())?,
        })
    }

    fn provenance(&self) -> Result<Provenance, Failure> {
        Ok(Provenance {
            author: user(self.author.as_deref())?,
            origin: Origin::parse(&self.origin).ok_or_else(|| damaged("origin", &self.origin))?,
            session: self.session.as_deref().map(session).transpose()?,
            turn: self.turn.clone(),
            job: self.job.clone(),
            evidence: self.evidence()?,
            reason: self.reason.clone(),
            approved_by: user(self.approved_by.as_deref())?,
            holds: self.holds()?,
        })
    }

    fn holds(&self) -> Result<Holds, Failure> {
        let checks = match &self.checks {
            None => Vec::new(),
            Some(text) => serde_json::from_str(text).map_err(|_| damaged("checks", text))?,
        };
        Ok(Holds {
            until: self.holds_until.map(Timestamp::from_micros),
            checks,
        })
    }

    fn evidence(&self) -> Result<Option<Evidence>, Failure> {
        let Some(cited) = &self.evidence_session else {
            return Ok(None);
        };
        let spans = self.evidence_spans.as_deref().unwrap_or("[]");
        let basis = self
            .basis
            .as_deref()
            .map(|name| Basis::parse(name).ok_or_else(|| damaged("basis", name)));
        let integrity = self.integrity.map(|level| {
            let known = u8::try_from(level).ok().and_then(Integrity::from_level);
            known.ok_or_else(|| damaged("integrity", &level.to_string()))
        });
        Ok(Some(Evidence {
            session: session(cited)?,
            spans: serde_json::from_str(spans).map_err(|_| damaged("evidence", spans))?,
            basis: basis.transpose()?,
            integrity: integrity.transpose()?,
        }))
    }

    fn number(&self) -> Result<u32, Failure> {
        u32::try_from(self.revision).map_err(|_| damaged("revision", &self.revision.to_string()))
    }

    pub(super) fn into_revision(self) -> Result<Revision, Failure> {
        Ok(Revision {
            entry: entry_id(&self.entry)?,
            number: self.number()?,
            action: Action::parse(&self.action).ok_or_else(|| damaged("action", &self.action))?,
            at: Timestamp::from_micros(self.written_at),
            provenance: self.provenance()?,
            content: self.content,
        })
    }
}

impl EntryRow {
    /// Reads when the entry was made, the check that was reported to fail, and [`revision_columns`], from `from` on.
    pub(super) fn read(row: &Row<'_>, from: usize) -> Result<Self, StoreError> {
        Ok(Self {
            created_at: row.get(from)?,
            failed_check: row.get(from + 1)?,
            latest: RevisionRow::read(row, from + 2)?,
        })
    }

    pub(super) fn into_entry(self) -> Result<Entry, Failure> {
        let latest = self.latest;
        Ok(Entry {
            id: entry_id(&latest.entry)?,
            revision: latest.number()?,
            created: Timestamp::from_micros(self.created_at),
            changed: Timestamp::from_micros(latest.written_at),
            provenance: latest.provenance()?,
            failed_check: self.failed_check,
            content: latest
                .content
                .ok_or_else(|| damaged("entry without text", &latest.entry))?,
        })
    }
}

fn entry_id(text: &str) -> Result<EntryId, Failure> {
    EntryId::parse(text).map_err(|_| damaged("entry id", text))
}

fn session(text: &str) -> Result<SessionId, Failure> {
    SessionId::parse(text).map_err(|_| damaged("session id", text))
}

pub(super) fn user(text: Option<&str>) -> Result<Option<UserId>, Failure> {
    text.map(|text| UserId::parse(text).map_err(|_| damaged("user id", text)))
        .transpose()
}
