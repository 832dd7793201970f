-- What schedules name, what is hidden, which snapshots were dropped, and a number that changes with everything that a
-- listing shows.

CREATE TABLE skill_references (
    team   TEXT NOT NULL,
    holder TEXT NOT NULL,                           -- resource name of the schedule
    skill  TEXT NOT NULL,
    PRIMARY KEY (team, holder, skill),
    FOREIGN KEY (team, skill) REFERENCES skills (team, uid) ON DELETE CASCADE
) STRICT;

CREATE INDEX skill_references_by_skill ON skill_references (team, skill);

-- Runs whose snapshot was dropped for newer ones: what they did cannot be undone, while a run without a snapshot did
-- nothing.
CREATE TABLE dropped_snapshots (
    team TEXT NOT NULL,
    run  TEXT NOT NULL,
    PRIMARY KEY (team, run)
) STRICT;

CREATE TRIGGER library_snapshots_dropped AFTER DELETE ON library_snapshots BEGIN
    INSERT OR IGNORE INTO dropped_snapshots (team, run) VALUES (old.team, old.run);
END;

-- Usage is not in it: a look changes no listing.
CREATE TABLE listings (
    team       TEXT    NOT NULL PRIMARY KEY,
    generation INTEGER NOT NULL
) STRICT;

CREATE TRIGGER skills_listed AFTER INSERT ON skills BEGIN
    INSERT INTO listings (team, generation) VALUES (new.team, 1)
    ON CONFLICT (team) DO UPDATE SET generation = generation + 1;
END;

CREATE TRIGGER skills_changed AFTER UPDATE OF scope, owner, category, name, provenance, pinned, protected, archived,
    version, revision, header ON skills BEGIN
    INSERT INTO listings (team, generation) VALUES (new.team, 1)
    ON CONFLICT (team) DO UPDATE SET generation = generation + 1;
END;

CREATE TRIGGER skills_unlisted AFTER DELETE ON skills BEGIN
    INSERT INTO listings (team, generation) VALUES (old.team, 1)
    ON CONFLICT (team) DO UPDATE SET generation = generation + 1;
END;

-- Skills that a person, or with an empty owner the team, does not want to be offered.
CREATE TABLE hidden_skills (
    team  TEXT NOT NULL,
    owner TEXT NOT NULL,
    skill TEXT NOT NULL,
    PRIMARY KEY (team, owner, skill),
    FOREIGN KEY (team, skill) REFERENCES skills (team, uid) ON DELETE CASCADE
) STRICT;

CREATE INDEX hidden_skills_by_skill ON hidden_skills (team, skill);

CREATE TRIGGER skills_hidden AFTER INSERT ON hidden_skills BEGIN
    INSERT INTO listings (team, generation) VALUES (new.team, 1)
    ON CONFLICT (team) DO UPDATE SET generation = generation + 1;
END;

CREATE TRIGGER skills_shown AFTER DELETE ON hidden_skills BEGIN
    INSERT INTO listings (team, generation) VALUES (old.team, 1)
    ON CONFLICT (team) DO UPDATE SET generation = generation + 1;
END;

-- A folder outside may hold a name in several categories.
DROP INDEX skills_active_name;
CREATE UNIQUE INDEX skills_active_name ON skills (team, scope, owner, name) WHERE archived = 0 AND scope <> 'external';
