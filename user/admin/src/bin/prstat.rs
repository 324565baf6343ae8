//! `prstat`: where the time of threads goes.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::prstat::run)
}
