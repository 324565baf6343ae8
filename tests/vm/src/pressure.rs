//! Memory pressure: a program that allocates without end beside a Redis under load.
//!
//! Redis loses no request, the culprit is killed and named, and what it held comes
//! back. The scene runs twice in a small machine, as in `redis_leaks`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::counters::Counters;
use crate::guest::Setup;
use crate::operator::Operator;
use crate::redis_leaks::{REDIS, START, STOP};
use crate::resp::Redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis loses no request beside a program that allocates without end",
        redis_beside_a_hog,
    ),
    (
        "a modest program outlives many that allocate without end",
        modest_beside_hogs,
    ),
];

const HOG: &str = "tests/harness/memhog.c";
const MODEST: &str = "tests/harness/modest.c";
const WAYS: [&str; 4] = ["anonymous", "heap", "shared", "tmpfs"];
const MEMORY: &str = "128M";
const CLIENTS: usize = 8;
/// One after the other.
const HOGS: usize = 12;
const HOG_PATIENCE: Duration = Duration::from_secs(120);
/// Frames that may be missing after the second scene.
const FRAMES_MAX: i64 = 64;

fn redis_beside_a_hog(setup: &Setup) -> Result<(), String> {
    let hog = build::c_linked(Path::new(HOG), Link::StaticMusl)?;
    let hog = format!("{}:/bin/memhog", hog.display());
    let flags = ["-m", MEMORY, "--add", REDIS, "--add", &hog];
    let (mut operator, address) = Operator::start(setup, 6379, &flags)?;
    scene(&mut operator, address)?;
    let before = Counters::read(&mut operator)?;
    scene(&mut operator, address)?;
    let after = Counters::read(&mut operator)?;
    println!("     before {before:?}\n     after  {after:?}");
    let frames = (before.free_kib as i64 - after.free_kib as i64) / 4;
    if frames > FRAMES_MAX || before.files != after.files {
        return Err(format!("{before:?} before, {after:?} after"));
    }
    let end = operator.leave()?;
    expect_status(&end, 0)?;
    match end.console.contains("memhog (") && !end.console.contains("redis-server (") {
        true => Ok(()),
        false => Err(format!("the command said {:?}", end.console)),
    }
}

/// The modest one needs memory all the time, also while the memory of a hog that was killed is
/// still on its way back.
fn modest_beside_hogs(setup: &Setup) -> Result<(), String> {
    let hog = build::c_linked(Path::new(HOG), Link::StaticMusl)?;
    let hog = format!("{}:/bin/memhog", hog.display());
    let modest = build::c_linked(Path::new(MODEST), Link::StaticMusl)?;
    let modest = format!("{}:/bin/modest", modest.display());
    let flags = ["-m", MEMORY, "--add", &modest, "--add", &hog];
    let (mut operator, _) = Operator::start(setup, 1, &flags)?;
    operator.ask("modest & modest=$!")?;
    for way in WAYS.iter().cycle().take(HOGS) {
        self::hog(&mut operator, way)?;
    }
    let said = operator.ask("kill $modest && echo it was there")?;
    if !said.contains("it was there") {
        return Err(operator.guest.explain("killed the modest program"));
    }
    expect_status(&operator.leave()?, 0)
}

/// One life of Redis, and one of each hog beside it.
fn scene(operator: &mut Operator, address: SocketAddr) -> Result<(), String> {
    operator.ask(START)?;
    operator.guest.expect_answer(address, b"PING\r\n")?;
    let (is_over, served) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn({
                    let (is_over, served) = (&is_over, &served);
                    move || client(address, number, is_over, served)
                })
            })
            .collect();
        let killed = WAYS.iter().try_for_each(|way| hog(operator, way));
        is_over.store(true, Ordering::Relaxed);
        let served_all = clients.into_iter().try_for_each(|client| {
            client
                .join()
                .unwrap_or_else(|_| Err("a client panicked".into()))
        });
        killed.and(served_all.map_err(|why| operator.guest.explain(&why)))
    })?;
    println!("     {} requests served", served.load(Ordering::Relaxed));
    operator.ask(STOP).map(drop)
}

fn hog(operator: &mut Operator, way: &str) -> Result<(), String> {
    let said = operator.ask_within(&format!("memhog {way}; echo status $?"), HOG_PATIENCE)?;
    match said.contains("status 137") {
        true => Ok(()),
        false => Err(format!("memhog {way} was not killed: {said:?}")),
    }
}

/// Stores and reads back without end; every reply must be right.
fn client(
    address: SocketAddr,
    number: usize,
    is_over: &AtomicBool,
    served: &AtomicU64,
) -> Result<(), String> {
    let mut redis = Redis::connect(address)?;
    for round in 0_u64.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let (key, value) = (format!("key-{number}"), format!("{round}.").repeat(50));
        redis.call(&["SET", &key, &value])?;
        let found = redis.call(&["GET", &key])?;
        if found != value {
            return Err(format!("{key} holds {found:?} and not {value:?}"));
        }
        served.fetch_add(2, Ordering::Relaxed);
    }
    Ok(())
}
