//! Judges an unpacked skill: structure, threats, capabilities, coverage; pure, no IO.
