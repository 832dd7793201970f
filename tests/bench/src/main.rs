//! `steward-bench NAME --json`. What it does stands in [`steward_bench`].

use std::process::ExitCode;

fn main() -> ExitCode {
    steward_bench::main()
}
