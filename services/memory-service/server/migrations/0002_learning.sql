-- How long entries hold, what was rejected, what is kept although it is no text, and what was erased.

-- The end of what a revision says, and its checks (JSON, a list of texts).
ALTER TABLE revisions ADD COLUMN holds_until INTEGER;
ALTER TABLE revisions ADD COLUMN checks TEXT;

-- Present revisions of which a check was reported to fail.
CREATE TABLE doubts (
    team         TEXT    NOT NULL,
    owner        TEXT    NOT NULL,
    target       TEXT    NOT NULL,
    entry        TEXT    NOT NULL,
    revision     INTEGER NOT NULL,
    failed_check TEXT    NOT NULL,
    PRIMARY KEY (team, owner, target, entry)
) STRICT, WITHOUT ROWID;

-- A proposal past its end counts as expired; its row stays as it is. shown: whether those who decide on what is shared see
-- it. edited: what took effect instead of the operations (JSON).
ALTER TABLE proposals ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE proposals ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
ALTER TABLE proposals ADD COLUMN shown INTEGER NOT NULL DEFAULT 1;
ALTER TABLE proposals ADD COLUMN edited TEXT;
UPDATE proposals SET expires_at = created_at + 2592000000000;

-- Candidates that a person rejected, by what makes them the same.
CREATE TABLE rejections (
    team        TEXT    NOT NULL,
    owner       TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    rejected_at INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    PRIMARY KEY (team, owner, target, fingerprint)
) STRICT, WITHOUT ROWID;

-- What was brought in as an entry and is no text, byte for byte.
CREATE TABLE held (
    team    TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    target  TEXT    NOT NULL,
    held    TEXT    NOT NULL,
    bytes   BLOB    NOT NULL,
    came_at INTEGER NOT NULL,
    PRIMARY KEY (team, owner, target, held)
) STRICT, WITHOUT ROWID;

-- That something was erased, without what it was.
CREATE TABLE erasures (
    team      TEXT    NOT NULL,
    owner     TEXT    NOT NULL,
    erased_at INTEGER NOT NULL,
    revisions INTEGER NOT NULL,
    PRIMARY KEY (team, owner, erased_at)
) STRICT, WITHOUT ROWID;

-- Old answers are let go of once an hour by a scan, instead of with every write by an index that every write pays for.
DROP INDEX requests_by_age;
