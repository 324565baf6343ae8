//! `use`: utilisation, saturation and errors of all resources.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::resources::run)
}
