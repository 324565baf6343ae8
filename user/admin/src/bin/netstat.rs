//! `netstat`: sockets, routes, and what the protocols have counted.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    admin::start(admin::netstat::run)
}
