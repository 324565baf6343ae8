//! The program `sietch-cloud-init`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cloud_init::start::run(std::env::args_os())
}
