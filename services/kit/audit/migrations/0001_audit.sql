-- The audit log of one process. Rows are added and, after a time, removed; none is ever changed.
CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Empty for a call without a team.
    team TEXT NOT NULL,
    -- Microseconds since the Unix epoch.
    time INTEGER NOT NULL,
    service TEXT NOT NULL,
    method TEXT NOT NULL,
    -- Numbers of the contract: PrincipalKind, Role, Origin.
    kind INTEGER NOT NULL,
    user TEXT NOT NULL,
    role INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    caller TEXT NOT NULL,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    session TEXT NOT NULL,
    token TEXT NOT NULL,
    -- `field=value`, one a line.
    resources TEXT NOT NULL,
    request TEXT NOT NULL,
    peer TEXT NOT NULL,
    -- Numbers of the contract: AuditOutcome, google.rpc.Code.
    outcome INTEGER NOT NULL,
    code INTEGER NOT NULL,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL CHECK (count > 0)
) STRICT;

CREATE INDEX event_of_team ON event (team, time, id);
