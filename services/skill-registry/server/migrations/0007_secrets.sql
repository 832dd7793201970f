-- The secrets of a team: values for environment variables that skills need, sealed before they get here.

CREATE TABLE secrets (
    team   TEXT    NOT NULL,
    name   TEXT    NOT NULL,                       -- of the variable
    key    TEXT    NOT NULL,                       -- which key sealed it
    sealed BLOB    NOT NULL,                       -- nonce, ciphertext, tag; bound to team, name and key
    author TEXT    NOT NULL,                       -- user id; empty for none
    set_at INTEGER NOT NULL,                       -- microseconds since 1970
    PRIMARY KEY (team, name)
) STRICT;
