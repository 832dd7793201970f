-- Jobs that have ended are counted as they end, so that nobody has to count all that ever were.
CREATE TABLE queue_ended (
    state TEXT NOT NULL PRIMARY KEY,
    jobs INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO queue_ended (state, jobs)
    SELECT state, count(*) FROM queue_job WHERE state NOT IN ('waiting', 'running') GROUP BY state;

CREATE TRIGGER queue_job_moved AFTER UPDATE OF state ON queue_job WHEN old.state <> new.state BEGIN
    UPDATE queue_ended SET jobs = jobs - 1 WHERE state = old.state;
    INSERT INTO queue_ended (state, jobs) SELECT new.state, 1 WHERE new.state NOT IN ('waiting', 'running')
        ON CONFLICT (state) DO UPDATE SET jobs = jobs + 1;
END;

CREATE TRIGGER queue_job_removed AFTER DELETE ON queue_job BEGIN
    UPDATE queue_ended SET jobs = jobs - 1 WHERE state = old.state;
END;

-- When the row was last changed, by the store's clock: a clock that was set back goes on from the latest.
ALTER TABLE queue_job ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;
UPDATE queue_job SET changed_at = created_at WHERE state IN ('waiting', 'running');

-- Only a waiting job is looked for by what it is about; the few that run are looked through.
DROP INDEX queue_job_matter;
CREATE INDEX queue_job_matter ON queue_job (team, kind, merge_key, seq) WHERE state = 'waiting' AND merge_key IS NOT NULL;
