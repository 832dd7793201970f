-- The index follows the messages. What has a number up to `covered` is in it; what comes later is added by whoever searches
-- next, or in the background, whichever is first. Numbers are given beyond `covered`, so that one that was freed by a deletion
-- is not taken for one that is in the index.
CREATE TABLE index_state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    covered INTEGER NOT NULL
) STRICT;

INSERT INTO index_state SELECT 1, coalesce(max(doc), 0) FROM message;

-- What the index holds: everything up to there but what a person has undone.
DROP VIEW message_text;
CREATE VIEW message_text (doc, said, tool, day) AS
SELECT doc, CASE role WHEN 'tool' THEN '' ELSE said END, CASE role WHEN 'tool' THEN said ELSE tool_text END,
       replace(strftime('#y%Y#m%m#d%d', created / 1000000, 'unixepoch'), '#', char(2))
FROM message WHERE rewound = 0 AND doc <= (SELECT covered FROM index_state);
