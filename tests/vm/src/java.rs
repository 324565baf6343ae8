//! OpenJDK: a just-in-time compiler, a collector and a pool of threads.

use std::path::Path;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::http::{self, Connections, HELLO};
use crate::userland::FOLDERS;

/// The tests.
pub const TESTS: &[Test] = &[("a server on OpenJDK serves under load", server)];

fn server(setup: &Setup) -> Result<(), String> {
    let classes = build::java(Path::new("tests/harness/Greeter.java"))?;
    let classes = format!("{}:/classes:ro", classes.display());
    let machine = ["--memory", "1G", "--volume", &classes];
    let program = ["/usr/bin/java", "-cp", "/classes", "Greeter"];
    let args = [&machine, FOLDERS, &program].concat();
    let (guest, address) = setup.serve(8080, &args)?;
    guest.expect_answer(address, HELLO)?;
    http::load(address, "/", "hello from Java", 8, 40, Connections::Kept)
        .and_then(|()| http::load(address, "/", "hello from Java", 8, 10, Connections::Fresh))
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
