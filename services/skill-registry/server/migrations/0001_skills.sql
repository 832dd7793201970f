-- Skills, their immutable revisions, content-addressed blobs, and what keeps writers honest.
-- The team stands first in every key. Times are microseconds since the Unix epoch, UTC.

CREATE TABLE skills (
    team         TEXT    NOT NULL,
    uid          TEXT    NOT NULL,
    scope        TEXT    NOT NULL,              -- user | team | builtin
    owner        TEXT    NOT NULL,              -- user id for the scope user, else empty
    category     TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    provenance   TEXT    NOT NULL,              -- who made it; unknown text makes the record unreadable
    author       TEXT,
    pinned       INTEGER NOT NULL,
    protected    INTEGER NOT NULL,
    archived     INTEGER NOT NULL,
    archival     TEXT,                          -- JSON, exactly when archived
    version      INTEGER NOT NULL,              -- +1 per change that is no usage: compare and swap
    revision     TEXT    NOT NULL,              -- id of the newest revision
    number       INTEGER NOT NULL,
    tree         TEXT    NOT NULL,
    header       TEXT    NOT NULL,              -- JSON of what SKILL.md says of itself
    views        INTEGER NOT NULL DEFAULT 0,
    uses         INTEGER NOT NULL DEFAULT 0,
    review_views INTEGER NOT NULL DEFAULT 0,
    patches      INTEGER NOT NULL DEFAULT 0,
    last_used    INTEGER,
    last_patched INTEGER,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    PRIMARY KEY (team, uid),
    CONSTRAINT skills_archival CHECK ((archived = 1) = (archival IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX skills_active_name ON skills (team, scope, owner, name) WHERE archived = 0;
CREATE INDEX skills_by_name ON skills (team, scope, owner, archived, category, name);

CREATE TABLE blobs (
    team   TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (team, sha256)
) STRICT;

CREATE TABLE revisions (
    team          TEXT    NOT NULL,
    skill         TEXT    NOT NULL,
    number        INTEGER NOT NULL,
    id            TEXT    NOT NULL,
    parent        TEXT,
    tree          TEXT    NOT NULL,
    action        TEXT    NOT NULL,
    author        TEXT,
    origin        TEXT    NOT NULL,
    session       TEXT,
    turn          TEXT,
    job           TEXT,
    fence         INTEGER,
    reason        TEXT    NOT NULL,
    evidence      TEXT    NOT NULL,             -- JSON: sessions, spans, basis, integrity
    basis         TEXT,                         -- of the first evidence, for queries
    integrity     INTEGER,                      -- lowest level of all evidence, for queries
    restored_from TEXT,
    created       INTEGER NOT NULL,
    PRIMARY KEY (team, skill, number),
    UNIQUE (team, skill, id),
    FOREIGN KEY (team, skill) REFERENCES skills (team, uid) ON DELETE CASCADE
) STRICT;

CREATE TABLE revision_files (
    team   TEXT    NOT NULL,
    skill  TEXT    NOT NULL,
    number INTEGER NOT NULL,
    path   TEXT    NOT NULL,
    sha256 TEXT    NOT NULL,
    size   INTEGER NOT NULL,
    PRIMARY KEY (team, skill, number, path),
    FOREIGN KEY (team, skill, number) REFERENCES revisions (team, skill, number) ON DELETE CASCADE,
    FOREIGN KEY (team, sha256) REFERENCES blobs (team, sha256)
) STRICT;

CREATE INDEX revision_files_by_blob ON revision_files (team, sha256);

-- Which revision a session or job has last read of a skill.
CREATE TABLE reads (
    team     TEXT NOT NULL,
    reader   TEXT NOT NULL,
    skill    TEXT NOT NULL,
    revision TEXT NOT NULL,
    PRIMARY KEY (team, reader, skill),
    FOREIGN KEY (team, skill) REFERENCES skills (team, uid) ON DELETE CASCADE
) STRICT;

CREATE INDEX reads_by_skill ON reads (team, skill);

-- The first answer to each request id.
CREATE TABLE answers (
    team   TEXT NOT NULL,
    scope  TEXT NOT NULL,
    id     TEXT NOT NULL,
    hash   TEXT NOT NULL,
    skill  TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (team, scope, id),
    FOREIGN KEY (team, skill) REFERENCES skills (team, uid) ON DELETE CASCADE
) STRICT;

CREATE INDEX answers_by_skill ON answers (team, skill);

-- The highest fence seen per job.
CREATE TABLE job_fences (
    team  TEXT    NOT NULL,
    job   TEXT    NOT NULL,
    fence INTEGER NOT NULL,
    PRIMARY KEY (team, job)
) STRICT;

-- What was destroyed, by whom. Nothing deletes from here.
CREATE TABLE purges (
    team      TEXT    NOT NULL,
    uid       TEXT    NOT NULL,
    skill     TEXT    NOT NULL,
    revisions INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (team, uid)
) STRICT;
