-- Memory: one book per team, owner and target. Team comes first in every key.
-- owner: 'team', 'projects/{id}' or 'users/{id}'; target: 'notes' or 'profile'; times: microseconds since the Unix epoch.

-- A book's revision, which is its etag, and its refusals for lack of room (JSON).
CREATE TABLE books (
    team     TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    target   TEXT    NOT NULL CHECK (target IN ('notes', 'profile')),
    revision INTEGER NOT NULL,
    refusals TEXT    NOT NULL,
    PRIMARY KEY (team, owner, target)
) STRICT, WITHOUT ROWID;

-- Everything that was ever true of an entry. Rows are added and never changed.
CREATE TABLE revisions (
    team             TEXT    NOT NULL,
    owner            TEXT    NOT NULL,
    target           TEXT    NOT NULL,
    entry            TEXT    NOT NULL,
    revision         INTEGER NOT NULL CHECK (revision > 0),
    action           TEXT    NOT NULL CHECK (action IN ('added', 'replaced', 'removed', 'reverted')),
    content          TEXT    CHECK ((content IS NULL) = (action = 'removed')),
    written_at       INTEGER NOT NULL,
    author           TEXT,
    origin           TEXT    NOT NULL,
    session          TEXT,
    turn             TEXT,
    job              TEXT,
    evidence_session TEXT,
    evidence_spans   TEXT,
    basis            TEXT,
    integrity        INTEGER,
    reason           TEXT    NOT NULL,
    approved_by      TEXT,
    PRIMARY KEY (team, owner, target, entry, revision)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER revisions_are_append_only BEFORE UPDATE ON revisions
BEGIN
    SELECT RAISE(ABORT, 'revisions are append-only');
END;

-- What is in memory now: which revision of which entry. Text and provenance stand with the revision.
CREATE TABLE entries (
    team       TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    entry      TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (team, owner, target, entry),
    FOREIGN KEY (team, owner, target, entry, revision) REFERENCES revisions (team, owner, target, entry, revision)
) STRICT, WITHOUT ROWID;

-- Writes that wait, or waited, for a person. operations and provenance are JSON.
CREATE TABLE proposals (
    team            TEXT    NOT NULL,
    proposal        TEXT    NOT NULL,
    owner           TEXT    NOT NULL,
    target          TEXT    NOT NULL,
    operations      TEXT    NOT NULL,
    waiting         TEXT    NOT NULL,
    author          TEXT,
    provenance      TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'rejected')),
    decided_by      TEXT,
    decided_at      INTEGER,
    decision_reason TEXT,
    PRIMARY KEY (team, proposal)
) STRICT, WITHOUT ROWID;

CREATE INDEX proposals_by_owner ON proposals (team, state, owner);

-- The first answer to each request id.
CREATE TABLE requests (
    team       TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    answer     TEXT    NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (team, scope, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_age ON requests (team, written_at);

-- The highest fence seen of each job.
CREATE TABLE job_fences (
    team  TEXT    NOT NULL,
    job   TEXT    NOT NULL,
    fence INTEGER NOT NULL,
    PRIMARY KEY (team, job)
) STRICT, WITHOUT ROWID;
