//! Small machines survive programs that take all they can get of something.
//!
//! Each way runs again and again in one machine; what each run after the first takes and
//! does not give back is lost. One such run may leave frames in the caches of objects,
//! whose working set is looked at every few seconds; a way that loses loses each time.
//! A machine that does not survive is left behind, and the next one goes on with the
//! next way.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Test;
use crate::build::{self, Link};
use crate::counters::Counters;
use crate::guest::Setup;
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[(
    "a machine of 64 MiB survives programs that take all they can get",
    |setup| survive(setup, "64M"),
)];
/// The same with more of everything.
pub const TESTS_OF_128_MIB: &[Test] = &[(
    "a machine of 128 MiB survives programs that take all they can get",
    |setup| survive(setup, "128M"),
)];

const PROGRAM: &str = "tests/harness/exhaust.c";
const WAYS: [&str; 23] = [
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
    "maps",
    "queues",
    "notices",
    "groups",
];
/// How long one run may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Frames that may be missing after a run: a machine takes tens of thousands, and what
/// each CPU keeps at hand differs.
const FRAMES_MAX: i64 = 256;
/// Runs after the first one that must all lose before a way is said to lose.
const RUNS_MAX: usize = 3;

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
        match run_again(&mut operator, way) {
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

/// How many frames a run after the first did not give back.
fn run_again(operator: &mut Operator, way: &str) -> Result<i64, String> {
    let line = format!("exhaust {way}; echo status $?");
    operator.ask_within(&line, PATIENCE)?;
    let mut before = Counters::read(operator)?;
    let mut losses = Vec::new();
    for _ in 0..RUNS_MAX {
        let said = operator.ask_within(&line, PATIENCE)?;
        // It ends by itself, or is killed because memory is out.
        if !said.contains("status 0") && !said.contains("status 137") {
            return Err(format!("it ended in another way: {said:?}"));
        }
        let after = Counters::read(operator)?;
        let frames = (before.free_kib as i64 - after.free_kib as i64) / 4;
        let is_even = (before.files, before.sockets) == (after.files, after.sockets);
        if is_even && frames <= FRAMES_MAX {
            return Ok(frames);
        }
        losses.push(format!("{before:?} before, {after:?} after"));
        before = after;
    }
    Err(losses.join("; "))
}
