-- Skills from outside: what is in quarantine, what is installed and by which scan, accepted findings, and the log. The
-- bytes stand with those of the library, by their content.

CREATE TABLE hub_items (
    team    TEXT NOT NULL,
    id      TEXT NOT NULL,
    place   TEXT NOT NULL,                          -- time and id: the order of listings
    state   TEXT NOT NULL CHECK (state IN ('refused', 'blocked', 'awaiting_approval', 'approved', 'installed', 'rejected')),
    content TEXT NOT NULL,                          -- JSON
    PRIMARY KEY (team, id)
) STRICT;

CREATE UNIQUE INDEX hub_items_by_place ON hub_items (team, place);
CREATE INDEX hub_items_by_state ON hub_items (team, state);

-- What can neither be installed any more nor be merged over has no rows here.
CREATE TABLE hub_item_files (
    team       TEXT    NOT NULL,
    item       TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    sha256     TEXT    NOT NULL,
    size       INTEGER NOT NULL,
    executable INTEGER NOT NULL,
    PRIMARY KEY (team, item, path),
    FOREIGN KEY (team, item) REFERENCES hub_items (team, id) ON DELETE CASCADE,
    FOREIGN KEY (team, sha256) REFERENCES blobs (team, sha256)
) STRICT;

CREATE INDEX hub_item_files_by_blob ON hub_item_files (team, sha256);

CREATE TABLE hub_locks (
    team    TEXT NOT NULL,
    name    TEXT NOT NULL,
    item    TEXT NOT NULL,
    content TEXT NOT NULL,                          -- JSON: the lock, and the report by which it was let in
    PRIMARY KEY (team, name),
    FOREIGN KEY (team, item) REFERENCES hub_items (team, id)
) STRICT;

CREATE INDEX hub_locks_by_item ON hub_locks (team, item);

CREATE TABLE hub_accepted (
    team        TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    content     TEXT NOT NULL,                      -- JSON
    PRIMARY KEY (team, fingerprint)
) STRICT;

CREATE TABLE hub_log (
    team     TEXT    NOT NULL,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    action   TEXT    NOT NULL,
    content  TEXT    NOT NULL,                      -- JSON: the entry with its hashes
    PRIMARY KEY (team, sequence)
) STRICT;

CREATE TRIGGER hub_log_only_grows BEFORE DELETE ON hub_log BEGIN
    SELECT RAISE(ABORT, 'an entry of the log is not removed');
END;

CREATE TRIGGER hub_log_is_fixed BEFORE UPDATE ON hub_log BEGIN
    SELECT RAISE(ABORT, 'an entry of the log is not changed');
END;

-- By which rules a team's skills were last scanned all together.
CREATE TABLE hub_rescans (
    team     TEXT NOT NULL PRIMARY KEY,
    rule_set TEXT NOT NULL
) STRICT;
