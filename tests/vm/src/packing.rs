//! What packing leaves out, and what it finds: files that a program lacks, its shell, images of programs of this host.

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::images::said;
use crate::status::expect_status;

/// The tests, which one CPU more or less changes nothing of.
pub const TESTS: &[Test] = &[
    (
        "a packed program that lacks files of the host is told the flags that bring them",
        lacks,
    ),
    (
        "a program of the host is an image by its name, with the shell that it calls",
        imaged,
    ),
];

/// Perl's own modules are in none of its headers; the first one is nowhere.
const PERL: &[&str] = &[
    "--net",
    "none",
    "perl",
    "-e",
    "eval { require Nowhere }; require strict; print 6 * 7",
];

fn lacks(setup: &Setup) -> Result<(), String> {
    let end = setup.start(PERL)?.wait(BOOT_PATIENCE)?;
    let lines = end.console.lines();
    let hints: Vec<&str> = lines
        .filter(|line| line.contains("looked in vain"))
        .collect();
    let flags: Vec<&str> = hints.iter().filter_map(|line| flag(line)).collect();
    let is_of_host = |line: &&str| !line.contains("Nowhere");
    if end.status == 0 || flags.is_empty() || !hints.iter().all(is_of_host) {
        return Err(format!("status {}: {}", end.status, end.console));
    }
    let flags: Vec<&str> = flags.iter().flat_map(|flag| ["-v", flag]).collect();
    let end = setup.start(&[&flags, PERL].concat())?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    match end.console.contains("in vain") {
        true => Err(format!("one that succeeds lacks nothing: {}", end.console)),
        false => Ok(()),
    }
}

/// `... -v HOST:GUEST:ro brings it.`
fn flag(line: &str) -> Option<&str> {
    line.split_once(" -v ")?.1.split(' ').next()
}

fn imaged(setup: &Setup) -> Result<(), String> {
    const NAME: &str = "own/calc:1";
    let made = said(&["build", "-t", NAME, "--from", "sqlite3"])?;
    if said(&["build", "-t", NAME, "sqlite3"])? != made {
        return Err("the same program is another image the second time".into());
    }
    if !said(&["images"])?.contains("own/calc") {
        return Err("`sietch images` does not list it".into());
    }
    let args = [
        NAME,
        ":memory:",
        ".shell echo it calls a shell",
        "select 6*7",
    ];
    let end = setup.start(&args)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    match end.console.contains("it calls a shell") && end.console.contains("42") {
        true => said(&["rmi", NAME]).map(drop),
        false => Err(format!("it says {:?}", end.console)),
    }
}
