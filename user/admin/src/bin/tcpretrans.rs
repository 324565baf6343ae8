//! `tcpretrans`: segments that are sent again.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::tcpwatch::retransmits)
}
