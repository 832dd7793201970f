//! The `steward` binary. What it does stands in [`steward::command`].

use std::process::ExitCode;

fn main() -> ExitCode {
    steward::command::main()
}
