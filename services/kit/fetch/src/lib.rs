//! Fetches from outside behind one guard: no private address, no surprise redirect, no unbounded answer.
