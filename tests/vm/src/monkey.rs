//! The system-call monkey: random calls find no panic and no hang.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "the kernel survives the monkey's random system calls",
    survives,
)];

/// The program's source, which the list of C programs leaves out: it takes arguments.
pub const SOURCE: &str = "tests/programs/monkey.c";

/// Runs that once failed come first, so that they are seen again.
const SEEDS: [&str; 2] = ["7", "1"];
const SHORT_CALLS: &str = "100000";
const LONG_CALLS: &str = "10000000";
const THREADS: &str = "4";
/// A machine that makes no progress for so long hangs.
const SHORT_PATIENCE: Duration = Duration::from_secs(300);
const LONG_PATIENCE: Duration = Duration::from_secs(4 * 3600);

fn survives(setup: &Setup) -> Result<(), String> {
    let program = build::c(Path::new(SOURCE))?;
    let (calls, patience) = match setup.is_long() {
        true => (LONG_CALLS, LONG_PATIENCE),
        false => (SHORT_CALLS, SHORT_PATIENCE),
    };
    for seed in SEEDS {
        let program = program.to_string_lossy();
        let guest = setup.start(&["--net", "none", &program, seed, calls, THREADS])?;
        guest.expect("ok the monkey made", patience)?;
        let end = guest.wait(Duration::from_secs(60))?;
        expect_status(&end, 0).map_err(|why| format!("replay with seed {seed}: {why}"))?;
    }
    Ok(())
}
