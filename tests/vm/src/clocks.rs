//! A machine's clocks beside the host's, asked from outside while the host is busy.
//!
//! A reading of the machine's clocks happens at some moment between our question and its
//! answer. Of many questions the one with the least between is taken, so what a pause of
//! the host could hide is known and small.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use qemu::Qmp;
use rustix::process::{Pid, Signal, kill_process};

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Guest, Setup, state_folder};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "clocks of machines that boot on a busy host run right within a thousandth",
        run_right_on_a_busy_host,
    ),
    (
        "clocks run on while the host keeps the machine's process from running",
        run_on_in_a_frozen_process,
    ),
    (
        "the wall clock follows the host after its monitor stopped the machine",
        follows_over_a_stop,
    ),
];

const PROGRAM: &str = "tests/harness/clocks.c";
const AT_ONCE: usize = 4;
const LONG_ROUNDS: usize = 16;
const BUSY_LOOPS: usize = 2;
const SHORT_SPAN: Duration = Duration::from_secs(15);
const LONG_SPAN: Duration = Duration::from_secs(60);
/// The clocks may be off by one part in so many.
const SHARE: u32 = 1000;
const QUESTIONS: usize = 40;
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// A span that is between two.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: Duration,
    most: Duration,
}

/// What a machine's clocks showed, and between which moments of the host's.
#[derive(Clone, Copy, Debug)]
struct Reading {
    before: (Instant, SystemTime),
    after: (Instant, SystemTime),
    monotonic: Duration,
    realtime: Duration,
}

impl Reading {
    fn width(&self) -> Duration {
        self.after.0 - self.before.0
    }

    /// How long it was by the host's monotonic clock from `start` to here.
    fn since(&self, start: &Self) -> Bounds {
        Bounds {
            least: self.before.0 - start.after.0,
            most: self.after.0 - start.before.0,
        }
    }

    /// By how much the wall clock is ahead of the host's, in seconds, at the most likely.
    fn wall_lead(&self) -> f64 {
        let middle = self.before.1 + self.width() / 2;
        let host = middle.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.realtime.as_secs_f64() - host.as_secs_f64()
    }
}

/// A machine that tells its clocks.
struct Clocks {
    guest: Guest,
    asked: usize,
}

impl Clocks {
    fn start(setup: &Setup, flags: &[&str]) -> Result<Self, String> {
        let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
        let program = program.to_string_lossy().into_owned();
        let args: Vec<&str> = ["--net", "none"]
            .into_iter()
            .chain(flags.iter().copied())
            .chain([program.as_str()])
            .collect();
        let guest = setup.start(&args)?;
        Ok(Self { guest, asked: 0 })
    }

    fn ask(&mut self) -> Result<Reading, String> {
        self.asked += 1;
        let (begin, end) = (
            format!("clock {}: ", self.asked),
            format!(" end {}.", self.asked),
        );
        let before = (Instant::now(), SystemTime::now());
        self.guest.type_text(&format!("{}\n", self.asked))?;
        self.guest.expect(&end, ANSWER_PATIENCE)?;
        let after = (Instant::now(), SystemTime::now());
        let text = self.guest.console();
        let told = text.rsplit_once(&begin).map_or("", |(_, told)| told);
        let mut numbers = told.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(monotonic)), Some(Ok(realtime))) => Ok(Reading {
                before,
                after,
                monotonic: Duration::from_nanos(monotonic),
                realtime: Duration::from_nanos(realtime),
            }),
            _ => Err(format!("`{told}` is not what clocks say")),
        }
    }

    /// The narrowest of many answers.
    fn ask_well(&mut self) -> Result<Reading, String> {
        let mut best = self.ask()?;
        for _ in 1..QUESTIONS {
            let reading = self.ask()?;
            if reading.width() < best.width() {
                best = reading;
            }
        }
        Ok(best)
    }
}

/// Loops that keep the host busy until they are dropped.
struct Busy(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Busy {
    fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let spin = |ends: Arc<AtomicBool>| {
            thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..BUSY_LOOPS).map(|_| spin(ends.clone())).collect();
        Self(ends, threads)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            // It only counts, so it does not panic.
            let _ = thread.join();
        }
    }
}

fn run_right_on_a_busy_host(setup: &Setup) -> Result<(), String> {
    let (rounds, span) = match setup.is_long() {
        true => (LONG_ROUNDS, LONG_SPAN),
        false => (1, SHORT_SPAN),
    };
    let _busy = Busy::start();
    for round in 0..rounds {
        compare_at_once(setup, span).map_err(|why| format!("round {round}: {why}"))?;
    }
    Ok(())
}

/// Starts machines at once and compares the clocks of each over the span.
fn compare_at_once(setup: &Setup, span: Duration) -> Result<(), String> {
    let mut machines = Vec::new();
    for _ in 0..AT_ONCE {
        machines.push(Clocks::start(setup, &[])?);
    }
    let mut starts = Vec::new();
    for machine in &mut machines {
        machine.guest.expect("ready", BOOT_PATIENCE)?;
        starts.push(machine.ask_well()?);
    }
    thread::sleep(span);
    for (machine, start) in machines.iter_mut().zip(&starts) {
        let end = machine.ask_well()?;
        expect_alike(start, &end)?;
    }
    Ok(())
}

/// Both clocks counted as the host did.
fn expect_alike(start: &Reading, end: &Reading) -> Result<(), String> {
    let host = end.since(start);
    let counted = [
        (
            "CLOCK_MONOTONIC",
            end.monotonic.checked_sub(start.monotonic),
        ),
        ("CLOCK_REALTIME", end.realtime.checked_sub(start.realtime)),
    ];
    if (host.most - host.least) * SHARE > host.least * 20 {
        return Err(format!("{host:?} is not known well enough"));
    }
    for (name, counted) in counted {
        let counted = counted.ok_or_else(|| format!("{name} went back"))?;
        let tolerance = host.least / SHARE;
        if counted + tolerance < host.least || counted > host.most + tolerance {
            return Err(format!("{name} counted {counted:?} in {host:?}"));
        }
    }
    Ok(())
}

fn run_on_in_a_frozen_process(setup: &Setup) -> Result<(), String> {
    let mut machine = Clocks::start(setup, &[])?;
    machine.guest.expect("ready", BOOT_PATIENCE)?;
    let start = machine.ask_well()?;
    let process = machine.guest.qemu().ok_or("sietch has no QEMU")?;
    for _ in 0..2 {
        freeze(process, Duration::from_secs(4))?;
        thread::sleep(Duration::from_secs(1));
    }
    expect_alike(&start, &machine.ask_well()?)
}

/// Keeps a process from its CPU for a while.
pub fn freeze(process: Pid, span: Duration) -> Result<(), String> {
    let send = |signal| kill_process(process, signal).map_err(|error| error.to_string());
    send(Signal::STOP)?;
    thread::sleep(span);
    send(Signal::CONT)
}

/// What the machine's monitor keeps it from.
const STOPPED: Duration = Duration::from_secs(7);
/// The clock chip is learnt in so long.
const LEARNING: Duration = Duration::from_secs(18);
/// The longest until a jump is noticed and measured.
const NOTICE_PATIENCE: Duration = Duration::from_secs(90);
const WALL_TOLERANCE_SECONDS: f64 = 0.1;

fn follows_over_a_stop(setup: &Setup) -> Result<(), String> {
    let name = format!("vm-test-clocks-{}", std::process::id());
    let mut machine = Clocks::start(setup, &["--name", &name])?;
    machine.guest.expect("ready", BOOT_PATIENCE)?;
    thread::sleep(LEARNING);
    let lead = machine.ask_well()?.wall_lead();
    let socket = state_folder().join("sietch").join(&name).join("qmp.sock");
    stop(&socket).map_err(|error| format!("{}: {error}", socket.display()))?;
    let deadline = Instant::now() + NOTICE_PATIENCE;
    loop {
        let moved = machine.ask_well()?.wall_lead() - lead;
        if moved.abs() < WALL_TOLERANCE_SECONDS {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("the wall clock is {moved} s off"));
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn stop(socket: &Path) -> std::io::Result<()> {
    let mut qmp = Qmp::connect(socket)?;
    qmp.stop()?;
    thread::sleep(STOPPED);
    qmp.resume()
}
