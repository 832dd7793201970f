//! Configuration layers, lifecycle, supervised tasks, failpoints and logs.
