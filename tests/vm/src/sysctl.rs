//! Settings of the network, changed by Debian's sysctl(8).

use crate::Test;
use crate::build;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "sysctl changes what the network does, and is refused what it cannot",
    settings,
)];

const PYTHON: &str = "/usr/bin/python3";

fn settings(setup: &Setup) -> Result<(), String> {
    let modules = build::python_library()?;
    let args = [
        "-m",
        "512M",
        "--add",
        &modules,
        "--add",
        "/usr/sbin/sysctl:/sbin/sysctl",
        "--add",
        "tests/harness/settings.py:/settings.py",
        PYTHON,
        "/settings.py",
    ];
    let end = setup.start(&args)?.wait(2 * BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    match end.console.contains("all settings do what they say") {
        true => Ok(()),
        false => Err(format!("it ended early: {}", end.console)),
    }
}
