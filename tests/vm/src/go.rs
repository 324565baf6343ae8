//! A static Go program: the Go runtime makes its system calls itself.

use std::path::Path;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::http::{self, Connections, HELLO};

/// The tests.
pub const TESTS: &[Test] = &[("a static Go server serves under load", server)];

fn server(setup: &Setup) -> Result<(), String> {
    let program = build::go(Path::new("tests/programs/http_server.go"))?;
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    let publish = format!("127.0.0.1:{port}:8080");
    let guest = setup.start(&["-p", &publish, &program.to_string_lossy()])?;
    guest.expect_port(port, HELLO)?;
    http::load(port, "/", "hello from Go", 8, 200, Connections::Kept)
        .and_then(|()| http::load(port, "/", "hello from Go", 8, 25, Connections::Fresh))
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
