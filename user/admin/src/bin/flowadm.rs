//! `flowadm`: flows and their properties.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::flowadm::run)
}
