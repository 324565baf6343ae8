//! Programs that have a network card, or a part of one, for themselves (`docs/bypass.md`, `docs/vfio.md`).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crate::Test;
use crate::build;
use crate::bypass::{NGINX, sleeps};
use crate::clients::together;
use crate::guest::{Setup, write_file};
use crate::http::{self, Connections, HELLO};
use crate::links::operator_with;
use crate::memcached;
use crate::operator::Operator;
use crate::redis::{self, benchmark};
use crate::resp::Redis;
use crate::seen;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis with a card of its own by --bypass serves",
        has_the_card,
    ),
    (
        "memcached and nginx with a card of their own by --bypass serve many clients",
        serve_many,
    ),
    (
        "Redis on a virtual function serves, sleeps, is killed, and the next one serves",
        has_a_function,
    ),
    (
        "Debian's tcpdump sees each frame of Redis on a virtual function once, while it looks",
        function_is_captured,
    ),
    (
        "nginx on a virtual function serves many new connections",
        function_serves_many,
    ),
    (
        "a virtual function is taken from Redis under load, and serves again when it is given back",
        function_is_revoked,
    ),
];

/// What is asked of a Redis.
const LOAD: [&str; 6] = ["-n", "3000", "-c", "50", "-t", "set,get"];
/// Values that take many frames each.
const LARGE: [&str; 6] = ["-n", "200", "-d", "65536", "-t", "set,get"];

/// The machine's address is the program's: whoever reached the machine before reaches it now.
fn has_the_card(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    build::library("sietch")?;
    for nic in ["virtio", "igb"] {
        let setup = setup.with_nic(nic);
        let (guest, address) = redis::start(&setup, &["--bypass"], &["--save", ""])?;
        let mut client = Redis::connect(address)?;
        client.call(&["SET", "key", "value"])?;
        benchmark(&guest, address, &LOAD)?;
        benchmark(&guest, address, &LARGE)?;
        if client.call(&["GET", "key"])? != "value" {
            return Err("a value is lost".into());
        }
        let end = guest.stop()?;
        expect_status(&end, 0)?;
        if end.console.contains("refused") || end.console.contains("libsietch:") {
            return Err(format!("the card is not the program's: {}", end.console));
        }
    }
    Ok(())
}

const CLIENTS: usize = 16;

/// Two threads share a queue; and files of some size leave by many frames each.
fn serve_many(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    build::library("sietch")?;
    let program = [
        "--bypass",
        "memcached",
        "-u",
        "root",
        "-l",
        "0.0.0.0",
        "-t",
        "2",
    ];
    let (guest, address) = setup.serve(11211, &program)?;
    guest.expect_answer(address, b"version\r\n")?;
    let served = together(CLIENTS, |number| memcached::client(address, number));
    served.map_err(|why| guest.explain(&why))?;
    guest.stop()?;
    let page = "sand ".repeat(20_000);
    let files = [
        format!("{}:/site/index.html", write_file("own/index.html", &page)?),
        format!("{}:/nginx.conf", write_file("own/nginx.conf", NGINX)?),
    ];
    let adds = ["--bypass", "--add", &files[0], "--add", &files[1]];
    let program = ["/usr/sbin/nginx", "-c", "/nginx.conf"];
    let (guest, address) = setup.serve(80, &[&adds[..], &program].concat())?;
    guest.expect_answer(address, HELLO)?;
    for connections in [Connections::Kept, Connections::Fresh] {
        http::load(address, "/index.html", &page, 8, 20, connections)
            .map_err(|why| guest.explain(&why))?;
    }
    Ok(())
}

const PROGRAM: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
const REDIS: u16 = 6379;
const HTTP: u16 = 80;
/// What the first virtual function is called while a program has it.
const INTERFACE: &str = "enp0s18";
/// The first virtual function, by its class and its name.
const FUNCTION: &str = "for f in /sys/bus/pci/devices/*; do \
    case $(cat $f/device) in 0x10ca) basename $f; break;; esac; done";

fn has_a_function(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator_of_functions(setup, &["/usr/bin/redis-server", seen::SS])?;
    for _ in 0..3 {
        start_redis(&mut shell)?;
        seen::is_listed(&mut shell, "10.0.2.61:6379", "redis-server")?;
        let own = (PROGRAM, REDIS).into();
        benchmark(&shell.guest, own, &LOAD)?;
        benchmark(&shell.guest, own, &LARGE)?;
        // What lies in the card's rings is nobody's any more.
        shell.ask("kill -9 $!; wait $!")?;
    }
    start_redis(&mut shell)?;
    sleeps(&mut shell)?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// The function's interface is there as long as the program.
fn function_is_captured(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    let programs = ["/usr/bin/redis-server", seen::TCPDUMP];
    let mut shell = operator_of_functions(setup, &programs)?;
    start_redis(&mut shell)?;
    shell.ask("redis=$!")?;
    let mut client = Redis::connect((PROGRAM, REDIS).into())?;
    seen::begin_capture(&mut shell, INTERFACE)?;
    client.call(&["PING"])?;
    client.call(&["SET", "large", &"x".repeat(100_000)])?;
    if client.call(&["GET", "large"])?.len() != 100_000 {
        return Err("a value is lost while it is looked at".into());
    }
    seen::shows_a_ping(&seen::end_capture(&mut shell)?)?;
    let said = shell.ask("kill $redis; wait $redis; cat /proc/net/dev")?;
    match !said.contains(INTERFACE) {
        true => shell.leave().map(drop),
        false => Err(format!("the interface outlives its program: {said}")),
    }
}

/// A machine with virtual functions, some programs and the library.
fn operator_of_functions(setup: &Setup, programs: &[&str]) -> Result<Operator, String> {
    let setup = setup.with_nic("igb");
    let library = format!("{}:/lib/libsietch.so", build::library("sietch")?.display());
    let mut flags = vec![
        "--iommu",
        "--kernel-option",
        "igb.max_vfs=2",
        "--add",
        &library,
    ];
    flags.extend(programs.iter().flat_map(|program| ["--add", program]));
    operator_with(&setup, &flags)
}

fn start_redis(shell: &mut Operator) -> Result<(), String> {
    start(shell, "redis-server --protected-mode no --save ''", "Ready")
}

/// Starts a program on the first function, and waits until it says a word.
fn start(shell: &mut Operator, program: &str, word: &str) -> Result<(), String> {
    let said = shell.ask(&format!(
        "rm -f /tmp/said; LD_PRELOAD=/lib/libsietch.so SIETCH_LINK=$({FUNCTION}) SIETCH_ADDRESS={PROGRAM}/24 \
         {program} >/tmp/said 2>&1 & \
         until grep -q '{word}' /tmp/said || ! kill -0 $!; do sleep 0.1; done; cat /tmp/said"
    ))?;
    match said.contains(word) && !said.contains("libsietch:") {
        true => Ok(()),
        false => Err(format!("the program does not start: {said}")),
    }
}

/// Whose first frames do not all fit into the card's ring.
const CROWD: usize = 100;

fn function_serves_many(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    let page = "sand ".repeat(200);
    let files = [
        format!("{}:/nginx.conf", write_file("own/nginx.conf", NGINX)?),
        format!("{}:/site/index.html", write_file("own/small.html", &page)?),
    ];
    let programs = ["/usr/sbin/nginx:/usr/sbin/nginx", &files[0], &files[1]];
    let mut shell = operator_of_functions(setup, &programs)?;
    start(&mut shell, "nginx -c /nginx.conf", "getrlimit")?;
    let address = (PROGRAM, HTTP).into();
    http::load(address, "/index.html", &page, CROWD, 5, Connections::Fresh)
        .map_err(|why| shell.guest.explain(&why))?;
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 62);
const FUNCTIONS: [&str; 2] = ["0000:00:12.0", "0000:00:12.2"];
const DRIVER: &str = "/sys/bus/pci/drivers/vfio-pci";

/// Starts Redis on a function; what it says until it is ready or has ended.
fn redis_on(shell: &mut Operator, function: &str, address: Ipv4Addr) -> Result<String, String> {
    shell.ask(&format!(
        "rm -f /tmp/said; LD_PRELOAD=/lib/libsietch.so SIETCH_LINK={function} SIETCH_ADDRESS={address}/24 \
         redis-server --protected-mode no --bind 0.0.0.0 --save '' >/tmp/said 2>&1 & \
         until grep -q Ready /tmp/said || ! kill -0 $!; do sleep 0.1; done; head -c 2000 /tmp/said"
    ))
}

fn has_function(said: &str) -> Result<(), String> {
    match said.contains("Ready") && !said.contains("libsietch:") {
        true => Ok(()),
        false => Err(format!("Redis has no function: {said}")),
    }
}

fn function_is_revoked(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator_of_functions(setup, &["/usr/bin/redis-server"])?;
    let [first, second] = FUNCTIONS;
    has_function(&redis_on(&mut shell, second, OTHER)?)?;
    has_function(&redis_on(&mut shell, first, PROGRAM)?)?;
    shell.ask("revoked=$!")?;
    let answers = Arc::new(AtomicUsize::new(0));
    for _ in 0..8 {
        let (mut peer, answers) = (Redis::connect((PROGRAM, REDIS).into())?, answers.clone());
        // They end when their patience does, of which the test has less.
        thread::spawn(move || {
            while peer.call(&["PING"]).is_ok() {
                answers.fetch_add(1, Relaxed);
            }
        });
    }
    shell.ask(&format!("sleep 1; echo {first} > {DRIVER}/unbind"))?;
    let other = (OTHER, REDIS).into();
    benchmark(&shell.guest, other, &LOAD)?;
    if answers.load(Relaxed) == 0 {
        return Err("it was under no load".into());
    }
    // It is nobody's, as long as it is not bound and its program has not ended.
    let refused = redis_on(&mut shell, first, PROGRAM)?;
    if !refused.contains("libsietch: 0000:00:12.0:") {
        return Err(format!("Redis has a function that is unbound: {refused}"));
    }
    shell.ask(&format!(
        "kill -9 $! $revoked; wait $! $revoked; echo {first} > {DRIVER}/bind"
    ))?;
    has_function(&redis_on(&mut shell, first, PROGRAM)?)?;
    benchmark(&shell.guest, (PROGRAM, REDIS).into(), &LOAD)?;
    shell.ask("kill -9 $(pidof redis-server); wait")?;
    shell.leave().map(drop)
}
