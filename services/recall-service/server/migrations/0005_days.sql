-- The index knows the day of a message. It is made anew when the file is opened, since its tokenizer is another one now.
DROP VIEW message_text;
CREATE VIEW message_text (doc, said, tool, day) AS
SELECT doc, CASE role WHEN 'tool' THEN '' ELSE said END, CASE role WHEN 'tool' THEN said ELSE tool_text END,
       replace(strftime('#y%Y#m%m#d%d', created / 1000000, 'unixepoch'), '#', char(2))
FROM message WHERE rewound = 0;
