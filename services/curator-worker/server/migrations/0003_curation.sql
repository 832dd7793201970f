-- Curations: when each team's library is due, the runs with their reports, and when each skill was first seen. Times are
-- microseconds since the Unix epoch, UTC.
CREATE TABLE curation_team (
    team TEXT NOT NULL PRIMARY KEY,
    -- From when the interval counts: first sight, or the latest run.
    since INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    last_run TEXT,
    last_run_at INTEGER CHECK ((last_run_at IS NULL) = (last_run IS NULL)),
    runs INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE curation_run (
    team TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('curate', 'dry_run', 'rollback')),
    requester TEXT,
    -- JSON list: in whose name it may run, the first of them who still has access.
    users TEXT NOT NULL,
    request_id TEXT,
    undoes TEXT CHECK ((undoes IS NOT NULL) = (kind = 'rollback')),
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed')),
    problem_reason TEXT,
    problem_message TEXT,
    attempts INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    changes INTEGER NOT NULL,
    conflicts INTEGER NOT NULL,
    summary TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER CHECK ((ended_at IS NOT NULL) = (state IN ('succeeded', 'failed'))),
    -- JSON: what was decided, kept before anything was changed.
    plan TEXT,
    run_json TEXT NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (team, id)
) STRICT;

-- One run of a team at a time.
CREATE UNIQUE INDEX curation_run_open ON curation_run (team) WHERE state IN ('queued', 'running');
CREATE UNIQUE INDEX curation_run_request ON curation_run (team, requester, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX curation_run_by_time ON curation_run (team, created_at, id);

CREATE TABLE curation_seen (
    team TEXT NOT NULL,
    skill TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    PRIMARY KEY (team, skill)
) STRICT, WITHOUT ROWID;
