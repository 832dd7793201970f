-- First answers are kept for as long as anyone repeats a request, and not for ever.

ALTER TABLE answers ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX answers_by_age ON answers (team, at);
