-- Writes that wait for a person stand beside skills on their way to the team: what one pending proposal alone may be about is
-- its slot, a write has a fingerprint by which it is known again, what is for one person's own skills is theirs to see, and
-- what nobody decides on expires. A check cannot be changed in place, so the table is made anew.

CREATE TABLE proposals_anew (
    team        TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    skill       TEXT    NOT NULL,                  -- identity of the proposed skill, or of the one that a write is for
    slot        TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL DEFAULT '',       -- of a write; else empty
    author      TEXT    NOT NULL,                  -- user id; empty for nobody's
    private     INTEGER NOT NULL DEFAULT 0,        -- 1: seen by the author alone
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired')),
    place       TEXT    NOT NULL,                  -- time and id: the order of listings
    created     INTEGER NOT NULL DEFAULT 0,        -- microseconds
    expires     INTEGER NOT NULL DEFAULT 9223372036854775807,
    decided     INTEGER NOT NULL DEFAULT 0,        -- microseconds; 0 while nobody has
    content     TEXT    NOT NULL,                  -- JSON
    PRIMARY KEY (team, id)
) STRICT;

INSERT INTO proposals_anew (team, id, skill, slot, author, state, place, created, content)
SELECT team, id, skill, skill, author, state, place, CAST(substr(place, 1, 20) AS INTEGER), content FROM proposals;

DROP TABLE proposals;
ALTER TABLE proposals_anew RENAME TO proposals;

CREATE UNIQUE INDEX proposals_pending ON proposals (team, slot) WHERE state = 'pending';
CREATE INDEX proposals_by_place ON proposals (team, state, place);
CREATE INDEX proposals_rejected ON proposals (team, fingerprint, decided) WHERE state = 'rejected' AND fingerprint <> '';
