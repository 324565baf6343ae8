//! `ipadm`: addresses and routes that outlast a restart.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::ipadm::run)
}
