//! `tcpdrop`: segments that are dropped.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::tcpwatch::drops)
}
