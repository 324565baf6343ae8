//! `libsietch.so` is exchanged under programs that serve (`docs/bypass.md`, "Exchanged while it serves").

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::build;
use crate::bypass::{PROGRAM, operator_of, start};
use crate::guest::Setup;
use crate::links::number;
use crate::operator::Operator;
use crate::redis::benchmark;
use crate::resp::Redis;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "libsietch.so is exchanged under a loaded Redis, and no connection and no byte is lost",
        keeps_connections,
    ),
    (
        "libsietch.so is exchanged under Redis while peers come and go",
        keeps_those_that_come,
    ),
    (
        "a libsietch.so that cannot be exchanged serves on, and says why",
        serves_on,
    ),
    (
        "libsietch.so is exchanged under memcached, whose threads wait in it, ten times, and leaves nothing behind",
        leaves_nothing_behind,
    ),
];

const REDIS: u16 = 6379;
const MEMCACHED: u16 = 11211;
const EXCHANGES: usize = 5;
const CLIENTS: usize = 50;

/// A machine with `program`, and what exchanges its library.
fn operator(setup: &Setup, program: &str) -> Result<Operator, String> {
    build::library("sietch")?;
    let tool = "target/release/sietch-upgrade:/bin/sietch-upgrade";
    operator_of(setup, "512M", &[program, tool])
}

fn start_redis(shell: &mut Operator) -> Result<SocketAddr, String> {
    start(
        shell,
        "redis-server --protected-mode no --save ''",
        "Ready to accept connections",
    )?;
    Ok((PROGRAM, REDIS).into())
}

/// Exchanges the library of the last program for a copy of it; what is said.
pub fn exchange(shell: &mut Operator, version: usize) -> Result<String, String> {
    let library = format!("/tmp/libsietch-{version}.so");
    let said = shell.ask(&format!(
        "cp /lib/libsietch.so {library}; sietch-upgrade $! {library} 2>&1 || cat /tmp/said"
    ))?;
    match said.contains("connections moved") {
        true => Ok(said.trim().to_string()),
        false => Err(shell
            .guest
            .explain(&format!("it was not exchanged: {said}"))),
    }
}

/// How long clients waited for one answer at most, and how many they got.
#[derive(Default)]
struct Served {
    answers: AtomicUsize,
    longest: Mutex<Duration>,
}

impl Served {
    fn note(&self, since: Instant) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        let waited = since.elapsed();
        if let Ok(mut longest) = self.longest.lock() {
            *longest = (*longest).max(waited);
        }
    }
}

/// Runs `client` for each number until `meanwhile` is done.
fn under_load<T>(
    clients: usize,
    client: impl Fn(usize, &AtomicBool) -> Result<(), String> + Sync,
    meanwhile: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let run = |number| {
            let (client, is_over) = (&client, &is_over);
            scope.spawn(move || client(number, is_over))
        };
        let running: Vec<_> = (0..clients).map(run).collect();
        let done = meanwhile();
        is_over.store(true, Ordering::Relaxed);
        for client in running {
            client.join().map_err(|_| "a client panicked")??;
        }
        done
    })
}

/// Writes values and reads them again, each its own.
fn writes_and_reads(
    address: SocketAddr,
    client: usize,
    is_over: &AtomicBool,
    served: &Served,
) -> Result<(), String> {
    let mut redis = Redis::connect(address)?;
    let key = format!("key {client}");
    for turn in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let value = format!("value {client} {turn} ").repeat(1 + turn % 50);
        let begin = Instant::now();
        redis.call(&["SET", &key, &value])?;
        let read = redis.call(&["GET", &key])?;
        served.note(begin);
        if read != value {
            return Err(format!("client {client} read another value in turn {turn}"));
        }
    }
    Ok(())
}

/// More than windows hold.
const LARGE_BYTES: usize = 4_000_000;

fn keeps_connections(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, "/usr/bin/redis-server")?;
    let address = start_redis(&mut shell)?;
    let large = "0123456789abcdef".repeat(LARGE_BYTES / 16);
    Redis::connect(address)?.call(&["SET", "large", &large])?;
    let mut halved = said(address, b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$5\r\nhe")?;
    let deaf = said(address, b"GET large\r\n")?;
    let mut blocked = said(address, b"BLPOP list 0\r\n")?;
    let served = Served::default();
    let client = |client, is_over: &AtomicBool| writes_and_reads(address, client, is_over, &served);
    under_load(CLIENTS, client, || {
        for version in 1..=EXCHANGES {
            thread::sleep(Duration::from_millis(300));
            let said = exchange(&mut shell, version)?;
            let before = served.answers.load(Ordering::Relaxed);
            println!("    {said}");
            while served.answers.load(Ordering::Relaxed) < before + 10 * CLIENTS {
                thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    })
    .map_err(|why| shell.guest.explain(&why))?;
    let longest = served
        .longest
        .lock()
        .map_or(Duration::ZERO, |longest| *longest);
    println!("    the longest turn of {CLIENTS} clients took {longest:?}");
    halved
        .write_all(b"llo\r\n")
        .map_err(|error| error.to_string())?;
    expect(&mut halved, "+OK\r\n")?;
    let mut redis = Redis::connect(address)?;
    if redis.call(&["GET", "half"])? != "hello" {
        return Err("a command in two halves is not what it was".into());
    }
    redis.call(&["RPUSH", "list", "it"])?;
    expect(&mut blocked, "*2\r\n$4\r\nlist\r\n$2\r\nit\r\n")?;
    let mut deaf = deaf;
    expect(&mut deaf, &format!("${}\r\n{large}\r\n", large.len()))?;
    benchmark(&shell.guest, address, &["-n", "2000", "-c", "50"])?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// A connection on which something was said.
fn said(address: SocketAddr, bytes: &[u8]) -> Result<TcpStream, String> {
    let said = TcpStream::connect(address).and_then(|mut peer| {
        peer.set_read_timeout(Some(Duration::from_secs(30)))?;
        peer.write_all(bytes)?;
        Ok(peer)
    });
    said.map_err(|error| error.to_string())
}

fn expect(peer: &mut TcpStream, wanted: &str) -> Result<(), String> {
    let mut got = vec![0; wanted.len()];
    peer.read_exact(&mut got)
        .map_err(|error| format!("instead of an answer: {error}"))?;
    match got == wanted.as_bytes() {
        true => Ok(()),
        false => Err("an answer is not what it should be".into()),
    }
}

fn keeps_those_that_come(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, "/usr/bin/redis-server")?;
    let address = start_redis(&mut shell)?;
    let met = AtomicUsize::new(0);
    let client = |_, is_over: &AtomicBool| {
        while !is_over.load(Ordering::Relaxed) {
            let mut redis = Redis::connect(address)?;
            redis.call(&["PING"])?;
            met.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    under_load(8, client, || {
        for version in 1..=EXCHANGES {
            let before = met.load(Ordering::Relaxed);
            while met.load(Ordering::Relaxed) < before + 100 {
                thread::sleep(Duration::from_millis(10));
            }
            let said = exchange(&mut shell, version)?;
            println!("    {said}");
        }
        Ok(())
    })
    .map_err(|why| shell.guest.explain(&why))?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn serves_on(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, "/usr/bin/redis-server")?;
    let address = start_redis(&mut shell)?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["SET", "key", "value"])?;
    let refusals = [
        ("sietch-upgrade $! /lib/none.so", "cannot be loaded"),
        (
            "echo none >/tmp/no.so; sietch-upgrade $! /tmp/no.so",
            "cannot be loaded",
        ),
        ("sietch-upgrade $! /lib/libsietch.so", "serves already"),
        (
            "sietch-upgrade $! $(awk '/libc.so/ {print $6; exit}' /proc/$!/maps)",
            "no libsietch.so that can follow",
        ),
        ("sietch-upgrade 1 /lib/libsietch.so", "process 1"),
        ("sietch-upgrade", "Usage"),
    ];
    for (line, wanted) in refusals {
        let said = shell.ask(&format!("{line} 2>&1"))?;
        if !said.contains(wanted) {
            return Err(format!("{line}: {said}"));
        }
        if redis.call(&["GET", "key"])? != "value" {
            return Err(format!("{line}: a value is lost"));
        }
    }
    // All that has left the way open.
    exchange(&mut shell, 1)?;
    redis.call(&["GET", "key"])?;
    benchmark(
        &shell.guest,
        address,
        &["-n", "1000", "-c", "20", "-t", "set,get"],
    )?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn leaves_nothing_behind(setup: &Setup) -> Result<(), String> {
    const TIMES: usize = 10;
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, "/usr/bin/memcached")?;
    start(
        &mut shell,
        "memcached -vv -t 2 -u root -l 0.0.0.0",
        "server listening",
    )?;
    let address: SocketAddr = (PROGRAM, MEMCACHED).into();
    let mut kept = said(address, b"set key 0 0 5\r\nvalue\r\n")?;
    expect(&mut kept, "STORED\r\n")?;
    let files = "ls /proc/$!/fd | wc -l";
    let locked = "awk '/VmRSS/ {print $2}' /proc/$!/status";
    let first = exchange(&mut shell, 0)
        .and_then(|_| Ok((number(&mut shell, files)?, number(&mut shell, locked)?)))?;
    for version in 1..=TIMES {
        exchange(&mut shell, version)?;
        kept.write_all(b"get key\r\n")
            .map_err(|error| error.to_string())?;
        expect(&mut kept, "VALUE key 0 5\r\nvalue\r\nEND\r\n")?;
    }
    let last = (number(&mut shell, files)?, number(&mut shell, locked)?);
    println!(
        "    descriptors and resident KiB after the first exchange {first:?}, after the last {last:?}"
    );
    // A library's own pages stay; a queue's would be 32 MiB each.
    const LIBRARIES_KIB: u64 = 16 * 1024;
    match last.0 <= first.0 && last.1 <= first.1 + LIBRARIES_KIB {
        true => {}
        false => return Err(format!("{first:?} has become {last:?}")),
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}
