-- Rows that are written with every append become small: sessions and messages are known by numbers within the file, what a
-- session's requests begin with stands in a table of its own, and no text is stored twice. All rows are kept; the index is
-- too, since a message keeps its `doc`.
DROP VIEW message_text;

CREATE TABLE session_2 (
    number INTEGER PRIMARY KEY,
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
    UNIQUE (team, id)
) STRICT;

INSERT INTO session_2 SELECT rowid, team, id, user, source, title, parent, lineage_reason, root, project, model, skip_review,
    skip_memory, turns_since_memory, iterations_since_skill, user_turns, prefix_tools_sha256, prefix_system_sha256,
    prefix_messages_bytes, prefix_messages_sha256, planned_breaks, unplanned_breaks, requests, last_break_reason, usage_input,
    usage_cached_input, usage_cache_write, usage_output, last_seq, open_calls, lowest_integrity, open_turn, lease_fence,
    lease_turn, lease_holder, lease_expires, created, last_active, revision FROM session;

-- What every request of a session begins with. Large, read when a turn begins, written when the session is created and
-- between two turns.
CREATE TABLE session_prompt (
    session INTEGER PRIMARY KEY REFERENCES session_2 (number),
    client_tools TEXT NOT NULL,
    stable_prompt_bytes INTEGER NOT NULL,
    system_prompt TEXT NOT NULL,
    tools_json TEXT NOT NULL,
    setup BLOB NOT NULL
) STRICT;

INSERT INTO session_prompt SELECT rowid, client_tools, stable_prompt_bytes, system_prompt, tools_json, setup FROM session;

-- `doc` ties a row to its entry in the index. `tool_text` holds the names and arguments of calls; what a tool returned is
-- its message's `said`. The large columns stand last, so that who does not ask for them does not read them.
CREATE TABLE message_2 (
    doc INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session_2 (number),
    seq INTEGER NOT NULL,
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
    native_provider TEXT,
    native_model TEXT,
    native_blocks TEXT,
    UNIQUE (session, seq)
) STRICT;

INSERT INTO message_2 SELECT m.doc, s.rowid, m.seq, m.role, m.rewound, m.compacted, m.created, m.tool_call_id, m.tool_name,
    m.is_error, m.usage_input, m.usage_cached_input, m.usage_cache_write, m.usage_output, m.model, m.integrity, m.turn,
    m.said, m.sent, m.spans, m.tool_calls, CASE m.role WHEN 'tool' THEN '' ELSE m.tool_text END, m.native_provider,
    m.native_model, m.native_blocks FROM message m JOIN session s ON s.team = m.team AND s.id = m.session ORDER BY m.doc;

CREATE TABLE exposure_2 (
    session INTEGER NOT NULL REFERENCES session_2 (number),
    number INTEGER NOT NULL,
    artifact TEXT NOT NULL,
    revision TEXT NOT NULL,
    stage TEXT NOT NULL,
    assignment_unit TEXT NOT NULL,
    arm TEXT NOT NULL,
    propensity REAL,
    created INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

INSERT INTO exposure_2 SELECT s.rowid, e.number, e.artifact, e.revision, e.stage, e.assignment_unit, e.arm, e.propensity,
    e.created FROM exposure e JOIN session s ON s.team = e.team AND s.id = e.session;

CREATE TABLE turn_2 (
    session INTEGER NOT NULL REFERENCES session_2 (number),
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
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

INSERT INTO turn_2 SELECT s.rowid, t.id, t.state, t.first_seq, t.last_seq, t.iterations, t.segments, t.error_reason,
    t.error_message, t.created, t.ended FROM turn t JOIN session s ON s.team = t.team AND s.id = t.session;

CREATE TABLE due_review_2 (
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
    FOREIGN KEY (team, session) REFERENCES session_2 (team, id)
) STRICT, WITHOUT ROWID;

INSERT INTO due_review_2 SELECT * FROM due_review;

-- First answers by request id: a retry is answered from here and changes nothing. `session` is 0 for creations. Rows are
-- added at the end and removed at the beginning.
CREATE TABLE answered_2 (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    created INTEGER NOT NULL,
    answer TEXT NOT NULL
) STRICT;

INSERT INTO answered_2 (session, request_id, request_hash, created, answer)
SELECT coalesce(s.rowid, 0), a.request_id, CASE WHEN length(a.request_hash) = 64 THEN unhex(a.request_hash)
    ELSE CAST(a.request_hash AS BLOB) END, a.created, a.answer
FROM answered a LEFT JOIN session s ON s.team = a.team AND a.scope = 'sessions/' || s.id ORDER BY a.created;

DROP TABLE due_review;
DROP TABLE turn;
DROP TABLE exposure;
DROP TABLE message;
DROP TABLE answered;
DROP TABLE session;
ALTER TABLE session_2 RENAME TO session;
ALTER TABLE message_2 RENAME TO message;
ALTER TABLE exposure_2 RENAME TO exposure;
ALTER TABLE turn_2 RENAME TO turn;
ALTER TABLE due_review_2 RENAME TO due_review;
ALTER TABLE answered_2 RENAME TO answered;

CREATE INDEX session_by_activity ON session (team, user, last_active DESC, id DESC);
CREATE INDEX due_review_by_age ON due_review (created, id);
CREATE UNIQUE INDEX answered_request ON answered (session, request_id);
CREATE INDEX message_rewound ON message (doc) WHERE rewound = 1;

-- What the index covers: everything but what a person has undone.
CREATE VIEW message_text (doc, said, tool) AS
SELECT doc, CASE role WHEN 'tool' THEN '' ELSE said END, CASE role WHEN 'tool' THEN said ELSE tool_text END
FROM message WHERE rewound = 0;
