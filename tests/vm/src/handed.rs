//! Connections that go from a process to its children by libsietch.so (`docs/bypass.md`, "fork").

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::bypass::{PROGRAM, operator_of, start};
use crate::clients::together;
use crate::guest::{Setup, write_file};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a server of Python's by libsietch.so that forks for each connection serves them in children",
        serves_in_a_child_each,
    ),
    (
        "socat by libsietch.so that forks for each connection and runs a program echoes",
        serves_by_socat,
    ),
    (
        "a child that is killed with a connection that it has claimed leaves its peer to be refused",
        loses_a_child,
    ),
    (
        "a connection that a child has inherited ends when the last process has closed it",
        ends_with_the_last,
    ),
    (
        "a connection goes to and fro between processes that use it in turns",
        goes_to_and_fro,
    ),
    (
        "a connection of two processes that end together is closed",
        ends_with_two_at_once,
    ),
    (
        "what a program has printed on connections by the C library's streams is sent when it ends",
        prints_at_the_end,
    ),
    (
        "a program that becomes one without libsietch.so closes what that does not get",
        becomes_another,
    ),
];

const SERVER: SocketAddr = {
    let host = PROGRAM;
    SocketAddr::V4(std::net::SocketAddrV4::new(host, 7))
};
/// Packet memory of all queues is at most a quarter of it.
pub const MEMORY: &str = "768M";
const PATIENCE: Duration = Duration::from_secs(40);
pub const PYTHON: &str = "/usr/bin/python3";

/// Answers lines: who serves, and a number of bytes back.
const FORKING: &str = r#"
import os, socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            word, *rest = line.split()
            if word == b"pid":
                self.wfile.write(b"%d\n" % os.getpid())
            elif word == b"echo":
                self.wfile.write(self.rfile.read(int(rest[0])))
class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True
    request_queue_size = 64
    max_children = 64
server = Server(("", 7), Handler)
print("serving", flush=True)
server.serve_forever()
"#;

/// Runs a script of Python's by the library.
fn python(setup: &Setup, script: &str) -> Result<Operator, String> {
    let script = write_file("handed/script.py", script)?;
    let script = format!("{script}:/script.py");
    let modules = build::python_library()?;
    let mut shell = operator_of(setup, MEMORY, &[PYTHON, &modules, &script])?;
    start(&mut shell, "python3 /script.py", "serving")?;
    Ok(shell)
}

/// A client.
pub struct Peer(BufReader<TcpStream>);

fn text(error: std::io::Error) -> String {
    error.to_string()
}

impl Peer {
    /// A new one.
    pub fn new() -> Result<Self, String> {
        let stream = TcpStream::connect(SERVER).map_err(text)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends words.
    pub fn say(&mut self, words: &[u8]) -> Result<(), String> {
        self.0.get_mut().write_all(words).map_err(text)
    }

    /// A line that comes.
    pub fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.0.read_line(&mut line).map_err(text)?;
        Ok(line.trim_end().into())
    }

    /// Who serves it.
    fn process(&mut self) -> Result<u32, String> {
        self.say(b"pid\n")?;
        let line = self.line()?;
        line.parse().map_err(|_| format!("no process: {line:?}"))
    }

    /// Sends bytes, which come back.
    pub fn echo(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut writer = self.0.get_ref().try_clone().map_err(text)?;
        let mut back = vec![0; bytes.len()];
        thread::scope(|scope| {
            let sent = scope.spawn(move || writer.write_all(bytes));
            self.0.read_exact(&mut back).map_err(text)?;
            sent.join().map_err(|_| "a thread has ended")?.map_err(text)
        })?;
        match back == bytes {
            true => Ok(()),
            false => Err("other bytes came back".into()),
        }
    }

    /// Says that nothing more is sent.
    pub fn shut(&mut self) -> Result<(), String> {
        let stream = self.0.get_ref();
        stream.shutdown(std::net::Shutdown::Write).map_err(text)
    }

    /// What still comes.
    pub fn rest(&mut self) -> Result<Vec<u8>, String> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).map_err(text)?;
        Ok(rest)
    }

    /// Whether the stream ends in order.
    pub fn ends(&mut self) -> Result<(), String> {
        self.shut()?;
        let rest = self.rest()?;
        match rest.is_empty() {
            true => Ok(()),
            false => Err(format!("{} bytes more came", rest.len())),
        }
    }
}

/// Bytes that are not alike.
pub fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 / 5) as u8).collect()
}

/// Nothing was said that a program's user should read.
pub fn is_quiet(shell: &mut Operator) -> Result<(), String> {
    let said = shell.ask("grep libsietch /tmp/said; echo")?;
    match said.contains("libsietch:") {
        true => Err(said),
        false => Ok(()),
    }
}

fn serves_in_a_child_each(setup: &Setup) -> Result<(), String> {
    const CLIENTS: usize = 24;
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup, FORKING)?;
    let served = forking_clients(CLIENTS);
    served.map_err(|why| shell.guest.explain(&why))?;
    is_quiet(&mut shell)?;
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

/// More clients at once than a link has queues.
fn forking_clients(count: usize) -> Result<(), String> {
    let mut first = Peer::new()?;
    // The request is there before a child is.
    let process = first.process()?;
    if first.process()? != process {
        return Err("another process answers".into());
    }
    let mut second = Peer::new()?;
    let others = BTreeSet::from([process, second.process()?]);
    if others.len() != 2 {
        return Err(format!("one process serves two connections: {others:?}"));
    }
    let large = bytes(300_000);
    first.say(format!("echo {}\n", large.len()).as_bytes())?;
    first.echo(&large)?;
    second.ends()?;
    together(count, |number| {
        let mut peer = Peer::new()?;
        let part = bytes(1000 * (number + 1));
        peer.process()?;
        peer.say(format!("echo {}\n", part.len()).as_bytes())?;
        peer.echo(&part)?;
        peer.ends()
    })?;
    first.process()?;
    first.ends()
}

fn serves_by_socat(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator_of(setup, MEMORY, &["/usr/bin/socat", "/bin/cat:/bin/real-cat"])?;
    let program = "socat -d -d TCP4-LISTEN:7,fork,reuseaddr EXEC:/bin/real-cat";
    start(&mut shell, program, "listening")?;
    let served = together(6, |number| {
        let mut peer = Peer::new()?;
        let part = bytes(40_000 * (number + 1));
        peer.echo(&part)?;
        peer.echo(&part)?;
        peer.ends()
    });
    served.map_err(|why| shell.guest.explain(&why))?;
    is_quiet(&mut shell)?;
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

fn loses_a_child(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup, FORKING)?;
    let mut peer = Peer::new()?;
    let process = peer.process()?;
    shell.ask(&format!("kill -9 {process}"))?;
    if let Ok(process) = peer.process() {
        return Err(format!("{process} was killed, and answers"));
    }
    let mut next = Peer::new()?;
    next.process()?;
    next.ends()?;
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

/// Each line says what is to be done, of which the peer must not notice anything but the last.
const ENDING: &str = r#"
import os, socket, time
server = socket.create_server(("", 7))
print("serving", flush=True)
while True:
    peer, _ = server.accept()
    if os.fork() == 0:
        # A child that does not use it, and one of its own that does.
        if os.fork() == 0:
            time.sleep(1)
            if peer.recv(1) == b"a":
                peer.send(b"b")
            os._exit(0)
        time.sleep(0.2)
        os._exit(0)
    peer.close()
"#;

fn ends_with_the_last(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup, ENDING)?;
    for words in [b"a", b"x"] {
        let mut peer = Peer::new()?;
        peer.say(words)?;
        let mut answer = Vec::new();
        let read = peer.0.read_to_end(&mut answer).map_err(text);
        read.map_err(|why| shell.guest.explain(&why))?;
        let expected: &[u8] = if words == b"a" { b"b" } else { b"" };
        if answer != expected {
            return Err(format!("{words:?} is answered by {answer:?}"));
        }
    }
    is_quiet(&mut shell)?;
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

/// Parent and child answer bytes in turns.
const TURNS: &str = r#"
import os, socket
server = socket.create_server(("", 7))
print("serving", flush=True)
peer, _ = server.accept()
to_child, to_parent = os.pipe(), os.pipe()
child = os.fork() == 0
take, give = (to_child[0], to_parent[1]) if child else (to_parent[0], to_child[1])
while True:
    os.read(take, 1) if child or TURN else None
    TURN = True
    data = peer.recv(3, socket.MSG_WAITALL)
    if not data:
        os.write(give, b"x")
        os._exit(0)
    peer.sendall(data + (b" child\n" if child else b" parent\n"))
    os.write(give, b"x")
"#;

fn goes_to_and_fro(setup: &Setup) -> Result<(), String> {
    const ROUNDS: usize = 12;
    if !setup.has_tap() {
        return Ok(());
    }
    let script = TURNS.replacen("take, give", "TURN = False\ntake, give", 1);
    let mut shell = python(setup, &script)?;
    let mut peer = Peer::new()?;
    // The last words of a turn are unread when the next one's process claims them.
    peer.say("abc".repeat(ROUNDS).as_bytes())?;
    for round in 0..ROUNDS {
        let who = ["parent", "child"][round % 2];
        let line = peer.line();
        let line = line.or_else(|why| {
            let said = shell.ask("cat /tmp/said")?;
            Err(format!("round {round}: {why}: {said}"))
        })?;
        if line != format!("abc {who}") {
            return Err(format!("round {round}: {line:?}"));
        }
    }
    let ended = peer.ends();
    ended.map_err(|why| shell.guest.explain(&format!("at the end: {why}")))?;
    is_quiet(&mut shell)?;
    shell.leave().map(drop)
}

/// The child has the connection. It ends while the parent, whose sockets are closed, still waits for a reader of its output.
const TOGETHER: &str = r#"
import ctypes, os, socket, time
server = socket.create_server(("", 7))
print("serving", flush=True)
output, full = os.pipe()
if os.fork() == 0:
    os.close(full)
    time.sleep(5)
    while os.read(output, 65536):
        pass
    os._exit(0)
peer, _ = server.accept()
heard, has_it = os.pipe()
if os.fork() == 0:
    peer.recv(1)
    os.write(has_it, b"x")
    time.sleep(1)
    os._exit(0)
os.read(heard, 1)
os.set_blocking(full, False)
try:
    while True:
        os.write(full, bytes(4096))
except BlockingIOError:
    os.set_blocking(full, True)
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.fputs(b"the last words\n", ctypes.c_void_p(libc.fdopen(full, b"w")))
libc.exit(0)
"#;

fn ends_with_two_at_once(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup, TOGETHER)?;
    let mut peer = Peer::new()?;
    peer.say(b"a")?;
    let rest = peer.rest().and_then(|rest| match rest.is_empty() {
        true => Ok(()),
        false => Err(format!("{} bytes came", rest.len())),
    });
    rest.map_err(|why| shell.guest.explain(&why))?;
    is_quiet(&mut shell)?;
    shell.leave().map(drop)
}

/// A program that is started with a connection as its output prints to it, and then its parent does.
const PRINTING: &str = r#"
import ctypes, socket, subprocess, sys
PRINT = "import ctypes; libc = ctypes.CDLL(None); libc.printf(b'of the child\\n'); libc.exit(0)"
server = socket.create_server(("", 7))
print("serving", flush=True)
peer, _ = server.accept()
subprocess.run([sys.executable, "-c", PRINT], stdout=peer)
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.fputs(b"of the parent\n", ctypes.c_void_p(libc.fdopen(peer.fileno(), b"w")))
libc.exit(0)
"#;

fn prints_at_the_end(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup, PRINTING)?;
    let heard = Peer::new()?
        .rest()
        .map_err(|why| shell.guest.explain(&why))?;
    is_quiet(&mut shell)?;
    match heard.as_slice() {
        b"of the child\nof the parent\n" => shell.leave().map(drop),
        _ => Err(format!("{:?} was heard", String::from_utf8_lossy(&heard))),
    }
}

/// Python's sockets are closed at an execve.
const BECOMING: &str = r#"
import os, socket
server = socket.create_server(("", 7))
print("serving", flush=True)
peer, _ = server.accept()
peer.sendall(b"the last words")
os.execvp("busybox", ["busybox", "sleep", "600"])
"#;

fn becomes_another(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup, BECOMING)?;
    let heard = Peer::new()?
        .rest()
        .map_err(|why| shell.guest.explain(&why))?;
    is_quiet(&mut shell)?;
    shell.ask("kill -9 $!; wait $!")?;
    match heard.as_slice() {
        b"the last words" => shell.leave().map(drop),
        _ => Err(format!("{:?} was heard", String::from_utf8_lossy(&heard))),
    }
}
