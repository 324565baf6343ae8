//! Servers of several processes, each with a queue of one link by libsietch.so (`docs/bypass.md`, "fork").

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::bypass::{operator_of, start};
use crate::guest::{Setup, write_file};
use crate::http::{self, Connections, HELLO};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "nginx by libsietch.so serves with four workers, and reloads without losing a connection",
        serves_and_reloads,
    ),
    (
        "a worker that is killed leaves its flows to be refused at once, and others go on",
        loses_a_worker,
    ),
    (
        "nginx with four workers on a link of its own by --bypass=vnic serves",
        serves_by_one_command,
    ),
    (
        "a listener that children of a fork inherit serves in each of them",
        serves_in_children,
    ),
];

const PROGRAM: SocketAddr = {
    let host = Ipv4Addr::new(10, 0, 2, 61);
    SocketAddr::V4(std::net::SocketAddrV4::new(host, 80))
};
const WORKERS: usize = 4;
/// Of so many connections none of four workers gets none, but once in ten million runs.
const PEERS: usize = 64;
/// Packet memory of twice as many workers is at most a quarter of it.
const MEMORY: &str = "512M";
const PATIENCE: Duration = Duration::from_secs(30);

/// Workers give up their rights before they use the listener.
const CONFIG: &str = "\
daemon off;
user nobody nogroup;
worker_processes 4;
error_log stderr notice;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    server {
        listen 80;
        root /site;
        location /pid { return 200 \"worker $pid.\"; }
        location /slow/ { alias /site/; limit_rate 60k; }
    }
}
";

fn page() -> String {
    "sand ".repeat(40_000)
}

/// What nginx is to find in the machine.
fn files(page: &str, config: &str) -> Result<Vec<String>, String> {
    const USERS: &str = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n";
    let files = [
        ("/site/index.html", page),
        ("/nginx.conf", config),
        ("/etc/passwd", USERS),
        ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ];
    let write = |(guest, bytes): (&str, &str)| {
        let host = write_file(&format!("workers{guest}"), bytes)?;
        Ok(format!("{host}:{guest}"))
    };
    files.into_iter().map(write).collect()
}

fn nginx(setup: &Setup) -> Result<Operator, String> {
    nginx_beside(setup, &[])
}

/// A machine with `programs` in which nginx runs, with four workers on a link.
pub fn nginx_beside(setup: &Setup, programs: &[&str]) -> Result<Operator, String> {
    nginx_with(setup, CONFIG, "nginx -c /nginx.conf", programs)
}

/// The same with another configuration, by a command that stays.
pub fn nginx_with(
    setup: &Setup,
    config: &str,
    program: &str,
    programs: &[&str],
) -> Result<Operator, String> {
    let files = files(&page(), config)?;
    let mut added = vec!["/usr/sbin/nginx:/usr/sbin/nginx"];
    added.extend(programs);
    added.extend(files.iter().map(String::as_str));
    let mut shell = operator_of(setup, MEMORY, &added)?;
    start(&mut shell, program, "start worker process ")?;
    Ok(shell)
}

/// A connection that is used again and again.
pub struct Peer(BufReader<TcpStream>);

impl Peer {
    /// A new one.
    pub fn new() -> Result<Self, String> {
        let stream = TcpStream::connect(PROGRAM).map_err(|error| error.to_string())?;
        let timeout = stream.set_read_timeout(Some(PATIENCE));
        timeout.map_err(|error| error.to_string())?;
        Ok(Self(BufReader::new(stream)))
    }

    /// The port from which it connects.
    pub fn port(&self) -> std::io::Result<u16> {
        Ok(self.0.get_ref().local_addr()?.port())
    }

    fn ask(&mut self, path: &str) -> std::io::Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: sietch\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes())
    }

    /// The number of the process that answers.
    pub fn worker(&mut self) -> std::io::Result<u32> {
        self.ask("/pid")?;
        let mut answer = Vec::new();
        self.0.read_until(b'.', &mut answer)?;
        while !answer.ends_with(b".") || !answer.windows(7).any(|word| word == b"worker ") {
            if self.0.read_until(b'.', &mut answer)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let text = String::from_utf8_lossy(&answer);
        let number = text.rsplit("worker ").next().unwrap_or_default();
        let number = number.trim_end_matches('.').parse();
        number.map_err(std::io::Error::other)
    }
}

/// Connections to as many workers as there are, each with its worker.
fn peers(shell: &Operator) -> Result<Vec<(Peer, u32)>, String> {
    let connect = |_| {
        let mut peer = Peer::new()?;
        let worker = peer.worker().map_err(|error| error.to_string())?;
        Ok((peer, worker))
    };
    let all: Result<Vec<_>, String> = (0..PEERS).map(connect).collect();
    all.map_err(|why| shell.guest.explain(&why))
}

fn workers_of(peers: &[(Peer, u32)]) -> BTreeSet<u32> {
    peers.iter().map(|(_, worker)| *worker).collect()
}

fn all_serve(peers: &[(Peer, u32)], count: usize) -> Result<BTreeSet<u32>, String> {
    let workers = workers_of(peers);
    match workers.len() == count {
        true => Ok(workers),
        false => Err(format!(
            "of {count} processes these have served: {workers:?}"
        )),
    }
}

/// Waits until a program has said a word so often.
fn said(shell: &mut Operator, word: &str, times: usize) -> Result<(), String> {
    let wait = format!(
        "for i in $(seq 300); do [ $(grep -c '{word}' /tmp/said) -ge {times} ] && break; \
         sleep 0.1; done; grep -c '{word}' /tmp/said"
    );
    let found = shell.ask(&wait)?;
    match found
        .split_whitespace()
        .last()
        .and_then(|last| last.parse().ok())
    {
        Some(found) if times <= found => Ok(()),
        _ => Err(format!("{word:?} {found}: {}", shell.ask("cat /tmp/said")?)),
    }
}

fn serves_and_reloads(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let page = page();
    let mut shell = nginx(setup)?;
    said(&mut shell, "start worker process ", WORKERS)?;
    for connections in [Connections::Kept, Connections::Fresh] {
        http::load(PROGRAM, "/index.html", &page, 16, 20, connections)
            .map_err(|why| shell.guest.explain(&why))?;
    }
    let before = all_serve(&peers(&shell)?, WORKERS)?;
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut peer = Peer::new()?;
        peer.ask("/slow/index.html")
            .map_err(|error| error.to_string())?;
        slow.push(peer);
    }
    shell.ask("kill -HUP $!")?;
    said(&mut shell, "gracefully shutting down", WORKERS)?;
    let after = all_serve(&peers(&shell)?, WORKERS)?;
    if after.iter().any(|worker| before.contains(worker)) {
        return Err(format!("{before:?} served, and after the reload {after:?}"));
    }
    for peer in slow {
        arrives(peer, &page).map_err(|why| shell.guest.explain(&why))?;
    }
    said(&mut shell, "exited with code 0", WORKERS)?;
    said(&mut shell, "libsietch:", 0)?;
    shell.ask("kill -9 $(pidof nginx); wait $!")?;
    shell.leave().map(drop)
}

fn serves_by_one_command(setup: &Setup) -> Result<(), String> {
    build::library("sietch")?;
    let page = page();
    let files = files(&page, CONFIG)?;
    let mut args = vec!["-m", MEMORY, "--bypass=vnic"];
    args.extend(files.iter().flat_map(|file| ["--add", file.as_str()]));
    args.extend(["/usr/sbin/nginx", "-c", "/nginx.conf"]);
    // The host knows the card as the station of the machine's own address, and this one is the link's.
    let tap = format!("tap={}", qemu::namespace::TAP);
    let wiring = ["--net", &tap, "--ip", "10.0.2.61/24"];
    let (guest, address) = match setup.has_tap() {
        true => (setup.start(&[&wiring[..], &args].concat())?, PROGRAM),
        false => setup.serve(PROGRAM.port(), &args)?,
    };
    guest.expect_answer(address, HELLO)?;
    for connections in [Connections::Kept, Connections::Fresh] {
        http::load(address, "/index.html", &page, 16, 10, connections)
            .map_err(|why| guest.explain(&why))?;
    }
    let console = guest.console();
    match console.contains("libsietch:") || console.contains("links refused") {
        true => Err(format!("the link is not the program's: {console}")),
        false => guest.stop().map(drop),
    }
}

/// All of a page comes by a connection on which it was asked for.
fn arrives(mut peer: Peer, page: &str) -> Result<(), String> {
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while !answer.ends_with(page.as_bytes()) {
        match peer.0.read(&mut part) {
            Ok(0) => return Err(format!("the answer ends after {} bytes", answer.len())),
            Ok(count) => answer.extend(&part[..count]),
            Err(error) => return Err(format!("{error} after {} bytes", answer.len())),
        }
    }
    Ok(())
}

fn loses_a_worker(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = nginx(setup)?;
    said(&mut shell, "start worker process ", WORKERS)?;
    let mut peers = peers(&shell)?;
    let workers = all_serve(&peers, WORKERS)?;
    let lost = *workers.first().ok_or("nobody")?;
    shell.ask(&format!("kill -9 {lost}"))?;
    said(&mut shell, "exited on signal 9", 1)?;
    for (peer, worker) in &mut peers {
        let answer = peer.worker();
        let is_refused = answer.as_ref().is_err_and(|error| {
            !matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            )
        });
        let is_right = match *worker == lost {
            true => is_refused,
            false => answer.as_ref().is_ok_and(|now| now == worker),
        };
        if !is_right {
            return Err(shell
                .guest
                .explain(&format!("{lost} was killed; {worker} answers {answer:?}")));
        }
    }
    said(&mut shell, "start worker process ", WORKERS + 1)?;
    http::load(PROGRAM, "/index.html", &page(), 16, 10, Connections::Fresh)
        .map_err(|why| shell.guest.explain(&why))?;
    shell.ask("kill -9 $(pidof nginx); wait $!")?;
    shell.leave().map(drop)
}

const PYTHON: &str = "/usr/bin/python3";
/// The library's own server, in children of one that has bound the port.
const CHILDREN: &str = r#"
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = f"worker {os.getpid()}.".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True
    def log_message(self, *what):
        pass
server = http.server.HTTPServer(("", 80), Handler)
for _ in range(3):
    if os.fork() == 0:
        server.serve_forever()
print("forked", flush=True)
os.wait()
"#;

fn serves_in_children(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let script = write_file("workers/children.py", CHILDREN)?;
    let script = format!("{script}:/children.py");
    let modules = build::python_library()?;
    let mut shell = operator_of(setup, MEMORY, &[PYTHON, &modules, &script])?;
    start(&mut shell, "python3 /children.py", "forked")?;
    let peers = peers(&shell)?;
    all_serve(&peers, 3)?;
    shell.ask("kill -9 $(pidof python3); wait $!")?;
    shell.leave().map(drop)
}
