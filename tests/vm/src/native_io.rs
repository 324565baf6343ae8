//! Programs with a network of their own, by `user/libos` (`docs/libos.md`).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::bypass;
use crate::clients::together;
use crate::guest::Setup;
use crate::links::{number, operator_with};
use crate::memcached;
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a program with a network of its own echoes datagrams, and sleeps while none come",
        echoes,
    ),
    (
        "a link has one network at a time: the program's, and then the next one's",
        taken,
    ),
    (
        "a server with a network of its own answers by streams and by datagrams",
        answers,
    ),
];

/// Those of frames without a stack.
pub const TESTS_OF_FRAMES: &[Test] = &[(
    "a balancer on a link of its own spreads clients over a server of the kernel's and one that is native",
    balances,
)];

const PROGRAM: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
const ECHO: u16 = 7;
const STORE: u16 = 11211;
/// Datagrams under way at once.
const WINDOW: usize = 32;
const LENGTHS: [usize; 6] = [0, 1, 18, 777, 1471, 1472];
const ATTEMPTS: usize = 20;

fn operator(setup: &Setup) -> Result<Operator, String> {
    let example = |name: &str| -> Result<String, String> {
        let built = build::example("sietch-io", name)?;
        Ok(format!("{}:/bin/{name}", built.display()))
    };
    let mut flags = Vec::new();
    for name in ["udp_echo", "kv", "balancer"] {
        flags.extend(["--add".into(), example(name)?]);
    }
    flags.extend(["--add".into(), "/usr/bin/memcached".into()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut shell = operator_with(setup, &flags)?;
    shell.ask("dladm create-vnic -t -l eth0 -m 2:0:0:0:0:61 vnic61")?;
    Ok(shell)
}

fn starts(shell: &mut Operator, program: &str) -> Result<(), String> {
    let said = shell.ask(&format!(
        "rm -f /tmp/said; {program} vnic61 {PROGRAM}/24 >/tmp/said 2>&1 & \
         until grep -q . /tmp/said; do sleep 0.1; done; cat /tmp/said"
    ))?;
    match said.contains("\nserving") {
        true => Ok(()),
        false => Err(format!("the program does not start: {said}")),
    }
}

fn echoes(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    starts(&mut shell, "udp_echo")?;
    let socket = client()?;
    for len in LENGTHS {
        exchange(&socket, len, 1)?;
    }
    exchange(&socket, 1000, WINDOW)?;
    sleeps(&mut shell)?;
    exchange(&socket, 64, 1)?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// How often the program has gone to sleep.
const SLEEPS: &str = "awk '/^voluntary/ {print $2}' /proc/$!/status";
/// For a broadcast of the host's, a timer of the stack's.
const SLEEPS_MAX: u64 = 10;

/// It neither runs on and on nor wakes up again and again.
fn sleeps(shell: &mut Operator) -> Result<(), String> {
    let before = number(shell, SLEEPS)?;
    bypass::sleeps(shell)?;
    let sleeps = number(shell, SLEEPS)? - before;
    match sleeps <= SLEEPS_MAX {
        true => Ok(()),
        false => Err(format!("while nothing came it woke {sleeps} times")),
    }
}

fn client() -> Result<UdpSocket, String> {
    client_of(ECHO)
}

/// A socket to a port of the program's.
pub fn client_of(port: u16) -> Result<UdpSocket, String> {
    let bound = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((PROGRAM, port))?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        Ok(socket)
    });
    bound.map_err(|error| error.to_string())
}

/// So many datagrams sent at once come back as they were; a host that is busy may lose some.
pub fn exchange(socket: &UdpSocket, len: usize, count: usize) -> Result<(), String> {
    let datagram = |number: usize| -> Vec<u8> { (0..len).map(|at| (at + number) as u8).collect() };
    for _ in 0..ATTEMPTS {
        let sent = (0..count).try_for_each(|number| socket.send(&datagram(number)).map(drop));
        sent.map_err(|error| error.to_string())?;
        let mut buffer = [0; 2048];
        let mut comes = |number: usize| {
            let bytes = socket.recv(&mut buffer);
            bytes.is_ok_and(|bytes| buffer[..bytes] == datagram(number))
        };
        if (0..count).all(&mut comes) {
            return Ok(());
        }
        drain(socket)?;
    }
    Err(format!("{count} datagrams of {len} bytes do not come back"))
}

/// Takes what came too late.
fn drain(socket: &UdpSocket) -> Result<(), String> {
    let emptied = socket.set_nonblocking(true).and_then(|()| {
        while socket.recv(&mut [0; 1]).is_ok() {}
        socket.set_nonblocking(false)
    });
    emptied.map_err(|error| error.to_string())
}

fn taken(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    starts(&mut shell, "udp_echo")?;
    let refused = shell.ask("udp_echo vnic61 10.0.2.62/24; echo status $?")?;
    if !refused.contains("busy") || !refused.contains("status 1") {
        return Err(format!("two programs have one link: {refused}"));
    }
    let socket = client()?;
    for _ in 0..3 {
        exchange(&socket, 64, WINDOW)?;
        shell.ask("kill -9 $!; wait $!")?;
        starts(&mut shell, "udp_echo")?;
    }
    exchange(&socket, 64, WINDOW)?;
    let said = shell.ask("dladm delete-vnic -t vnic61; wait $!; cat /tmp/said")?;
    if !said.contains("vnic61: ") {
        return Err(format!("the program does not hear of it: {said}"));
    }
    shell.leave().map(drop)
}

/// Connections at once, and keys of each.
const CONNECTIONS: usize = 8;
const KEYS: usize = 40;
const VALUE_BYTES: usize = 1000;

fn answers(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    starts(&mut shell, "kv")?;
    let mut peers = (0..CONNECTIONS)
        .map(|_| peer())
        .collect::<Result<Vec<_>, _>>()?;
    for (number, peer) in peers.iter_mut().enumerate() {
        (0..KEYS).try_for_each(|key| set(peer, number, key))?;
    }
    for (number, peer) in peers.iter_mut().enumerate() {
        get_all(peer, number)?;
    }
    drop(peers);
    large()?;
    by_datagram()?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn peer() -> Result<TcpStream, String> {
    let peer = TcpStream::connect((PROGRAM, STORE)).and_then(|peer| {
        peer.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(peer)
    });
    peer.map_err(|error| error.to_string())
}

fn value(number: usize, key: usize) -> String {
    let byte = char::from(b'a' + ((number + key) % 26) as u8);
    byte.to_string().repeat(VALUE_BYTES)
}

fn set(peer: &mut TcpStream, number: usize, key: usize) -> Result<(), String> {
    let value = value(number, key);
    let request = format!("set {number}-{key} 0 0 {VALUE_BYTES}\r\n{value}\r\n");
    says(peer, &request, "STORED\r\n")
}

/// More than a window's beginning, so that the answer takes several turns.
fn get_all(peer: &mut TcpStream, number: usize) -> Result<(), String> {
    let keys: String = (0..KEYS).map(|key| format!(" {number}-{key}")).collect();
    let of_key = |key| {
        let value = value(number, key);
        format!("VALUE {number}-{key} 0 {VALUE_BYTES}\r\n{value}\r\n")
    };
    let answer = (0..KEYS).map(of_key).collect::<String>() + "END\r\n";
    says(peer, &format!("get{keys}\r\n"), &answer)
}

fn says(peer: &mut TcpStream, request: &str, answer: &str) -> Result<(), String> {
    let mut said = vec![0; answer.len()];
    let asked = peer.write_all(request.as_bytes());
    let answered = asked.and_then(|()| peer.read_exact(&mut said));
    answered.map_err(|error| format!("no answer: {error}"))?;
    match said == answer.as_bytes() {
        true => Ok(()),
        false => Err(format!(
            "a wrong answer: {}",
            String::from_utf8_lossy(&said)
        )),
    }
}

/// More than the host puts into one frame, which it leaves to a card to cut.
const LARGE_BYTES: usize = 500_000;

fn large() -> Result<(), String> {
    let mut peer = peer()?;
    let value: String = (0..LARGE_BYTES)
        .map(|at| char::from(b'a' + (at / 7 % 26) as u8))
        .collect();
    let request = format!("set large 0 0 {LARGE_BYTES}\r\n{value}\r\n");
    says(&mut peer, &request, "STORED\r\n")?;
    let answer = format!("VALUE large 0 {LARGE_BYTES}\r\n{value}\r\nEND\r\n");
    says(&mut peer, "get large\r\n", &answer)
}

fn by_datagram() -> Result<(), String> {
    let socket = client_of(STORE)?;
    let mut said = [0; 2048];
    let mut ask = || {
        socket.send(b"\x12\x34\0\0\0\x01\0\0get 0-0\r\n")?;
        socket.recv(&mut said)
    };
    let mut attempts = (0..ATTEMPTS).map(|_| ask());
    let bytes = attempts.find_map(Result::ok).ok_or("no answer by UDP")?;
    let answer = format!("VALUE 0-0 0 {VALUE_BYTES}\r\n{}\r\nEND\r\n", value(0, 0));
    match said[..bytes] == [b"\x12\x34\0\0\0\x01\0\0", answer.as_bytes()].concat() {
        true => Ok(()),
        false => Err("a wrong answer by UDP".into()),
    }
}

const BALANCER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 60);
const CLIENTS: usize = 4;

fn balances(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    starts(&mut shell, "kv")?;
    shell.ask("kv=$!; memcached -u root -l 0.0.0.0 & memcached=$!")?;
    shell.ask("dladm create-vnic -t -l eth0 -m 2:0:0:0:0:60 vnic60")?;
    let said = shell.ask(&format!(
        "balancer vnic60 {BALANCER}:{STORE} {PROGRAM} 10.0.2.15 >/tmp/balancer 2>&1 & \
         until grep -q . /tmp/balancer; do sleep 0.1; done; cat /tmp/balancer"
    ))?;
    if !said.contains("serving") {
        return Err(format!("the balancer does not start: {said}"));
    }
    let service = (BALANCER, STORE).into();
    let versions = versions(service).map_err(|why| shell.guest.explain(&why))?;
    if versions.len() != 2 {
        return Err(format!("not both servers have answered: {versions:?}"));
    }
    together(CLIENTS, |number| memcached::client(service, number))
        .map_err(|why| shell.guest.explain(&why))?;
    shell.ask("kill -9 $! $kv $memcached; wait")?;
    shell.leave().map(drop)
}

/// What servers say who they are, of several connections.
fn versions(service: SocketAddr) -> Result<BTreeSet<String>, String> {
    let version = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(service)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"version\r\n")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line)
    };
    let all: std::io::Result<BTreeSet<String>> = (0..6).map(|_| version()).collect();
    all.map_err(|error| error.to_string())
}
