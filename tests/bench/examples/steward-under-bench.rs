//! The `steward` command line, built with this crate's tests so that they have a real binary to start.

use std::process::ExitCode;

fn main() -> ExitCode {
    steward::command::main()
}
