//! Peers that wait at a listener by libsietch.so while its process forks are served by who accepts (`docs/bypass.md`, "fork").

use crate::Test;
use crate::build;
use crate::bypass::{operator_of, start};
use crate::guest::{Setup, write_file};
use crate::handed::{MEMORY, PYTHON, Peer, bytes, is_quiet};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[(
    "peers that wait at a listener by libsietch.so when its process forks are served by whoever accepts then",
    serves_who_waits,
)];

/// Who accepts is the first argument.
const WAITING: &str = r#"
import os, socket, sys, time
def serve(server):
    while True:
        peer, _ = server.accept()
        while data := peer.recv(65536):
            peer.sendall(data)
        peer.close()
who = sys.argv[1]
if len(sys.argv) > 2:
    serve(socket.socket(fileno=int(sys.argv[2])))
server = socket.create_server(("", 7), backlog=16)
print("serving", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(0.05)
again = ["python3", "/script.py", who, str(server.fileno())]
if who == "program":
    server.set_inheritable(True)
    os.posix_spawn("/usr/bin/python3", again, os.environ)
elif os.fork() == 0:
    if who == "parent":
        server.getsockname()
        time.sleep(1000)
    if who == "grandchild" and os.fork() != 0:
        # It has opened the listener, and accepts nothing.
        server.getsockname()
        time.sleep(1000)
    if who == "successor":
        server.getsockname()
        server.set_inheritable(True)
        os.execv("/usr/bin/python3", again)
    if who == "survivor":
        time.sleep(1)
    if who == "child":
        os.setuid(65534)
    serve(server)
if who == "survivor":
    server.close()
if who == "parent":
    serve(server)
time.sleep(1000)
"#;

fn serves_who_waits(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let script = format!("{}:/script.py", write_file("backlogs/script.py", WAITING)?);
    let modules = build::python_library()?;
    let mut shell = operator_of(setup, MEMORY, &[PYTHON, &modules, &script])?;
    for who in [
        "child",
        "grandchild",
        "program",
        "successor",
        "survivor",
        "parent",
    ] {
        serves(&mut shell, who).map_err(|why| {
            let said = shell.ask("cat /tmp/said; ps").unwrap_or_default();
            shell.guest.explain(&format!("{who}: {why}: {said}"))
        })?;
        is_quiet(&mut shell)?;
        shell.ask("kill -9 $(pidof python3); wait")?;
    }
    shell.leave().map(drop)
}

fn serves(shell: &mut Operator, who: &str) -> Result<(), String> {
    shell.ask("rm -f /tmp/go")?;
    start(shell, &format!("python3 /script.py {who}"), "serving")?;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut peer = Peer::new()?;
        peer.say(b"waiting\n")?;
        waiting.push(peer);
    }
    shell.ask("touch /tmp/go")?;
    for mut peer in waiting {
        let line = peer.line()?;
        if line != "waiting" {
            return Err(format!("{line:?} comes back"));
        }
        peer.echo(&bytes(20_000))?;
        peer.ends()?;
    }
    let mut peer = Peer::new()?;
    peer.echo(&bytes(20_000))?;
    peer.ends()
}
