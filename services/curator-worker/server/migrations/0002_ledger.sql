-- The ledger of reviews, and the journals of their jobs. Times are microseconds since the Unix epoch, UTC.
CREATE TABLE review (
    team TEXT NOT NULL,
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    to_seq INTEGER NOT NULL,
    memory INTEGER NOT NULL,
    skills INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('queued', 'running', 'succeeded', 'nothing_to_save', 'failed', 'cancelled', 'dead', 'absorbed')),
    summary TEXT NOT NULL,
    problem_reason TEXT,
    problem_message TEXT,
    attempts INTEGER NOT NULL,
    iterations INTEGER NOT NULL,
    input_tokens INTEGER,
    cached_input_tokens INTEGER,
    cache_write_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER,
    mode TEXT,
    rubric TEXT NOT NULL,
    integrity INTEGER,
    -- JSON lists.
    writes TEXT NOT NULL,
    rejected TEXT NOT NULL,
    used_skills TEXT NOT NULL,
    absorbed_by TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER CHECK ((ended_at IS NOT NULL) = (state NOT IN ('queued', 'running'))),
    traceparent TEXT NOT NULL,
    -- Order of the last change that people are shown, within the team.
    change_seq INTEGER NOT NULL,
    PRIMARY KEY (team, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX review_of_user ON review (team, user_id, created_at, id);
CREATE UNIQUE INDEX review_change ON review (team, change_seq);
CREATE INDEX review_of_session ON review (team, session, state);
CREATE INDEX review_open ON review (state) WHERE state IN ('queued', 'running');

-- What the request of a review was built from: one row per job.
CREATE TABLE journal_opening (
    team TEXT NOT NULL,
    job TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (team, job)
) STRICT, WITHOUT ROWID;

-- The model's replies, each kept before its calls were dispatched.
CREATE TABLE journal_reply (
    team TEXT NOT NULL,
    job TEXT NOT NULL,
    step INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    content TEXT NOT NULL,
    fence INTEGER NOT NULL,
    PRIMARY KEY (team, job, step, attempt)
) STRICT, WITHOUT ROWID;

-- The answers to the calls of those replies.
CREATE TABLE journal_answer (
    team TEXT NOT NULL,
    job TEXT NOT NULL,
    step INTEGER NOT NULL,
    call INTEGER NOT NULL,
    content TEXT NOT NULL,
    fence INTEGER NOT NULL,
    PRIMARY KEY (team, job, step, call)
) STRICT, WITHOUT ROWID;
