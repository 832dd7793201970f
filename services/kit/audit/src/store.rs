//! `audit.db`: rows of records, added in batches and read team by team, newest first.

use std::path::PathBuf;

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Identity, Origin, Role, Timestamp};
use steward_grpc::AuditRecord;
use steward_proto::access::v1::{AuditOutcome, PrincipalKind};
use steward_proto::common::v1 as common;
use steward_store::{Db, Sqlite, SqliteOptions, StoreError, params};
use tonic::Code;

use crate::gate::Counted;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// Team of a record without one.
pub(crate) const NO_TEAM: &str = "";
/// Rows that are removed at a time, so that the writer is not held up.
const CHUNK: i64 = 5_000;

/// What a row holds beside its id, in the order in which it is read and added.
macro_rules! columns {
    () => {
        "team, time, service, method, kind, user, role, origin, caller, job, fence, session, token, resources, request, \
         peer, outcome, code, reason, count"
    };
}

/// The store of one process.
#[derive(Debug, Clone)]
pub(crate) struct AuditStore {
    sqlite: Sqlite,
}

/// A record as it is stored. Enumerations are the contract's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) team: String,
    pub(crate) time: i64,
    pub(crate) service: String,
    pub(crate) method: String,
    pub(crate) kind: i32,
    pub(crate) user: String,
    pub(crate) role: i32,
    pub(crate) origin: i32,
    pub(crate) caller: String,
    pub(crate) job: String,
    pub(crate) fence: i64,
    pub(crate) session: String,
    pub(crate) token: String,
    pub(crate) resources: String,
    pub(crate) request: String,
    pub(crate) peer: String,
    pub(crate) outcome: i32,
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) count: i64,
}

/// Which rows to list.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) team: String,
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// Only rows that come after this one in the list: its time and id.
    pub(crate) after: (i64, i64),
    /// Empty: any. So for `method`, which may be the beginning of one.
    pub(crate) user: String,
    pub(crate) method: String,
    /// 0: any.
    pub(crate) outcome: i32,
    pub(crate) limit: u32,
}

impl AuditStore {
    pub(crate) async fn open(path: PathBuf, readers: u32) -> Result<Self, StoreError> {
        let options = SqliteOptions {
            migrator: &MIGRATIONS,
            readers,
            on_migrate: None,
            on_open: None,
        };
        let sqlite = Sqlite::open(path, options).await?;
        Ok(Self { sqlite })
    }

    pub(crate) async fn close(&self) {
        self.sqlite.close().await;
    }

    /// Adds all or none.
    pub(crate) async fn add(&self, records: Vec<Counted>) -> Result<(), StoreError> {
        let write = self.sqlite.update(move |db| {
            for (record, time, count) in &records {
                insert(db, &Row::new(record, *time, *count))?;
            }
            Ok(())
        });
        write.await
    }

    pub(crate) async fn list(&self, query: Query) -> Result<Vec<Row>, StoreError> {
        const SQL: &str = concat!(
            "SELECT id, ",
            columns!(),
            " FROM event
            WHERE team = ?1 AND time >= ?2 AND time < ?3 AND (time < ?4 OR (time = ?4 AND id < ?5))
                AND (?6 = '' OR user = ?6)
                AND (?7 = '' OR method = ?7
                    OR (substr(method, 1, length(?7)) = ?7 AND substr(method, length(?7) + 1, 1) IN ('.', '/')))
                AND (?8 = 0 OR outcome = ?8)
            ORDER BY time DESC, id DESC LIMIT ?9"
        );
        let read = self.sqlite.view_beside(move |db| {
            let values = params![
                query.team,
                query.from,
                query.to,
                query.after.0,
                query.after.1,
                query.user,
                query.method,
                query.outcome,
                query.limit,
            ];
            db.all(SQL, values, Row::read)
        });
        read.await
    }

    /// Removes some rows that are older than `time`. Answers how many.
    pub(crate) async fn remove_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        let sql = "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE time < ? ORDER BY id LIMIT ?)";
        self.remove(sql, Some(time.as_micros())).await
    }

    /// Removes the oldest rows, those without a team first. Answers how many.
    pub(crate) async fn remove_oldest(&self) -> Result<u64, StoreError> {
        let without_team = "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE team = '' ORDER BY id LIMIT ?)";
        let removed = self.remove(without_team, None).await?;
        if removed > 0 {
            return Ok(removed);
        }
        let any = "DELETE FROM event WHERE id IN (SELECT id FROM event ORDER BY id LIMIT ?)";
        self.remove(any, None).await
    }

    async fn remove(&self, sql: &'static str, time: Option<i64>) -> Result<u64, StoreError> {
        let removed = self.sqlite.update(move |db| match time {
            Some(time) => db.execute(sql, (time, CHUNK)),
            None => db.execute(sql, [CHUNK]),
        });
        Ok(u64::try_from(removed.await?).unwrap_or(u64::MAX))
    }

    /// Bytes of pages that hold something. A file does not shrink, but what is free in it is used again.
    pub(crate) async fn used_bytes(&self) -> Result<u64, StoreError> {
        const SQL: &str = "SELECT (pages.page_count - free.freelist_count) * size.page_size
             FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size";
        let used: i64 = self.sqlite.view(|db| db.value(SQL, ())).await?;
        Ok(u64::try_from(used).unwrap_or(0))
    }
}

impl Row {
    /// Reads the id and [`columns`].
    fn read(row: &steward_store::Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get(0)?,
            team: row.get(1)?,
            time: row.get(2)?,
            service: row.get(3)?,
            method: row.get(4)?,
            kind: row.get(5)?,
            user: row.get(6)?,
            role: row.get(7)?,
            origin: row.get(8)?,
            caller: row.get(9)?,
            job: row.get(10)?,
            fence: row.get(11)?,
            session: row.get(12)?,
            token: row.get(13)?,
            resources: row.get(14)?,
            request: row.get(15)?,
            peer: row.get(16)?,
            outcome: row.get(17)?,
            code: row.get(18)?,
            reason: row.get(19)?,
            count: row.get(20)?,
        })
    }

    fn new(record: &AuditRecord, time: Timestamp, count: u64) -> Self {
        let caller = record.principal.as_deref();
        let text = |found: Option<&str>| found.unwrap_or_default().to_owned();
        let job = caller.and_then(Caller::job);
        Self {
            id: 0,
            team: text(caller.and_then(|caller| caller.team.as_ref()).map(TeamId::as_str)),
            time: time.as_micros(),
            service: record.service.to_owned(),
            method: record.method.clone(),
            kind: i32::from(caller.map_or(PrincipalKind::Unspecified, kind)),
            user: text(caller.and_then(|caller| caller.user.as_ref()).map(UserId::as_str)),
            role: caller
                .filter(|caller| caller.user.is_some())
                .map_or(0, |caller| role(caller.role)),
            origin: caller.map_or(0, |caller| origin(caller.origin)),
            caller: text(caller.and_then(|caller| match &caller.identity {
                Identity::Service { name } => Some(name.as_str()),
                Identity::User | Identity::Turn { .. } | Identity::Job { .. } => None,
            })),
            job: text(job.map(|job| job.id.as_str())),
            fence: job.map_or(0, |job| i64::try_from(job.fence).unwrap_or(i64::MAX)),
            session: text(caller.and_then(Caller::session)),
            token: text(caller.map(|caller| caller.token_id.as_str())),
            resources: record.resources.join("\n"),
            request: record.request_id.to_string(),
            peer: record.peer.clone(),
            outcome: i32::from(outcome(record.code)),
            code: i32::from(record.code),
            reason: text(record.reason.as_deref()),
            count: i64::try_from(count).unwrap_or(i64::MAX),
        }
    }
}

fn insert(db: Db<'_>, row: &Row) -> Result<(), StoreError> {
    const SQL: &str = concat!(
        "INSERT INTO event (",
        columns!(),
        ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
    );
    let values = params![
        row.team,
        row.time,
        row.service,
        row.method,
        row.kind,
        row.user,
        row.role,
        row.origin,
        row.caller,
        row.job,
        row.fence,
        row.session,
        row.token,
        row.resources,
        row.request,
        row.peer,
        row.outcome,
        row.code,
        row.reason,
        row.count,
    ];
    db.execute(SQL, values)?;
    Ok(())
}

const fn kind(caller: &Caller) -> PrincipalKind {
    match caller.identity {
        Identity::User => PrincipalKind::Person,
        Identity::Turn { .. } => PrincipalKind::Turn,
        Identity::Job { .. } => PrincipalKind::Job,
        Identity::Service { .. } => PrincipalKind::Service,
    }
}

const fn role(role: Role) -> i32 {
    match role {
        Role::Viewer => common::Role::Viewer as i32,
        Role::Member => common::Role::Member as i32,
        Role::Maintainer => common::Role::Maintainer as i32,
        Role::Admin => common::Role::Admin as i32,
    }
}

const fn origin(origin: Origin) -> i32 {
    match origin {
        Origin::Foreground => common::Origin::Foreground as i32,
        Origin::Review => common::Origin::Review as i32,
        Origin::Curation => common::Origin::Curation as i32,
        Origin::Schedule => common::Origin::Schedule as i32,
        Origin::Delegate => common::Origin::Delegate as i32,
        Origin::Hub => common::Origin::Hub as i32,
        Origin::Builtin => common::Origin::Builtin as i32,
        Origin::Import => common::Origin::Import as i32,
    }
}

const fn outcome(code: Code) -> AuditOutcome {
    match code {
        Code::Ok => AuditOutcome::Succeeded,
        Code::Unauthenticated | Code::PermissionDenied => AuditOutcome::Denied,
        _ => AuditOutcome::Failed,
    }
}
