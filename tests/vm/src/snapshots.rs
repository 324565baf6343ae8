//! Machines that go on from a snapshot (`sietch snapshot`, `sietch run --from`).

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Test;
use crate::clients::together;
use crate::guest::{Setup, sietch};
use crate::lifecycle::{expect, said};
use crate::resp::Redis;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "machines of one snapshot of Redis go on at once, each by itself, in its own time and with its own random numbers",
        several_of_one,
    ),
    (
        "no snapshot is taken of a machine with a folder of the host, which is told why",
        is_refused,
    ),
];

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const REDIS: &str = "6379";
/// So old the snapshot is before a machine goes on from it: a clock that nobody set would show it.
const AGE: Duration = Duration::from_secs(3);

/// Asks until there is an answer: the port is there before the program.
fn connect(port: u16) -> Result<Redis, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = Redis::connect(address).and_then(|mut redis| {
            redis.call(&["PING"])?;
            Ok(redis)
        });
        match answer {
            Err(_) if Instant::now() < deadline => thread::sleep(POLL),
            answer => return answer,
        }
    }
}

fn free_port() -> Result<(u16, String), String> {
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    Ok((port, format!("127.0.0.1:{port}:{REDIS}")))
}

fn several_of_one(setup: &Setup) -> Result<(), String> {
    const MACHINES: usize = 3;
    let (port, forward) = free_port()?;
    let flags = [
        "-d",
        "--name",
        "source",
        "-p",
        &forward,
        "--add",
        "/bin/busybox",
    ];
    let program = ["redis-server", "--protected-mode", "no", "--save", ""];
    said(&mut setup.command(&[&flags[..], &program].concat()), 0)?;
    connect(port)?.call(&["SET", "key", "of the source"])?;
    expect(&["snapshot", "source", "warm"], 0, &["warm"])?;
    expect(&["snapshots"], 0, &["warm", "redis-server"])?;
    // It has gone on, and what it does now is its own.
    connect(port)?.call(&["SET", "key", "later"])?;
    expect(&["rm", "-f", "source"], 0, &["source"])?;
    thread::sleep(AGE);
    let drawn = Mutex::new(BTreeSet::new());
    together(MACHINES, |number| {
        let random = goes_on(number)?;
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.insert(random);
        Ok(())
    })?;
    let drawn = drawn.into_inner().unwrap_or_else(PoisonError::into_inner);
    if drawn.len() != MACHINES {
        return Err(format!("some draw the same random numbers: {drawn:?}"));
    }
    expect(&["snapshots", "--rm", "warm"], 0, &["warm"])?;
    expect(
        &["run", "--from", "warm"],
        125,
        &["No snapshot is called warm"],
    )
}

/// A machine from the snapshot; the random numbers that it draws.
fn goes_on(number: usize) -> Result<String, String> {
    let name = format!("warm-{number}");
    let (port, forward) = free_port()?;
    let run = [
        "run", "--from", "warm", "-d", "--name", &name, "-p", &forward,
    ];
    expect(&run, 0, &[&name])?;
    let mut redis = connect(port)?;
    for value in ["of the source".to_string(), name.clone()] {
        let found = redis.call(&["GET", "key"])?;
        if found != value {
            return Err(format!("{name} finds {found:?}, and not {value:?}"));
        }
        redis.call(&["SET", "key", &name])?;
    }
    let draw = [
        "exec",
        &name,
        "busybox",
        "od",
        "-An",
        "-N16",
        "-tx1",
        "/dev/urandom",
    ];
    let drawn = said(sietch().args(draw), 0)?;
    let before = now_s()?;
    let shown = said(sietch().args(["exec", &name, "busybox", "date", "+%s"]), 0)?;
    let shown: u64 = shown
        .trim()
        .parse()
        .map_err(|_| format!("{shown:?} is no time"))?;
    let after = now_s()?;
    // The host's clock and the machine's may lie on two sides of a second's end.
    if !(before - 1..=after + 1).contains(&shown) {
        return Err(format!(
            "{name} shows {shown}, and it is {before} to {after}"
        ));
    }
    expect(&["stop", &name], 0, &[&name])?;
    expect(&["rm", &name], 0, &[&name])?;
    Ok(drawn)
}

fn now_s() -> Result<u64, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map(|now| now.as_secs())
        .map_err(|error| error.to_string())
}

fn is_refused(setup: &Setup) -> Result<(), String> {
    let name = "with-a-folder";
    let flags = ["-d", "--name", name, "-v", "/usr/share:/share:ro"];
    let program = ["busybox", "sleep", "1000"];
    said(&mut setup.command(&[&flags[..], &program].concat()), 0)?;
    let why = "No snapshot can be taken of with-a-folder, since it has a folder of the host";
    expect(&["snapshot", name], 125, &[why])?;
    expect(&["rm", "-f", name], 0, &[name])
}
