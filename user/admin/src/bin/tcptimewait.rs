//! `tcptimewait`: segments that come for connections that are over.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::tcpwatch::time_waits)
}
