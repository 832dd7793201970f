-- What a review cost: millionths of a millionth of a dollar, and the calls whose price is not known. Reviews from before are
-- priced at nothing, which their calls do not count as: all of them are unpriced.
ALTER TABLE review ADD COLUMN cost_picodollars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE review ADD COLUMN unpriced_calls INTEGER NOT NULL DEFAULT 0;
UPDATE review SET unpriced_calls = iterations;
