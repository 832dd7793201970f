-- Bundles of skills under one slug, and proposals of skills for the team's library.

CREATE TABLE bundles (
    team    TEXT    NOT NULL,
    owner   TEXT    NOT NULL,                      -- user id; empty for the team's
    slug    TEXT    NOT NULL,
    version INTEGER NOT NULL,                      -- +1 per change: compare and swap
    content TEXT    NOT NULL,                      -- JSON
    PRIMARY KEY (team, owner, slug)
) STRICT;

CREATE TABLE proposals (
    team    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    skill   TEXT    NOT NULL,                      -- identity of the proposed skill
    author  TEXT    NOT NULL,
    state   TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'rejected')),
    place   TEXT    NOT NULL,                      -- time and id: the order of listings
    content TEXT    NOT NULL,                      -- JSON
    PRIMARY KEY (team, id)
) STRICT;

CREATE UNIQUE INDEX proposals_pending ON proposals (team, skill) WHERE state = 'pending';
CREATE INDEX proposals_by_place ON proposals (team, state, place);

-- Whoever means a skill by its name is looked up in all scopes at once.
CREATE INDEX skills_by_bare_name ON skills (team, name);
