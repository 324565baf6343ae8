//! Programs under a storm of signals: interrupted calls say exactly what they moved.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "a storm of signals takes no byte from pipes, sockets and TCP, and adds none",
    keeps_bytes,
)];

/// The program's source, which the list of C programs leaves out: it takes an argument.
pub const SOURCE: &str = "tests/programs/signal_storm.c";

const SHORT_SECONDS: &str = "5";
const LONG_SECONDS: &str = "60";
/// The storm, and what the program waits after it.
const PATIENCE: Duration = Duration::from_secs(240);

fn keeps_bytes(setup: &Setup) -> Result<(), String> {
    let program = build::c(Path::new(SOURCE))?;
    let seconds = match setup.is_long() {
        true => LONG_SECONDS,
        false => SHORT_SECONDS,
    };
    let guest = setup.start(&["--net", "none", &program.to_string_lossy(), seconds])?;
    let end = guest.wait(PATIENCE)?;
    expect_status(&end, 0)
}
