-- What a session's prompt was assembled from, how much of it is stable, and the model's words in their provider's form.
-- They stand last in their rows, so that who does not ask for them does not read them.
ALTER TABLE session ADD COLUMN stable_prompt_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN setup BLOB NOT NULL DEFAULT x'';
ALTER TABLE message ADD COLUMN native_provider TEXT;
ALTER TABLE message ADD COLUMN native_model TEXT;
ALTER TABLE message ADD COLUMN native_blocks TEXT;
