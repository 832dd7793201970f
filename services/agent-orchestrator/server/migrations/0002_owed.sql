-- What a team's external memory is still to be told: turns from before their first message is stored, and the ends of sessions
-- from before they are deleted. Not what was said: that stands with the session.
CREATE TABLE owed (
    number  INTEGER NOT NULL PRIMARY KEY,          -- their order
    team    TEXT    NOT NULL,
    session TEXT    NOT NULL,
    turn    TEXT    NOT NULL,                      -- empty: the end of the session
    user    TEXT    NOT NULL,
    role    TEXT    NOT NULL CHECK (role IN ('viewer', 'member', 'maintainer', 'admin')),
    since   INTEGER NOT NULL,                      -- microseconds
    UNIQUE (team, session, turn)
) STRICT;
