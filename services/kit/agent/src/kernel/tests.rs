//! The loop against a scripted model over real HTTP, a transcript in memory and tools that count.
