//! Python's own web server.

use crate::Test;
use crate::guest::Setup;
use crate::http::{self, Connections, HELLO};

/// The tests.
pub const TESTS: &[Test] = &[("python3 -m http.server serves under load", http_server)];

fn http_server(setup: &Setup) -> Result<(), String> {
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    let publish = format!("127.0.0.1:{port}:8000");
    let args = [
        "-p",
        &publish,
        "-w",
        "/etc",
        "/usr/bin/python3",
        "-m",
        "http.server",
        "8000",
    ];
    let guest = setup.start(&args)?;
    guest.expect_port(port, HELLO)?;
    http::load(port, "/hosts", "localhost", 4, 25, Connections::Fresh)
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
