//! `linkdrop`: frames that links drop.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::linkdrop::run)
}
