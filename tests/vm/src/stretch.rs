//! How long the kernel keeps a CPU from everybody else: at most a million instructions.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "no call keeps the CPU from others for more than a million instructions",
    is_bounded,
)];

/// The program's source, which the list of C programs leaves out: it takes an argument.
pub const SOURCE: &str = "tests/programs/stretch.c";

/// Processes, threads and names that the program makes.
const SHORT_COUNT: &str = "300";
const LONG_COUNT: &str = "2500";
const SHORT_PATIENCE: Duration = Duration::from_secs(300);
const LONG_PATIENCE: Duration = Duration::from_secs(3600);

fn is_bounded(setup: &Setup) -> Result<(), String> {
    if setup.is_linux() {
        return Ok(());
    }
    let program = build::c(Path::new(SOURCE))?;
    let program = program.to_string_lossy();
    let (count, patience) = match setup.is_long() {
        true => (LONG_COUNT, LONG_PATIENCE),
        false => (SHORT_COUNT, SHORT_PATIENCE),
    };
    let args = ["--net", "none", "--memory", "2G", &program, count];
    let guest = setup.counted().start(&args)?;
    let end = guest.wait(patience)?;
    let failed: Vec<&str> = end
        .console
        .lines()
        .filter(|line| line.starts_with("not ok"))
        .collect();
    match failed.as_slice() {
        [] => expect_status(&end, 0),
        failed => Err(failed.join("; ")),
    }
}
