//! The agent kernel: loop, prompt assembly, tool dispatch, digest.
