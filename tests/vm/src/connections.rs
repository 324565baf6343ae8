//! Many TCP connections in one machine: small and silent while idle, and all of them served.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::Setup;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "twenty thousand ends of TCP connections are small and silent while idle, and all work at once",
    many,
)];

const PROGRAM: &str = "tests/harness/connections.c";
const PATIENCE: Duration = Duration::from_secs(200);
/// Kernel memory of one end: socket, opening, descriptor and what epoll keeps.
const BYTES_MAX: u64 = 2048;
/// In two seconds. A machine that ticks or polls has thousands.
const INTERRUPTS_MAX: u64 = 100;

fn many(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
    let guest = setup.start(&["--net", "none", &program.to_string_lossy()])?;
    let end = guest.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    let bytes = number(&end.console, "bytes for each end: ")?;
    let interrupts = number(&end.console, "interrupts in two seconds: ")?;
    println!("     {bytes} bytes an end, {interrupts} interrupts");
    if setup.is_linux() {
        return Ok(());
    }
    match bytes <= BYTES_MAX && interrupts <= INTERRUPTS_MAX {
        true => Ok(()),
        false => Err(end.console),
    }
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    let said = text.lines().find_map(|line| line.strip_prefix(name));
    let number = said.and_then(|said| said.trim().parse().ok());
    number.ok_or_else(|| format!("no {name:?} in {text:?}"))
}
