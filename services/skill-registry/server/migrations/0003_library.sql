-- What a curation needs of a library: since when a skill counts as stale, snapshots, and what each run changed.

ALTER TABLE skills ADD COLUMN stale_since INTEGER;  -- a use, a patch and setting aside end it

CREATE INDEX skills_by_maker ON skills (team, provenance, uid);

CREATE TABLE library_snapshots (
    team    TEXT    NOT NULL,
    run     TEXT    NOT NULL,
    taken   INTEGER NOT NULL,
    content TEXT    NOT NULL,                       -- JSON list: every skill with its state, revision and counters
    PRIMARY KEY (team, run)
) STRICT;

CREATE TABLE library_changes (
    team     TEXT    NOT NULL,
    run      TEXT    NOT NULL,
    skill    TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    from_age TEXT    NOT NULL CHECK (from_age IN ('active', 'stale', 'archived')),
    to_age   TEXT    NOT NULL CHECK (to_age IN ('active', 'stale', 'archived')),
    version  INTEGER NOT NULL,                      -- of the skill's record after the change
    PRIMARY KEY (team, run, skill),
    FOREIGN KEY (team, run) REFERENCES library_snapshots (team, run) ON DELETE CASCADE
) STRICT;
