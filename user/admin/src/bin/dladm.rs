//! `dladm`: links, VNICs, VLANs and their properties.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::dladm::run)
}
