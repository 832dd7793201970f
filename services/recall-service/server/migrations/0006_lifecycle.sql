-- A summary stands in the context at the place where what it replaces began; `replaces_to` is the last place of that. Other
-- messages have neither.
ALTER TABLE message ADD COLUMN place INTEGER;
ALTER TABLE message ADD COLUMN replaces_to INTEGER;
CREATE INDEX message_summary ON message (session, place) WHERE place IS NOT NULL;

-- Ids of sessions that were deleted: what comes late is refused, and told why.
CREATE TABLE deleted_session (
    team TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    deleted INTEGER NOT NULL,
    PRIMARY KEY (team, id)
) STRICT, WITHOUT ROWID;

-- Calls that wait for a client are looked through in the order of nothing: there are few.
CREATE INDEX session_waiting ON session (number) WHERE open_calls <> '[]';
