-- Sessions of one team: the one copy of every conversation, the index over it, and the outbox of due reviews.
-- Times are microseconds since the Unix epoch, UTC. The tokenizer `steward` must be registered on the connection.

CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Rows of `session` and `message` can be large. They are ordinary tables, since comparing keys WITHOUT ROWID reads whole
-- rows; and what lists and searches look at stands before the large columns, so that those are not read.
CREATE TABLE session (
    team TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    source TEXT NOT NULL,
    title TEXT NOT NULL,
    parent TEXT,
    lineage_reason TEXT,
    root TEXT NOT NULL,
    project TEXT NOT NULL,
    model TEXT NOT NULL,
    skip_review INTEGER NOT NULL,
    skip_memory INTEGER NOT NULL,
    turns_since_memory INTEGER NOT NULL,
    iterations_since_skill INTEGER NOT NULL,
    user_turns INTEGER NOT NULL,
    prefix_tools_sha256 TEXT NOT NULL,
    prefix_system_sha256 TEXT NOT NULL,
    prefix_messages_bytes INTEGER NOT NULL,
    prefix_messages_sha256 TEXT NOT NULL,
    planned_breaks INTEGER NOT NULL,
    unplanned_breaks INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    last_break_reason TEXT NOT NULL,
    usage_input INTEGER,
    usage_cached_input INTEGER,
    usage_cache_write INTEGER,
    usage_output INTEGER,
    last_seq INTEGER NOT NULL,
    open_calls TEXT NOT NULL,
    lowest_integrity INTEGER NOT NULL,
    open_turn TEXT,
    lease_fence INTEGER NOT NULL,
    lease_turn TEXT,
    lease_holder TEXT,
    lease_expires INTEGER,
    created INTEGER NOT NULL,
    last_active INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    client_tools TEXT NOT NULL,
    system_prompt TEXT NOT NULL,
    tools_json TEXT NOT NULL,
    PRIMARY KEY (team, id)
) STRICT;

CREATE INDEX session_by_activity ON session (team, user, last_active DESC, id DESC);

CREATE TABLE exposure (
    team TEXT NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    artifact TEXT NOT NULL,
    revision TEXT NOT NULL,
    stage TEXT NOT NULL,
    assignment_unit TEXT NOT NULL,
    arm TEXT NOT NULL,
    propensity REAL,
    created INTEGER NOT NULL,
    PRIMARY KEY (team, session, number),
    FOREIGN KEY (team, session) REFERENCES session (team, id)
) STRICT, WITHOUT ROWID;

-- `doc` ties a row to its entry in the index. It is a column of its own, since an implicit rowid may change when the
-- file is compacted.
CREATE TABLE message (
    team TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    doc INTEGER NOT NULL,
    role TEXT NOT NULL,
    rewound INTEGER NOT NULL DEFAULT 0,
    compacted INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    tool_call_id TEXT,
    tool_name TEXT,
    is_error INTEGER NOT NULL,
    usage_input INTEGER,
    usage_cached_input INTEGER,
    usage_cache_write INTEGER,
    usage_output INTEGER,
    model TEXT NOT NULL,
    integrity INTEGER NOT NULL,
    turn TEXT NOT NULL,
    said TEXT NOT NULL,
    sent TEXT,
    spans TEXT NOT NULL,
    tool_calls TEXT NOT NULL,
    tool_text TEXT NOT NULL,
    PRIMARY KEY (team, session, seq),
    FOREIGN KEY (team, session) REFERENCES session (team, id)
) STRICT;

CREATE UNIQUE INDEX message_doc ON message (doc);

CREATE TABLE turn (
    team TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    iterations INTEGER NOT NULL,
    segments INTEGER NOT NULL,
    error_reason TEXT NOT NULL,
    error_message TEXT NOT NULL,
    created INTEGER NOT NULL,
    ended INTEGER,
    PRIMARY KEY (team, session, id),
    FOREIGN KEY (team, session) REFERENCES session (team, id)
) STRICT, WITHOUT ROWID;

-- The outbox. A row stays until the worker has the review safe in its own queue.
CREATE TABLE due_review (
    team TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    memory INTEGER NOT NULL,
    skills INTEGER NOT NULL,
    to_seq INTEGER NOT NULL,
    turn TEXT NOT NULL,
    traceparent TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (team, session, id),
    FOREIGN KEY (team, session) REFERENCES session (team, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX due_review_by_age ON due_review (created, id);

-- First answers by request id: a retry is answered from here and changes nothing.
CREATE TABLE answered (
    team TEXT NOT NULL,
    scope TEXT NOT NULL,
    request_id TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    answer TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (team, scope, request_id)
) STRICT, WITHOUT ROWID;

-- What the index covers: everything but what a person has undone.
CREATE VIEW message_text (doc, said, tool) AS
SELECT doc, CASE role WHEN 'tool' THEN '' ELSE said END, tool_text FROM message WHERE rewound = 0;

CREATE VIRTUAL TABLE message_index USING fts5 (
    said, tool, content = 'message_text', content_rowid = 'doc', tokenize = 'steward'
);
