//! Test tools: mock clock, scripted model server, temporary folders, condition waits.
