-- Old answers are removed in the order of their age, and an index that lacks entries is noticed without reading the rows.
CREATE INDEX answered_by_age ON answered (created);
CREATE INDEX message_rewound ON message (doc) WHERE rewound = 1;
