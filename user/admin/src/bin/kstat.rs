//! `kstat`: the kernel's statistics by module, instance, name and statistic.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::kstat::run)
}
