-- Trees that are withdrawn, or were and are reinstated, by their digest; and what a team serves to others.

CREATE TABLE hub_withdrawals (
    team    TEXT    NOT NULL,
    digest  TEXT    NOT NULL,
    force   INTEGER NOT NULL CHECK (force IN (0, 1)),  -- whether it keeps the tree from being installed
    content TEXT    NOT NULL,                          -- JSON
    PRIMARY KEY (team, digest)
) STRICT;

-- The archive as it is served, byte for byte.
CREATE TABLE hub_publications (
    team    TEXT NOT NULL,
    name    TEXT NOT NULL,
    archive BLOB NOT NULL,
    content TEXT NOT NULL,                             -- JSON
    PRIMARY KEY (team, name)
) STRICT;
