-- Teams, users and tokens. Of a token only its id is kept, never its text.

CREATE TABLE team (
    team         TEXT    NOT NULL PRIMARY KEY,
    display_name TEXT    NOT NULL,
    home         INTEGER NOT NULL CHECK (home IN (0, 1)),
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- An installation has one home team.
CREATE UNIQUE INDEX team_home ON team (home) WHERE home = 1;

CREATE TABLE user (
    team         TEXT    NOT NULL REFERENCES team (team),
    user         TEXT    NOT NULL,
    display_name TEXT    NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('viewer', 'member', 'maintainer', 'admin')),
    disabled     INTEGER NOT NULL CHECK (disabled IN (0, 1)),
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (team, user)
) STRICT, WITHOUT ROWID;

CREATE INDEX user_disabled ON user (team, user) WHERE disabled = 1;

CREATE TABLE token (
    team       TEXT    NOT NULL,
    token      TEXT    NOT NULL,
    user       TEXT    NOT NULL,
    label      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (team, token),
    FOREIGN KEY (team, user) REFERENCES user (team, user)
) STRICT, WITHOUT ROWID;

CREATE INDEX token_user ON token (team, user, token);
CREATE INDEX token_revoked ON token (expires_at) WHERE revoked_at IS NOT NULL;

-- First answers of requests that carried an id, so that a repeated one changes nothing.
CREATE TABLE request (
    team       TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    answer     TEXT    NOT NULL,
    PRIMARY KEY (team, scope, request_id)
) STRICT, WITHOUT ROWID;
