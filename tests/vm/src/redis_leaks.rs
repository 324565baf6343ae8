//! Redis leaves nothing behind: the kernel's counters before and after many requests.
//!
//! The same cycle runs twice in one machine: Redis starts, serves a mix of commands on
//! kept and on short connections, and stops. The first cycle fills the caches; what the
//! second one takes and does not give back is lost. Files and sockets are compared
//! exactly, also while Redis runs. Packet buffers may become fewer: IPv6 speaks of its own
//! accord, and the card gives a frame back when the next one is sent. Frames are compared
//! when Redis is gone, as its own heap breathes; the bound is for caches of each CPU that
//! fill a little differently.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::counters::Counters;
use crate::guest::Setup;
use crate::operator::Operator;
use crate::redis::benchmark;

/// The tests.
pub const TESTS: &[Test] = &[(
    "Redis leaves no frame, file or socket behind after many requests",
    nothing_is_left,
)];

/// The program in a machine.
pub const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
/// Lines for the shell that start and stop it.
pub const START: &str = "redis-server --protected-mode no --save '' --logfile /dev/null &";
/// See [`START`].
pub const STOP: &str = "kill $!; wait $!";
const COMMANDS: &str = "set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,zpopmin";
const COMMAND_COUNT: u32 = 10;
/// Frames that may be missing after the second cycle.
const FRAMES_MAX: i64 = 64;
/// How long closed connections may take to end.
const SETTLE_PATIENCE: Duration = Duration::from_secs(30);

/// How much one cycle asks of Redis.
struct Load {
    requests: u32,
    connections: u32,
}

const WARM_UP: Load = Load {
    requests: 20_000,
    connections: 1_000,
};
const SHORT: Load = Load {
    requests: 100_000,
    connections: 2_000,
};
const LONG: Load = Load {
    requests: 1_000_000,
    connections: 20_000,
};

fn nothing_is_left(setup: &Setup) -> Result<(), String> {
    let load = if setup.is_long() { &LONG } else { &SHORT };
    let (mut operator, address) = Operator::start(setup, 6379, &["--add", REDIS])?;
    cycle(&mut operator, address, &WARM_UP)?;
    let before = settled(&mut operator, None)?;
    cycle(&mut operator, address, load)?;
    let after = settled(&mut operator, Some(before))?;
    println!("     before {before:?}\n     after  {after:?}");
    compare(before, after)?;
    let frames = (before.free_kib as i64 - after.free_kib as i64) / 4;
    match frames <= FRAMES_MAX {
        true => Ok(()),
        false => Err(format!(
            "{frames} frames are lost: {before:?} before, {after:?} after"
        )),
    }
}

/// One life of Redis.
fn cycle(operator: &mut Operator, address: SocketAddr, load: &Load) -> Result<(), String> {
    operator.ask(START)?;
    operator.guest.expect_answer(address, b"PING\r\n")?;
    let before = settled(operator, None)?;
    let each = (load.requests / COMMAND_COUNT).to_string();
    let mixed = ["-P", "16", "-r", "10000", "-n", &each, "-t", COMMANDS];
    benchmark(&operator.guest, address, &mixed)?;
    let connections = load.connections.to_string();
    let short = ["-k", "0", "-n", &connections, "-t", "ping_mbulk"];
    benchmark(&operator.guest, address, &short)?;
    let after = settled(operator, Some(before))?;
    compare(before, after).map_err(|why| format!("while Redis runs, {why}"))?;
    operator.ask(STOP).map(drop)
}

/// The counters once closed connections have ended: when they are as `wanted`, or stand
/// still; after a while, as they are.
fn settled(operator: &mut Operator, wanted: Option<Counters>) -> Result<Counters, String> {
    let deadline = Instant::now() + SETTLE_PATIENCE;
    let mut before = Counters::read(operator)?;
    loop {
        thread::sleep(Duration::from_millis(500));
        let seen = Counters::read(operator)?;
        let is_quiet = compare(wanted.unwrap_or(before), seen).is_ok();
        if is_quiet || Instant::now() > deadline {
            return Ok(seen);
        }
        before = seen;
    }
}

/// Whether as many files and sockets exist, and no more packet buffers are in use.
fn compare(before: Counters, after: Counters) -> Result<(), String> {
    let exact = |counters: Counters| Counters {
        free_kib: 0,
        packet_buffers: 0,
        ..counters
    };
    match exact(before) == exact(after) && after.packet_buffers <= before.packet_buffers {
        true => Ok(()),
        false => Err(format!("{before:?} before, {after:?} after")),
    }
}
