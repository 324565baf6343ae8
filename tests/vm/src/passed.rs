//! Sockets of libsietch.so that are passed to another process, by the kernel's stack (`docs/bypass.md`, "Handed over to the
//! kernel").

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::bypass::{PROGRAM, VARIABLES, operator_of, start};
use crate::guest::{Setup, write_file};
use crate::handed::{MEMORY, PYTHON, Peer, bytes, is_quiet};
use crate::operator::Operator;
use crate::workers;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "connections that a program by libsietch.so passes to another process lose nothing, whatever of them is open",
        passes_connections,
    ),
    (
        "a connection on whose way the kernel has no memory goes on somewhere, or is reset",
        passes_without_memory,
    ),
    (
        "a listener that a program by libsietch.so passes is served by who has it, and its connections go on",
        passes_a_listener,
    ),
    (
        "HAProxy by libsietch.so that is reloaded passes its listeners to the new process",
        reloads_haproxy,
    ),
];

/// The other process is there before there is any socket. What is to be passed is the first byte that comes.
const PASSING: &str = r#"
import os, socket, sys
ours, theirs = socket.socketpair(socket.AF_UNIX)
def echo(peer):
    while data := peer.recv(65536):
        peer.sendall(data)
if os.fork() == 0:
    ours.close()
    while True:
        way, files, _, _ = socket.recv_fds(theirs, 1, 1)
        if not files:
            os._exit(0)
        if way == b"u":
            told = socket.socket(fileno=files[0])
            for _ in range(4):
                data, peer = told.recvfrom(65536)
                told.sendto(b"passed " + data, peer)
            continue
        peer = socket.socket(fileno=files[0])
        if way == b"l":
            while True:
                client, _ = peer.accept()
                echo(client)
                client.close()
        elif way == b"h":
            count = 0
            while data := peer.recv(65536):
                count += len(data)
            print("counted", count, flush=True)
        elif way == b"f":
            peer.sendall(b"end")
        elif way == b"n":
            # One that was reset on its way.
            try:
                echo(peer)
            except OSError:
                pass
        else:
            echo(peer)
            peer.sendall(b"done")
        peer.close()
theirs.close()
server = socket.create_server(("", 7))
told = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
told.bind(("", 9))
FAIL_NTH = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
print("serving", flush=True)
while True:
    peer, _ = server.accept()
    way = peer.recv(1)
    if way == b"h":
        peer.sendall(b"x" * 1000)
        peer.shutdown(socket.SHUT_WR)
    elif way == b"f":
        peer.setblocking(False)
        sent = 0
        try:
            while True:
                sent += peer.send(b"y" * 65536)
        except BlockingIOError:
            print("filled", sent, flush=True)
        peer.setblocking(True)
    passed = {b"l": server, b"u": told}.get(way, peer)
    if way == b"n":
        count = peer.recv(2)
        os.write(FAIL_NTH, count)
        try:
            socket.send_fds(ours, [way], [peer.fileno()])
        except OSError:
            os.pwrite(FAIL_NTH, b"0", 0)
            # It goes on where it is, or was reset.
            try:
                echo(peer)
            except OSError:
                pass
        os.pwrite(FAIL_NTH, b"0", 0)
        peer.close()
        continue
    socket.send_fds(ours, [way], [passed.fileno()])
    print("passed", way.decode(), flush=True)
    if way == b"l":
        echo(peer)
        ours.close()
        sys.exit()
    peer.close()
"#;

fn python(setup: &Setup) -> Result<Operator, String> {
    let script = format!("{}:/script.py", write_file("passed/script.py", PASSING)?);
    let modules = build::python_library()?;
    let mut shell = operator_of(setup, MEMORY, &[PYTHON, &modules, &script])?;
    start(&mut shell, "python3 /script.py", "serving")?;
    Ok(shell)
}

/// What went wrong, with what the program has said.
fn explain(shell: &mut Operator, why: &str) -> String {
    let said = shell.ask("cat /tmp/said").unwrap_or_default();
    shell.guest.explain(&format!("{why}: {said}"))
}

fn passes_connections(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup)?;
    for way in ["open", "its peer has ended", "ended", "full", "datagrams"] {
        let passed = match way {
            "open" => passes_an_open_one(),
            "its peer has ended" => passes_one_whose_peer_has_ended(),
            "ended" => passes_an_ended_one(&mut shell),
            "full" => passes_a_full_one(),
            _ => passes_datagrams(),
        };
        passed.map_err(|why| explain(&mut shell, &format!("{way}: {why}")))?;
        is_quiet(&mut shell)?;
    }
    let said = shell.ask("cat /tmp/said")?;
    if said.contains("libsietch:") {
        return Err(said);
    }
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

/// Wherever an allocation fails: of the hand-over, or of what Python does besides.
const ALLOCATIONS: usize = 60;

fn passes_without_memory(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup)?;
    let mut served = 0;
    for nth in 1..ALLOCATIONS {
        let outcome = echoes_or_is_reset(nth);
        served +=
            usize::from(outcome.map_err(|why| explain(&mut shell, &format!("{nth}: {why}")))?);
    }
    // Most of them are not even touched.
    if served < ALLOCATIONS / 2 {
        return Err(explain(&mut shell, &format!("only {served} were served")));
    }
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

/// Whether it was served.
fn echoes_or_is_reset(nth: usize) -> Result<bool, String> {
    let mut peer = Peer::new()?;
    peer.say(format!("n{nth:02}").as_bytes())?;
    let echoed = peer.echo(&bytes(20_000));
    match echoed {
        Ok(()) => peer.ends().map(|()| true),
        // What stands still is found by its peer's patience, and says something else.
        Err(why) if why.contains("reset") || why.contains("pipe") || why.contains("fill") => {
            Ok(false)
        }
        Err(why) => Err(why),
    }
}

fn passes_an_open_one() -> Result<(), String> {
    let mut peer = Peer::new()?;
    // Some of it has come before it is passed, or comes meanwhile.
    peer.say(b"e")?;
    peer.echo(&bytes(300_000))?;
    peer.shut()?;
    ends_with(&mut peer, b"done")
}

fn passes_one_whose_peer_has_ended() -> Result<(), String> {
    let mut peer = Peer::new()?;
    peer.say(b"ebefore")?;
    peer.shut()?;
    ends_with(&mut peer, b"beforedone")
}

fn passes_an_ended_one(shell: &mut Operator) -> Result<(), String> {
    let mut peer = Peer::new()?;
    peer.say(b"h")?;
    if peer.rest()? != [b'x'; 1000] {
        return Err("what was sent before is lost".into());
    }
    // One that is over at both ends cannot be passed.
    says(shell, "passed h")?;
    peer.say(&bytes(70_000))?;
    peer.shut()?;
    says(shell, "counted 70000")
}

/// Waits until the program has said so.
fn says(shell: &mut Operator, what: &str) -> Result<(), String> {
    let waits = format!(
        "for i in $(seq 100); do grep -q '{what}' /tmp/said && break; sleep 0.1; done; grep '{what}' /tmp/said; echo"
    );
    match shell.ask(&waits)?.contains(what) {
        true => Ok(()),
        false => Err(format!("it does not say {what}")),
    }
}

/// It has more unsent than its peer takes.
fn passes_a_full_one() -> Result<(), String> {
    let mut peer = Peer::new()?;
    peer.say(b"f")?;
    thread::sleep(Duration::from_millis(500));
    let rest = peer.rest()?;
    let (full, end) = rest.split_at(rest.len().saturating_sub(3));
    match end == b"end" && full.iter().all(|byte| *byte == b'y') && full.len() > 100_000 {
        true => Ok(()),
        false => Err(format!("{} bytes came", rest.len())),
    }
}

/// Three have come before it is passed, and nobody has read them; one comes later.
fn passes_datagrams() -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(text)?;
    let patience = Some(Duration::from_secs(20));
    socket.set_read_timeout(patience).map_err(text)?;
    let large = "large".repeat(2000);
    for datagram in ["first", "", &large] {
        let sent = socket.send_to(datagram.as_bytes(), (PROGRAM, 9));
        sent.map_err(text)?;
    }
    // They are in the program's socket by then.
    thread::sleep(Duration::from_millis(500));
    Peer::new()?.say(b"u")?;
    let mut answer = vec![0; 20_000];
    let mut answered = || -> Result<String, String> {
        let len = socket.recv(&mut answer).map_err(text)?;
        Ok(String::from_utf8_lossy(&answer[..len]).into_owned())
    };
    // The parts of the large one come by another ring of the card than the others, and may overtake them.
    let mut answers: Vec<String> = (0..3).map(|_| answered()).collect::<Result<_, _>>()?;
    answers.sort();
    if answers
        != [
            "passed ".into(),
            "passed first".into(),
            format!("passed {large}"),
        ]
    {
        return Err(format!("{answers:?}"));
    }
    socket.send_to(b"last", (PROGRAM, 9)).map_err(text)?;
    match answered()?.as_str() {
        "passed last" => {}
        answer => return Err(format!("{answer:?}")),
    }
    Ok(())
}

fn ends_with(peer: &mut Peer, expected: &[u8]) -> Result<(), String> {
    match peer.rest()?.as_slice() {
        rest if rest == expected => Ok(()),
        rest => Err(format!("{:?} at the end", String::from_utf8_lossy(rest))),
    }
}

fn passes_a_listener(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = python(setup)?;
    let mut kept = Peer::new()?;
    let passed = serves_both(&mut shell, &mut kept);
    passed.map_err(|why| explain(&mut shell, &why))?;
    is_quiet(&mut shell)?;
    // Its program ends, and the link has no queue.
    kept.ends()?;
    shell.ask("wait $!")?;
    let alone = serves_new();
    alone.map_err(|why| explain(&mut shell, &format!("without a queue: {why}")))?;
    shell.leave().map(drop)
}

fn serves_both(shell: &mut Operator, kept: &mut Peer) -> Result<(), String> {
    // These two are connected in this order, and nobody has accepted them. The first has said all, the other nothing.
    let mut early = Peer::new()?;
    shell.ask("until netstat -ant | grep -q '^tcp  *1 .*LISTEN'; do sleep 0.1; done")?;
    let mut silent = Peer::new()?;
    early.say(&bytes(5000))?;
    early.shut()?;
    thread::sleep(Duration::from_millis(500));
    kept.say(b"l")?;
    kept.echo(&bytes(1000))?;
    ends_with(&mut early, &bytes(5000))?;
    silent.echo(&bytes(100_000))?;
    silent.ends()?;
    for _ in 0..3 {
        serves_new()?;
        kept.echo(&bytes(50_000))?;
    }
    Ok(())
}

fn serves_new() -> Result<(), String> {
    let mut peer = Peer::new()?;
    peer.echo(&bytes(100_000))?;
    peer.ends()
}

/// A listener with the program's own address is found again by the new process, which asks what each is bound to.
const HAPROXY: &str = "\
global
    nbthread 2
    stats socket /tmp/haproxy.sock level admin expose-fd listeners
defaults
    mode http
    timeout client 60s
    timeout connect 10s
    timeout server 60s
frontend front
    bind 10.0.2.61:80
    http-request return status 200 content-type text/plain lf-string \"worker %pid.\"
";

fn reloads_haproxy(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let configuration = write_file("passed/haproxy.cfg", HAPROXY)?;
    let configuration = format!("{configuration}:/haproxy.cfg");
    let programs = ["/usr/sbin/haproxy:/usr/sbin/haproxy", &configuration];
    let mut shell = operator_of(setup, MEMORY, &programs)?;
    start(
        &mut shell,
        "haproxy -V -f /haproxy.cfg -p /tmp/pid",
        "Using",
    )?;
    let reloaded = reload(&mut shell);
    reloaded.map_err(|why| explain(&mut shell, &why))?;
    is_quiet(&mut shell)?;
    shell.ask("kill -9 $(cat /tmp/pid)")?;
    shell.leave().map(drop)
}

fn reload(shell: &mut Operator) -> Result<(), String> {
    // It says what it uses before it listens.
    let first = server_that(|_| true)?;
    shell.ask(&format!(
        "{VARIABLES} haproxy -f /haproxy.cfg -p /tmp/pid -x /tmp/haproxy.sock -sf {first} \
         >>/tmp/said 2>&1 & while kill -0 {first} 2>/dev/null; do sleep 0.1; done"
    ))?;
    let second = server_that(|second| second != first)?;
    for _ in 0..8 {
        match server()? {
            other if other == second => {}
            other => return Err(format!("{other} serves, which was {first}")),
        }
    }
    Ok(())
}

/// Which process answers new connections, once it is one that is looked for.
fn server_that(is_it: impl Fn(u32) -> bool) -> Result<u32, String> {
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        match server() {
            Ok(one) if is_it(one) => return Ok(one),
            _ => thread::sleep(Duration::from_millis(100)),
        }
    }
    server()
}

/// Which process answers a new connection.
fn server() -> Result<u32, String> {
    let mut peer = workers::Peer::new()?;
    peer.worker().map_err(|error| error.to_string())
}
