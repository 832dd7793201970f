-- The job queue. Times are microseconds since the Unix epoch, UTC.
CREATE TABLE queue_job (
    team TEXT NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    merge_key TEXT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'dead', 'cancelled', 'absorbed')),
    fence INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    releases INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    start_by INTEGER,
    lease_until INTEGER CHECK ((lease_until IS NOT NULL) = (state = 'running')),
    worker TEXT,
    cancel_requested INTEGER NOT NULL,
    yield_requested INTEGER NOT NULL,
    last_error TEXT,
    absorbed_by TEXT,
    finished_at INTEGER,
    PRIMARY KEY (team, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX queue_job_seq ON queue_job (seq);
CREATE INDEX queue_job_waiting ON queue_job (team, run_at, seq) WHERE state = 'waiting';
CREATE INDEX queue_job_running ON queue_job (team, lease_until) WHERE state = 'running';
CREATE INDEX queue_job_matter ON queue_job (team, kind, merge_key, state) WHERE merge_key IS NOT NULL;

-- One row per team: the number of the claim that served it last. Teams take turns by it.
CREATE TABLE queue_lane (
    team TEXT NOT NULL PRIMARY KEY,
    served INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
