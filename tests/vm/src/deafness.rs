//! Peers that do not read, connections that nobody reads, and a user that fills its own
//! sockets: the machine hears and answers all the same, and has its packet buffers back
//! when they are gone.
//!
//! They ask for several times what a small machine has for packets. It must answer a ping
//! meanwhile, and ping and Redis soon after they have stopped.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::build::{self, Link};
use crate::counters::Counters;
use crate::guest::Setup;
use crate::operator::Operator;
use crate::redis_leaks::{REDIS, START};
use crate::resp::Redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "five hundred readers that do not read leave the machine its ears",
        |setup| siege(setup, "256M", readers),
    ),
    (
        "five hundred connections that nobody reads leave the machine its ears",
        |setup| siege(setup, SMALL, unread),
    ),
    (
        "a user that fills its own datagram sockets leaves the machine its ears",
        |setup| siege(setup, SMALL, datagrams),
    ),
];

const PROGRAM: &str = "tests/harness/deaf.c";
/// The memory of a machine in which nothing else needs much.
const SMALL: &str = "64M";
const PEERS: usize = 500;
/// What each asks for, or sends: together more than twice what there is for packets. Redis
/// keeps all of it, too.
const EACH_BYTES: usize = 300_000;
const UNREAD_PORT: u16 = 7000;
/// How soon the machine must answer.
const PATIENCE_SECONDS: &str = "2";
/// How long a connection may take to come about while memory is tight.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of so many connections may take.
const SETTLE_PATIENCE: Duration = Duration::from_secs(30);
/// Programs get this long to do all that they can.
const EFFECT: Duration = Duration::from_secs(3);

/// One way to lay siege: what it returns, dropped, ends it.
type Siege = fn(&mut Operator, SocketAddr) -> Result<Vec<TcpStream>, String>;

fn siege(setup: &Setup, memory: &str, lay: Siege) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
    let program = format!("{}:/bin/deaf", program.display());
    let flags = ["-m", memory, "--add", REDIS, "--add", &program];
    let (mut operator, address) = Operator::start(setup, 6379, &flags)?;
    operator.ask(START)?;
    operator.ask("redis=$!")?;
    operator.guest.expect_answer(address, b"PING\r\n")?;
    // The first life of all fills caches and lets the pool grow.
    let before = Counters::read(&mut operator)?;
    let peers = lay(&mut operator, address)?;
    thread::sleep(EFFECT);
    let during = ping(address);
    let amid = Counters::read(&mut operator)?;
    drop(peers);
    operator.ask("[ -n \"$deaf\" ] && kill $deaf && wait $deaf")?;
    let after = ping(address);
    println!("     before {before:?}\n     amid   {amid:?}");
    during.map_err(|why| operator.guest.explain(&format!("meanwhile: {why}")))?;
    after.map_err(|why| operator.guest.explain(&format!("afterwards: {why}")))?;
    operator.guest.expect_answer(address, b"PING\r\n")?;
    expect_all_back(&mut operator, before)?;
    operator.ask("kill $redis; wait $redis")?;
    expect_status(&operator.leave()?, 0)
}

/// One echo, in time.
fn ping(address: SocketAddr) -> Result<(), String> {
    let host = address.ip().to_string();
    let status = Command::new("ping")
        .args(["-c", "1", "-W", PATIENCE_SECONDS, &host])
        .stdout(Stdio::null())
        .status();
    match status.map_err(|error| format!("ping: {error}"))?.success() {
        true => Ok(()),
        false => Err(format!("no answer to a ping in {PATIENCE_SECONDS} s")),
    }
}

fn expect_all_back(operator: &mut Operator, before: Counters) -> Result<(), String> {
    let deadline = Instant::now() + SETTLE_PATIENCE;
    loop {
        let now = Counters::read(operator)?;
        let is_back = now.packet_buffers <= before.packet_buffers && now.tcp <= before.tcp;
        if is_back {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{before:?} before, {now:?} long after"));
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Clients of Redis that ask for a large value and do not read.
fn readers(_: &mut Operator, address: SocketAddr) -> Result<Vec<TcpStream>, String> {
    Redis::connect(address)?.call(&["SET", "large", &"x".repeat(EACH_BYTES)])?;
    let connect = |_| {
        let mut peer = connect(address)?;
        let asked = peer.write_all(b"GET large\r\n");
        asked.map_err(|error| format!("GET: {error}"))?;
        Ok(peer)
    };
    (0..PEERS).map(connect).collect()
}

/// Peers that send as much as is taken to a program that does not read.
fn unread(operator: &mut Operator, address: SocketAddr) -> Result<Vec<TcpStream>, String> {
    operator.ask(&format!("deaf unread {UNREAD_PORT} & deaf=$!"))?;
    operator.guest.expect("ready", CONNECT_PATIENCE)?;
    let to = SocketAddr::new(address.ip(), UNREAD_PORT);
    let bytes = vec![b'x'; EACH_BYTES];
    let connect = |_| {
        let mut peer = connect(to)?;
        let nonblocking = peer.set_nonblocking(true);
        nonblocking.map_err(|error| format!("a socket: {error}"))?;
        match peer.write(&bytes) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(format!("sending: {error}")),
            _ => Ok(peer),
        }
    };
    (0..PEERS).map(connect).collect()
}

/// A user of the machine itself.
fn datagrams(operator: &mut Operator, _: SocketAddr) -> Result<Vec<TcpStream>, String> {
    operator.ask("deaf datagrams & deaf=$!")?;
    operator.guest.expect("ready", SETTLE_PATIENCE)?;
    Ok(Vec::new())
}

fn connect(to: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&to, CONNECT_PATIENCE).map_err(|error| format!("{to}: {error}"))
}
