//! `audit.db`: rows of records, added in batches and read team by team, newest first.

use std::path::PathBuf;

use futures::FutureExt as _;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _};
use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Identity, Origin, Role, Timestamp};
use steward_grpc::AuditRecord;
use steward_proto::access::v1::{AuditOutcome, PrincipalKind};
use steward_proto::common::v1 as common;
use steward_store::{Batch, Sqlite, SqliteOptions, StoreError};
use tonic::Code;

use crate::gate::Counted;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// Team of a record without one.
pub(crate) const NO_TEAM: &str = "";
/// Rows that are removed at a time, so that the writer is not held up.
const CHUNK: i64 = 5_000;

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
            on_connect: None,
        };
        let sqlite = Sqlite::open(path, options).await?;
        Ok(Self { sqlite })
    }

    pub(crate) async fn close(&self) {
        self.sqlite.close().await;
    }

    /// Adds all or none.
    pub(crate) async fn add(&self, records: Vec<Counted>) -> Result<(), StoreError> {
        let rows: Vec<Row> = records
            .iter()
            .map(|(record, time, count)| Row::new(record, *time, *count))
            .collect();
        let write = self.sqlite.write_in_two(Batch::default(), move |_connection, _none| {
            async move { Ok(((), inserts(&rows))) }.boxed()
        });
        write.await
    }

    pub(crate) async fn list(&self, query: Query) -> Result<Vec<Row>, StoreError> {
        const SQL: &str = "SELECT * FROM event
            WHERE team = ?1 AND time >= ?2 AND time < ?3 AND (time < ?4 OR (time = ?4 AND id < ?5))
                AND (?6 = '' OR user = ?6)
                AND (?7 = '' OR method = ?7
                    OR (substr(method, 1, length(?7)) = ?7 AND substr(method, length(?7) + 1, 1) IN ('.', '/')))
                AND (?8 = 0 OR outcome = ?8)
            ORDER BY time DESC, id DESC LIMIT ?9";
        let mut reader = self.sqlite.read().await?;
        let rows = sqlx::query_as(SQL)
            .bind(query.team)
            .bind(query.from)
            .bind(query.to)
            .bind(query.after.0)
            .bind(query.after.1)
            .bind(query.user)
            .bind(query.method)
            .bind(query.outcome)
            .bind(query.limit)
            .fetch_all(&mut *reader)
            .await?;
        Ok(rows)
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
        self.sqlite
            .write(move |connection| {
                async move {
                    let query = sqlx::query(sql);
                    let query = match time {
                        Some(time) => query.bind(time),
                        None => query,
                    };
                    Ok(query.bind(CHUNK).execute(connection).await?.rows_affected())
                }
                .boxed()
            })
            .await
    }

    /// Bytes of pages that hold something. A file does not shrink, but what is free in it is used again.
    pub(crate) async fn used_bytes(&self) -> Result<u64, StoreError> {
        let mut reader = self.sqlite.read().await?;
        let used: i64 = sqlx::query_scalar(
            "SELECT (pages.page_count - free.freelist_count) * size.page_size
             FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size",
        )
        .fetch_one(&mut *reader)
        .await?;
        Ok(u64::try_from(used).unwrap_or(0))
    }
}

impl Row {
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

/// The beginning of a statement that adds rows, and as many of them.
macro_rules! insert {
    ($($row:literal),+) => {
        concat!(
            "INSERT INTO event (team, time, service, method, kind, user, role, origin, caller, job, fence, session, token,
                 resources, request, peer, outcome, code, reason, count)
             VALUES ",
            $($row),+
        )
    };
}
const ONE: &str = insert!("(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
const FOUR: &str = insert!(
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?),",
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?),",
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?),",
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
);

/// Statements that add all of them: few, and of few shapes, so that they are parsed once.
fn inserts(rows: &[Row]) -> Batch {
    let mut batch = Batch::default();
    let (fours, rest) = rows.as_chunks::<4>();
    for four in fours {
        batch.statement(FOUR);
        for row in four {
            add(&mut batch, row);
        }
    }
    for row in rest {
        add(batch.statement(ONE), row);
    }
    batch
}

fn add(batch: &mut Batch, row: &Row) {
    batch
        .with(row.team.as_str())
        .with(row.time)
        .with(row.service.as_str())
        .with(row.method.as_str())
        .with(row.kind)
        .with(row.user.as_str())
        .with(row.role)
        .with(row.origin)
        .with(row.caller.as_str())
        .with(row.job.as_str())
        .with(row.fence)
        .with(row.session.as_str())
        .with(row.token.as_str())
        .with(row.resources.as_str())
        .with(row.request.as_str())
        .with(row.peer.as_str())
        .with(row.outcome)
        .with(row.code)
        .with(row.reason.as_str())
        .with(row.count);
}

impl<'r> FromRow<'r, SqliteRow> for Row {
    fn from_row(row: &'r SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            team: row.try_get("team")?,
            time: row.try_get("time")?,
            service: row.try_get("service")?,
            method: row.try_get("method")?,
            kind: row.try_get("kind")?,
            user: row.try_get("user")?,
            role: row.try_get("role")?,
            origin: row.try_get("origin")?,
            caller: row.try_get("caller")?,
            job: row.try_get("job")?,
            fence: row.try_get("fence")?,
            session: row.try_get("session")?,
            token: row.try_get("token")?,
            resources: row.try_get("resources")?,
            request: row.try_get("request")?,
            peer: row.try_get("peer")?,
            outcome: row.try_get("outcome")?,
            code: row.try_get("code")?,
            reason: row.try_get("reason")?,
            count: row.try_get("count")?,
        })
    }
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
