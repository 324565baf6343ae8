//! `vsaadm`: areas of disks that programs own.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::vsaadm::run)
}
