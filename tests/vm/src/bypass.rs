//! Programs that were written for sockets, on a network of their own by `libsietch.so` (`docs/bypass.md`).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::clients::together;
use crate::guest::{Setup, write_file};
use crate::http::{self, Connections, HELLO};
use crate::links::{number, operator_with};
use crate::memcached;
use crate::native_io::{client_of, exchange};
use crate::operator::Operator;
use crate::redis::benchmark;
use crate::resp::Redis;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis by libsietch.so serves a mixed load, and sleeps while there is none",
        serves_redis,
    ),
    (
        "Redis by libsietch.so saves in a child while it serves",
        saves_in_a_child,
    ),
    (
        "Redis by libsietch.so serves others while peers read nothing of what they asked for",
        outlasts_deaf_peers,
    ),
    (
        "memcached by libsietch.so keeps the values of many clients with two threads",
        serves_memcached,
    ),
    (
        "memcached by libsietch.so that goes on in the background is on the link",
        serves_in_the_background,
    ),
    (
        "nginx by libsietch.so sends files to many clients",
        serves_nginx,
    ),
    (
        "a program by libsietch.so that passes many datagrams a call echoes all",
        echoes_many,
    ),
    (
        "what a program by libsietch.so has not sent when it ends reaches its peer",
        sends_to_the_end,
    ),
    (
        "a program whose link libsietch.so cannot have is told so, and has the kernel's sockets",
        falls_back,
    ),
];

/// The same of more programs.
pub const TESTS_OF_MORE: &[Test] = &[
    (
        "HAProxy by libsietch.so passes large answers of a server that is the kernel's",
        serves_haproxy,
    ),
    (
        "iperf3 by libsietch.so measures streams and datagrams both ways",
        serves_iperf,
    ),
];

/// The program's address.
pub const PROGRAM: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
/// What a shell sets for a program on the link.
pub const VARIABLES: &str =
    "LD_PRELOAD=/lib/libsietch.so SIETCH_LINK=vnic61 SIETCH_ADDRESS=10.0.2.61/24";
const REDIS: u16 = 6379;
const MEMCACHED: u16 = 11211;
const HTTP: u16 = 80;
const ECHO: u16 = 7;
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine with a VNIC for `program`, and the library.
fn operator(setup: &Setup, programs: &[&str]) -> Result<Operator, String> {
    operator_of(setup, "256M", programs)
}

/// The same with so much memory.
pub fn operator_of(setup: &Setup, memory: &str, programs: &[&str]) -> Result<Operator, String> {
    let library = build::library("sietch")?;
    let library = format!("{}:/lib/libsietch.so", library.display());
    let mut flags = vec!["-m", memory, "--add", &library];
    flags.extend(programs.iter().flat_map(|program| ["--add", program]));
    let mut shell = operator_with(setup, &flags)?;
    shell.ask("dladm create-vnic -t -l eth0 -m 2:0:0:0:0:61 vnic61")?;
    Ok(shell)
}

/// Starts a program on the link, in the background, and waits until it says a word.
pub fn start(shell: &mut Operator, program: &str, word: &str) -> Result<(), String> {
    let said = shell.ask(&format!(
        "rm -f /tmp/said; \
         {VARIABLES} {program} >/tmp/said 2>&1 & \
         until grep -q '{word}' /tmp/said || ! kill -0 $!; do sleep 0.1; done; cat /tmp/said"
    ))?;
    match said.contains(word) && !said.contains("libsietch:") {
        true => Ok(()),
        false => Err(format!("the program does not start: {said}")),
    }
}

fn start_redis(shell: &mut Operator, flags: &str) -> Result<SocketAddr, String> {
    let program = format!("redis-server --protected-mode no {flags}");
    start(shell, &program, "Ready to accept connections")?;
    Ok((PROGRAM, REDIS).into())
}

fn serves_redis(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/redis-server"])?;
    let address = start_redis(&mut shell, "--save ''")?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["SET", "key", "value"])?;
    if redis.call(&["GET", "key"])? != "value" {
        return Err("a value is lost".into());
    }
    benchmark(&shell.guest, address, &["-n", "2000", "-c", "50"])?;
    sleeps(&mut shell)?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn echoes_many(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new("tests/programs/scenes/mmsg_echo.c"))?;
    let program = format!("{}:/bin/mmsg_echo", program.display());
    let mut shell = operator(setup, &[&program])?;
    start(&mut shell, "mmsg_echo", "serving")?;
    let socket = client_of(ECHO)?;
    for (len, count) in [(0, 1), (1472, 1), (64, 40), (1000, 32)] {
        exchange(&socket, len, count)?;
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn sends_to_the_end(setup: &Setup) -> Result<(), String> {
    /// As long as it takes until somebody who does not read would be given up.
    const DEAF: Duration = Duration::from_secs(3);
    const WORDS: usize = 300_000;
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new("tests/programs/scenes/last_words.c"))?;
    let program = format!("{}:/bin/last_words", program.display());
    let mut shell = operator(setup, &[&program])?;
    start(&mut shell, "last_words", "serving")?;
    let peer = TcpStream::connect((PROGRAM, ECHO)).map_err(|error| error.to_string())?;
    shell.ask("until grep -q written /tmp/said || ! kill -0 $!; do sleep 0.1; done")?;
    thread::sleep(DEAF);
    let words = all_of(peer).map_err(|error| shell.guest.explain(&error.to_string()))?;
    if words.len() != WORDS || words.iter().any(|word| *word != b'w') {
        return Err(format!("{} bytes came of {WORDS}", words.len()));
    }
    shell.ask("wait $!")?;
    shell.leave().map(drop)
}

fn all_of(mut peer: TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    peer.set_read_timeout(Some(Duration::from_secs(30)))?;
    peer.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Looks at the program, and how many of them at least find it asleep. One that polls never is; Redis has a
/// timer, and may wait for the CPU on which we look. (CPU time would be counted by a clock that runs on while the
/// host is busy.)
const LOOKS: u64 = 25;
const ASLEEP_MIN: u64 = 10;

/// It does not poll on and on.
pub fn sleeps(shell: &mut Operator) -> Result<(), String> {
    let look = format!(
        "for i in $(seq {LOOKS}); do sleep 0.17; awk '{{print $3}}' /proc/$!/stat; done | grep -c S"
    );
    let asleep = number(shell, &look)?;
    match asleep >= ASLEEP_MIN {
        true => Ok(()),
        false => Err(format!(
            "while nothing came it slept in {asleep} looks of {LOOKS}"
        )),
    }
}

fn saves_in_a_child(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/redis-server"])?;
    let flags = "--dir /tmp --enable-debug-command yes --appendonly yes";
    let address = start_redis(&mut shell, flags)?;
    let mut redis = Redis::connect(address)?;
    redis.call(&["DEBUG", "POPULATE", "20000"])?;
    redis.call(&["BGSAVE"])?;
    benchmark(&shell.guest, address, &["-n", "3000", "-t", "set,get"])?;
    redis.wait_for_info("rdb_bgsave_in_progress", "0")?;
    redis.wait_for_info("rdb_last_bgsave_status", "ok")?;
    redis.call(&["BGREWRITEAOF"])?;
    benchmark(&shell.guest, address, &["-n", "3000", "-t", "set,get"])?;
    redis.wait_for_info("aof_rewrite_in_progress", "0")?;
    redis.wait_for_info("aof_last_bgrewrite_status", "ok")?;
    let before = redis.call(&["DBSIZE"])?;
    redis.call(&["DEBUG", "RELOAD"])?;
    let after = redis.call(&["DBSIZE"])?;
    if before != after {
        return Err(format!("{before} keys before the reload, {after} after"));
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// More than windows hold; all together, more than packet memory.
const LARGE_BYTES: usize = 5_000_000;
const DEAF_PEERS: usize = 10;

fn outlasts_deaf_peers(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/redis-server"])?;
    let address = start_redis(&mut shell, "--save ''")?;
    let mut redis = Redis::connect(address)?;
    let large = "large ".repeat(LARGE_BYTES / 6);
    redis.call(&["SET", "large", &large])?;
    let deaf = (0..DEAF_PEERS).map(|_| asks_and_reads_nothing(address));
    let deaf = deaf.collect::<Result<Vec<_>, _>>()?;
    benchmark(
        &shell.guest,
        address,
        &["-n", "3000", "-c", "200", "-t", "set,get"],
    )?;
    if redis.call(&["GET", "large"])? != large {
        return Err("a large value is not what it was".into());
    }
    drop(deaf);
    benchmark(
        &shell.guest,
        address,
        &["-n", "300", "-c", "50", "-d", "65536", "-t", "set,get"],
    )?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn asks_and_reads_nothing(address: SocketAddr) -> Result<TcpStream, String> {
    let asked = TcpStream::connect(address).and_then(|mut peer| {
        peer.write_all(b"GET large\r\n")?;
        Ok(peer)
    });
    asked.map_err(|error| error.to_string())
}

const CLIENTS: usize = 16;

fn serves_memcached(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/memcached"])?;
    let program = "memcached -vv -t 2 -u root -l 0.0.0.0";
    start(&mut shell, program, "server listening")?;
    let address = (PROGRAM, MEMCACHED).into();
    let served = together(CLIENTS, |number| memcached::client(address, number));
    served.map_err(|why| shell.guest.explain(&why))?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// It forks before its first socket, and its first process ends.
fn serves_in_the_background(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/memcached"])?;
    let told = shell.ask_within(
        &format!(
            "{VARIABLES} memcached -d -vv -u root -l 0.0.0.0 -P /tmp/pid >/tmp/said 2>&1; \
             until grep -q 'server listening' /tmp/said && [ -s /tmp/pid ]; do sleep 0.1; done; \
             grep libsietch: /tmp/said; ls /proc/$(cat /tmp/pid)/exe && echo it runs"
        ),
        PATIENCE,
    )?;
    if !told.contains("it runs") || told.contains("libsietch:") {
        return Err(told);
    }
    memcached::client((PROGRAM, MEMCACHED).into(), 1).map_err(|why| shell.guest.explain(&why))?;
    shell.ask("kill $(cat /tmp/pid)")?;
    shell.leave().map(drop)
}

/// nginx as one process.
pub const NGINX: &str = "\
daemon off;
master_process off;
error_log stderr notice;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    server { listen 80; root /site; }
}
";

fn serves_nginx(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let page = "sand ".repeat(20_000);
    let files = [
        format!(
            "{}:/site/index.html",
            write_file("bypass/index.html", &page)?
        ),
        format!("{}:/nginx.conf", write_file("bypass/nginx.conf", NGINX)?),
    ];
    let programs = ["/usr/sbin/nginx:/usr/sbin/nginx", &files[0], &files[1]];
    let mut shell = operator(setup, &programs)?;
    start(&mut shell, "nginx -c /nginx.conf", "getrlimit")?;
    let address = (PROGRAM, HTTP).into();
    for connections in [Connections::Kept, Connections::Fresh] {
        http::load(address, "/index.html", &page, 8, 20, connections)
            .map_err(|why| shell.guest.explain(&why))?;
    }
    // It looks at its signals when something happens, or when one ends its wait.
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

/// Two threads; what comes from a peer goes on to a socket of the kernel's.
const HAPROXY: &str = "\
global
    nbthread 2
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend front
    bind :80
    default_backend site
backend site
    server web 127.0.0.1:8080
";

fn serves_haproxy(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let page = "sand ".repeat(400_000);
    let files = [
        format!(
            "{}:/site/index.html",
            write_file("bypass/large.html", &page)?
        ),
        format!(
            "{}:/haproxy.cfg",
            write_file("bypass/haproxy.cfg", HAPROXY)?
        ),
    ];
    let programs = ["/usr/sbin/haproxy:/usr/sbin/haproxy", &files[0], &files[1]];
    let mut shell = operator(setup, &programs)?;
    shell.ask("busybox httpd -p 8080 -h /site")?;
    start(&mut shell, "haproxy -V -f /haproxy.cfg", "Using")?;
    let address = (PROGRAM, HTTP).into();
    // It says nothing when it listens.
    shell.guest.expect_answer(address, HELLO)?;
    for (clients, requests, connections) in [(4, 2, Connections::Fresh), (8, 4, Connections::Kept)]
    {
        http::load(
            address,
            "/index.html",
            &page,
            clients,
            requests,
            connections,
        )
        .map_err(|why| shell.guest.explain(&why))?;
    }
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

fn serves_iperf(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/iperf3"])?;
    start(&mut shell, "iperf3 -s -4 --forceflush", "listening")?;
    let all = [
        "-t 1",
        "-t 1 -R",
        "-t 1 -P 4",
        "-u -b 5M -t 1",
        "-u -b 5M -t 1 -R",
    ];
    for (number, flags) in all.into_iter().enumerate() {
        // Between two clients the server closes its listener, and so refuses whom it has not accepted.
        shell.ask(&format!(
            "until grep -q 'test #{}' /tmp/said; do sleep 0.1; done",
            number + 1
        ))?;
        let mut client = Command::new("timeout");
        let address = PROGRAM.to_string();
        client
            .args(["60", "iperf3", "-c", &address])
            .args(flags.split(' '));
        let output = client.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let server = shell.ask("cat /tmp/said")?;
            return Err(shell
                .guest
                .explain(&format!("iperf3 {flags}: {said} {server}")));
        }
    }
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

fn falls_back(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, &["/usr/bin/redis-server"])?;
    let said = shell.ask(
        "LD_PRELOAD=/lib/libsietch.so SIETCH_LINK=nosuch SIETCH_ADDRESS=10.0.2.61/24 \
         redis-server --protected-mode no --save '' >/tmp/said 2>&1 & \
         until grep -q Ready /tmp/said; do sleep 0.1; done; grep -c libsietch: /tmp/said",
    )?;
    if said.split_whitespace().last() != Some("1") {
        return Err(format!("it is not told once: {said}"));
    }
    let mut redis = Redis::connect((qemu::namespace::MACHINE, REDIS).into())?;
    redis.call(&["SET", "key", "value"])?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}
