//! `npcc-switch`: one binary, the appliance and its tools.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    npcc_switch::cli::main()
}
