//! Programs whose threads have a queue of the link each by libsietch.so (`docs/bypass.md`, "Threads").

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::bypass::{PROGRAM, operator_of, start};
use crate::clients::together;
use crate::exchanged::exchange;
use crate::guest::{Setup, write_file};
use crate::link_counts::kstat;
use crate::memcached;
use crate::operator::Operator;
use crate::redis::benchmark;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "memcached by libsietch.so has queues for its four threads, and keeps the values of many clients",
        serves_by_several_queues,
    ),
    (
        "libsietch.so is exchanged under threads that have queues of their own",
        is_exchanged_under_threads,
    ),
    (
        "threads of a program that has no right to further queues share the first, and are told so",
        share_what_there_is,
    ),
    (
        "Python's threads with an event loop each, and with a connection each, serve by libsietch.so",
        serves_in_python,
    ),
    (
        "threads with queues of their own serve on while their program forks, and children have their connections",
        forks_beside_threads,
    ),
    (
        "Redis by libsietch.so with threads that read and write for it serves a mixed load",
        serves_with_io_threads,
    ),
];

const MEMCACHED: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(PROGRAM), 11211);
const ECHO: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(PROGRAM), 7);
const CLIENTS: usize = 16;

fn operator(setup: &Setup) -> Result<Operator, String> {
    let server = build::c(Path::new("tests/programs/scenes/thread_echo.c"))?;
    let server = format!("{}:/bin/thread_echo", server.display());
    build::library("sietch")?;
    let tool = "target/release/sietch-upgrade:/bin/sietch-upgrade";
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let programs = ["/usr/bin/memcached", "/usr/bin/ss", &server, tool, &kstat];
    operator_of(setup, "512M", &programs)
}

/// Frames that have come to a further queue of the link.
fn frames(shell: &mut Operator, queue: usize) -> Result<u64, String> {
    kstat(shell, &format!("vnic61:0:xdp{queue}:ipackets"))
}

fn is_shared_out(shell: &mut Operator) -> Result<(), String> {
    match frames(shell, 1)? {
        0 => Err("no frame has come to a thread's own queue".into()),
        _ => Ok(()),
    }
}

fn serves_by_several_queues(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    let program = "memcached -vv -t 4 -u root -l 0.0.0.0";
    start(&mut shell, program, "server listening")?;
    for _ in 0..3 {
        let served = together(CLIENTS, |number| memcached::client(MEMCACHED, number));
        served.map_err(|why| shell.guest.explain(&why))?;
        is_shared_out(&mut shell)?;
    }
    // Nothing is left of those that have gone.
    let listed = shell.ask("ss -tnH state established | grep -c :11211")?;
    if listed.trim() != "0" {
        return Err(format!("{listed} connections are left"));
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// A peer of the echo server.
struct Peer(BufReader<TcpStream>);

impl Peer {
    fn new() -> Result<Self, String> {
        Self::at(ECHO)
    }

    fn at(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).and_then(|stream| {
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            Ok(stream)
        });
        stream
            .map(|stream| Self(BufReader::new(stream)))
            .map_err(|error| error.to_string())
    }

    fn exchange(&mut self, line: &str) -> Result<(), String> {
        let mut answer = String::new();
        let asked = self.0.get_mut().write_all(line.as_bytes());
        let answered = asked.and_then(|()| self.0.read_line(&mut answer));
        match answered {
            Ok(_) if answer == line => Ok(()),
            Ok(_) => Err(format!("{answer:?} instead of {line:?}")),
            Err(error) => Err(format!("no answer to {line:?}: {error}")),
        }
    }
}

impl Peer {
    fn expect_end(&mut self) -> Result<(), String> {
        let mut more = String::new();
        match self.0.read_line(&mut more) {
            Ok(0) => Ok(()),
            said => Err(format!("{said:?} instead of the end: {more:?}")),
        }
    }
}

/// Asks by connections that stay and by fresh ones.
fn talks(number: usize, rounds: usize) -> Result<(), String> {
    let mut kept = Peer::new()?;
    for round in 0..rounds {
        kept.exchange(&format!("{number} {round}\n"))?;
        if round % 10 == 0 {
            kept.exchange("dup\n")?;
            Peer::new()?.exchange(&format!("once {number} {round}\n"))?;
        }
    }
    Ok(())
}

/// Has children answer, one after the other, while others do the same. Each connection ends with its child.
fn talks_to_children() -> Result<(), String> {
    for _ in 0..CHILDREN {
        let mut peer = Peer::new()?;
        peer.exchange("child\n")?;
        peer.expect_end()?;
    }
    Ok(())
}

const ROUNDS: usize = 100;
const CHILDREN: usize = 8;

fn forks_beside_threads(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    start(&mut shell, "thread_echo 3", "serving")?;
    let served = together(CLIENTS, |number| match number {
        0 => {
            let mut peer = Peer::new()?;
            (0..10).try_for_each(|_| peer.exchange("fork\n"))
        }
        number => talks(number, ROUNDS),
    });
    served.map_err(|why| shell.guest.explain(&why))?;
    is_shared_out(&mut shell)?;
    let mut peers = (0..4).map(|_| Peer::new()).collect::<Result<Vec<_>, _>>()?;
    for line in ["before\n", "fork\n", "after\n", "child\n"] {
        let answered = peers.iter_mut().try_for_each(|peer| peer.exchange(line));
        answered.map_err(|why| shell.guest.explain(&why))?;
    }
    peers.iter_mut().try_for_each(Peer::expect_end)?;
    let ended = together(4, |_| talks_to_children());
    ended.map_err(|why| shell.guest.explain(&why))?;
    let served = together(CLIENTS, |number| talks(number, ROUNDS));
    served.map_err(|why| shell.guest.explain(&why))?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn is_exchanged_under_threads(setup: &Setup) -> Result<(), String> {
    const TIMES: usize = 3;
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    start(&mut shell, "thread_echo 3", "serving")?;
    let mut peers = (0..CLIENTS)
        .map(|_| Peer::new())
        .collect::<Result<Vec<_>, _>>()?;
    for version in 0..TIMES {
        let mut all = |line: &str| peers.iter_mut().try_for_each(|peer| peer.exchange(line));
        all("before\n")?;
        exchange(&mut shell, version)?;
        all("after\n").map_err(|why| shell.guest.explain(&why))?;
        let served = together(CLIENTS, |number| talks(number, ROUNDS));
        served.map_err(|why| shell.guest.explain(&why))?;
        is_shared_out(&mut shell)?;
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn share_what_there_is(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    start(&mut shell, "thread_echo 3 65534", "serving")?;
    let served = together(CLIENTS, |number| talks(number, ROUNDS));
    served.map_err(|why| shell.guest.explain(&why))?;
    let said = shell.ask("cat /tmp/said")?;
    if said.matches("share 1 of its queues").count() != 1 {
        return Err(format!("it is not told once: {said}"));
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// Echo servers of lines: threads with an event loop each on port 7, a thread for each connection on port 8.
const SERVERS: &str = r#"
import asyncio, socket, socketserver, threading

async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()

# A loop forgets tasks that nobody else knows.
tasks = set()

async def serve(connection):
    tasks.add(asyncio.current_task())
    reader, writer = await asyncio.open_connection(sock=connection)
    await echo(reader, writer)
    tasks.discard(asyncio.current_task())

def run(loop):
    asyncio.set_event_loop(loop)
    loop.run_forever()

loops = [asyncio.new_event_loop() for _ in range(2)]
for loop in loops:
    threading.Thread(target=run, args=(loop,), daemon=True).start()

class Lines(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

blocking = Server(('', 8), Lines)
threading.Thread(target=blocking.serve_forever, daemon=True).start()
listener = socket.create_server(('', 7), backlog=64)
print('serving', flush=True)
turn = 0
while True:
    connection, _ = listener.accept()
    connection.setblocking(False)
    asyncio.run_coroutine_threadsafe(serve(connection), loops[turn % 2])
    turn += 1
"#;

fn serves_in_python(setup: &Setup) -> Result<(), String> {
    const PYTHON: &str = "/usr/bin/python3";
    if !setup.has_tap() {
        return Ok(());
    }
    let script = format!("{}:/servers.py", write_file("threads/servers.py", SERVERS)?);
    let modules = build::python_library()?;
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let mut shell = operator_of(setup, "512M", &[PYTHON, &modules, &script, &kstat])?;
    start(&mut shell, "python3 /servers.py", "serving")?;
    // Those with a connection each first: the others' frames would count for theirs.
    for ports in [[8, 8], [7, 8]] {
        let served = together(CLIENTS, |number| {
            let address = (PROGRAM, ports[number % 2]).into();
            let mut kept = Peer::at(address)?;
            for round in 0..20 {
                kept.exchange(&format!("{number} {round}\n"))?;
                Peer::at(address)?.exchange("once\n")?;
            }
            Ok(())
        });
        served.map_err(|why| shell.guest.explain(&why))?;
        is_shared_out(&mut shell)?;
    }
    shell.ask("kill -9 $(pidof python3); wait $!")?;
    shell.leave().map(drop)
}

fn serves_with_io_threads(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator_of(setup, "512M", &["/usr/bin/redis-server"])?;
    let program =
        "redis-server --protected-mode no --save '' --io-threads 3 --io-threads-do-reads yes";
    start(&mut shell, program, "Ready to accept connections")?;
    let address = (PROGRAM, 6379).into();
    for flags in [
        ["-n", "3000", "-c", "50", "-t", "set,get", "-P", "1"],
        ["-n", "20000", "-c", "50", "-t", "set,get", "-P", "16"],
    ] {
        benchmark(&shell.guest, address, &flags)?;
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}
