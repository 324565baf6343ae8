//! Small machines survive programs that take all they can get of something.
//!
//! Each way runs twice in one machine; what the second run takes and does not give
//! back is lost. A machine that does not survive is left behind, and the next one goes
//! on with the next way.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Test;
use crate::build::{self, Link};
use crate::counters::Counters;
use crate::guest::Setup;
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a machine of 128 MiB survives programs that take all they can get",
        |setup| survive(setup, "128M"),
    ),
    (
        "a machine of 64 MiB survives programs that take all they can get",
        |setup| survive(setup, "64M"),
    ),
];

const PROGRAM: &str = "tests/harness/exhaust.c";
const WAYS: [&str; 19] = [
    "forks",
    "threads",
    "sockets",
    "datagrams",
    "unix",
    "pipes",
    "events",
    "timers",
    "watched",
    "memfiles",
    "notifiers",
    "areas",
    "tables",
    "files",
    "folders",
    "data",
    "locks",
    "signals",
    "clocks",
];
/// How long one run may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Frames that may be missing after the second run of a way: a machine takes tens of
/// thousands, and what each CPU keeps at hand differs.
const FRAMES_MAX: i64 = 256;

fn survive(setup: &Setup, memory: &str) -> Result<(), String> {
    let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
    let program = format!("{}:/bin/exhaust", program.display());
    let flags = ["-m", memory, "--add", &program];
    let mut machine = None;
    let mut failures = Vec::new();
    for way in WAYS {
        let mut operator = match machine.take() {
            Some(operator) => operator,
            None => Operator::start(setup, 1, &flags)?.0,
        };
        let start = Instant::now();
        match run_twice(&mut operator, way) {
            Ok(frames) => println!(
                "     {way}: {frames} frames missing, {:.1} s",
                start.elapsed().as_secs_f32()
            ),
            Err(why) => failures.push(format!("{way}: {why}")),
        }
        // Whether it still answers.
        if operator.ask("true").is_ok() {
            machine = Some(operator);
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n     ")),
    }
}

/// How many frames the second run did not give back.
fn run_twice(operator: &mut Operator, way: &str) -> Result<i64, String> {
    let line = format!("exhaust {way}; echo status $?");
    operator.ask_within(&line, PATIENCE)?;
    let before = Counters::read(operator)?;
    let said = operator.ask_within(&line, PATIENCE)?;
    // It ends by itself, or is killed because memory is out.
    if !said.contains("status 0") && !said.contains("status 137") {
        return Err(format!("it ended in another way: {said:?}"));
    }
    let after = Counters::read(operator)?;
    let frames = (before.free_kib as i64 - after.free_kib as i64) / 4;
    let is_even = (before.files, before.sockets) == (after.files, after.sockets);
    match is_even && frames <= FRAMES_MAX {
        true => Ok(frames),
        false => Err(format!("{before:?} before, {after:?} after")),
    }
}
