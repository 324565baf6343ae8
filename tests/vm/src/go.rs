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
    let (guest, address) = setup.serve(8080, &[&program.to_string_lossy()])?;
    guest.expect_answer(address, HELLO)?;
    http::load(address, "/", "hello from Go", 8, 200, Connections::Kept)
        .and_then(|()| http::load(address, "/", "hello from Go", 8, 25, Connections::Fresh))
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
