//! The `steward` binary with failpoints: what the scenarios start, kill and start again.

use std::process::ExitCode;

fn main() -> ExitCode {
    steward::command::main()
}
