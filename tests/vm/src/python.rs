//! Python's own web server.

use crate::Test;
use crate::guest::Setup;
use crate::http::{self, Connections, HELLO};

/// The tests.
pub const TESTS: &[Test] = &[("python3 -m http.server serves under load", http_server)];

fn http_server(setup: &Setup) -> Result<(), String> {
    let args = [
        "-w",
        "/etc",
        "/usr/bin/python3",
        "-m",
        "http.server",
        "8000",
    ];
    let (guest, address) = setup.serve(8000, &args)?;
    guest.expect_answer(address, HELLO)?;
    http::load(address, "/hosts", "localhost", 4, 25, Connections::Fresh)
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
