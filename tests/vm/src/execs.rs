//! Sockets of libsietch.so go on in programs that are started with them (`docs/bypass.md`, "exec").

use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::bypass::{operator_of, start};
use crate::clients::together;
use crate::guest::{Setup, write_file};
use crate::handed::{MEMORY, PYTHON, Peer, bytes, is_quiet};
use crate::operator::Operator;
use crate::workers;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "programs that a server of Python's by libsietch.so starts with its connections echo",
        starts_programs,
    ),
    (
        "a program by libsietch.so that becomes another one keeps its connections, and a call that fails leaves all as it was",
        becomes_another,
    ),
    (
        "socat by libsietch.so that becomes a program for each connection echoes",
        becomes_by_socat,
    ),
    (
        "nginx by libsietch.so is upgraded by USR2 to a new program that has its listeners",
        upgrades_nginx,
    ),
];

/// How a program is started is the first byte that comes; when it has ended the parent speaks.
const STARTING: &str = r#"
import os, shutil, socket, subprocess
CAT = "/bin/real-cat"
server = socket.create_server(("", 7))
print("serving", flush=True)
while True:
    peer, _ = server.accept()
    file, way = peer.fileno(), peer.recv(1)
    if way == b"r":
        subprocess.run([CAT], stdin=peer, stdout=peer)
    elif way == b"p":
        actions = [(os.POSIX_SPAWN_DUP2, file, number) for number in (0, 1)]
        os.waitpid(os.posix_spawn(CAT, [CAT], os.environ, file_actions=actions), 0)
    elif way == b"s":
        os.set_inheritable(file, True)
        os.system(f"{CAT} <&{file} >&{file}")
    elif way == b"w":
        subprocess.run(["/usr/bin/wc", "-c"], stdin=peer, stdout=peer)
    elif way == b"t":
        subprocess.run([shutil.which("busybox"), "cat"], stdin=peer, stdout=peer)
    elif way == b"q":
        busybox = shutil.which("busybox")
        actions = [(os.POSIX_SPAWN_DUP2, file, number) for number in (0, 1)]
        os.waitpid(os.posix_spawn(busybox, ["cat"], os.environ, file_actions=actions), 0)
    elif way == b"e":
        if os.fork() == 0:
            os.dup2(file, 0)
            os.dup2(file, 1)
            # A program that thinks nothing of its environment.
            os.execve(CAT, [CAT], {})
        os.wait()
    peer.sendall(b"done")
    peer.close()
"#;

fn operator(setup: &Setup, script: &str) -> Result<Operator, String> {
    let script = format!("{}:/script.py", write_file("execs/script.py", script)?);
    let modules = build::python_library()?;
    let mut shell = operator_of(
        setup,
        MEMORY,
        &[
            PYTHON,
            &modules,
            &script,
            "/bin/cat:/bin/real-cat",
            "/usr/bin/wc",
            "/bin/dash:/bin/sh",
        ],
    )?;
    start(&mut shell, "python3 /script.py", "serving")?;
    Ok(shell)
}

fn starts_programs(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, STARTING)?;
    for way in ["r", "w", "p", "s", "e", "t", "q", "t", "r"] {
        let served = match way {
            "w" => counts(way),
            _ => starts_one(way),
        };
        served.map_err(|why| {
            let said = shell.ask("cat /tmp/said").unwrap_or_default();
            shell.guest.explain(&format!("{way}: {why}: {said}"))
        })?;
        is_quiet(&mut shell)?;
    }
    let said = shell.ask("cat /tmp/said")?;
    if said.contains("libsietch:") {
        return Err(format!("something is lost: {said}"));
    }
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

fn starts_one(way: &str) -> Result<(), String> {
    let mut peer = Peer::new()?;
    // Part of it is there before the program is.
    let part = bytes(3000);
    peer.say(way.as_bytes())?;
    peer.echo(&part)?;
    peer.echo(&bytes(200_000))?;
    peer.shut()?;
    match peer.rest()?.as_slice() {
        b"done" => Ok(()),
        rest => Err(format!("{:?} at the end", String::from_utf8_lossy(rest))),
    }
}

/// The program writes by the C library's streams.
fn counts(way: &str) -> Result<(), String> {
    let mut peer = Peer::new()?;
    peer.say(way.as_bytes())?;
    peer.say(&bytes(30_000))?;
    peer.shut()?;
    match peer.rest()?.as_slice() {
        b"30000\ndone" => Ok(()),
        rest => Err(format!("{:?} is counted", String::from_utf8_lossy(rest))),
    }
}

/// Becomes itself with two connections, one of which execve closes.
const BECOMING: &str = r#"
import os, socket, sys
if len(sys.argv) > 1:
    peer = socket.socket(fileno=int(sys.argv[1]))
    peer.sendall(b"%s\n" % peer.getsockname()[0].encode())
    while data := peer.recv(4096):
        peer.sendall(data)
    sys.exit()
server = socket.create_server(("", 7))
print("serving", flush=True)
kept, _ = server.accept()
kept.sendall(b"accepted\n")
closed, _ = server.accept()
kept.recv(1)
os.set_inheritable(kept.fileno(), True)
try:
    os.execv("/nowhere", ["nowhere"])
except OSError:
    closed.sendall(b"failed\n")
    kept.sendall(b"failed\n")
kept.recv(1)
os.execv("/usr/bin/python3", ["python3", "/script.py", str(kept.fileno())])
"#;

fn becomes_another(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup, BECOMING)?;
    let becomes = || {
        // Two new connections come by two rings of the card, and either may be taken first.
        let mut kept = Peer::new()?;
        if kept.line()? != "accepted" {
            return Err("another one is taken first".into());
        }
        let mut closed = Peer::new()?;
        kept.say(b"x")?;
        for peer in [&mut kept, &mut closed] {
            match peer.line()?.as_str() {
                "failed" => {}
                said => return Err(format!("{said:?} after a call that fails")),
            }
        }
        // What is not read yet goes along.
        kept.say(b"xwaiting\n")?;
        for expected in ["10.0.2.61", "waiting"] {
            match kept.line()? {
                line if line == expected => {}
                line => return Err(format!("{line:?}, and not {expected:?}")),
            }
        }
        closed.ends()?;
        kept.echo(&bytes(300_000))?;
        kept.ends()
    };
    becomes().map_err(|why| {
        let said = shell.ask("cat /tmp/said").unwrap_or_default();
        shell.guest.explain(&format!("{why}: {said}"))
    })?;
    is_quiet(&mut shell)?;
    shell.ask("wait $!")?;
    shell.leave().map(drop)
}

fn becomes_by_socat(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator_of(setup, MEMORY, &["/usr/bin/socat", "/bin/cat:/bin/real-cat"])?;
    let program = "socat -d -d TCP4-LISTEN:7,fork,reuseaddr EXEC:/bin/real-cat,nofork";
    start(&mut shell, program, "listening")?;
    let served = together(6, |number| {
        let mut peer = Peer::new()?;
        let part = bytes(40_000 * (number + 1));
        peer.echo(&part)?;
        peer.echo(&part)?;
        peer.ends()
    });
    served.map_err(|why| {
        let said = shell.ask("cat /tmp/said").unwrap_or_default();
        shell.guest.explain(&format!("{why}: {said}"))
    })?;
    is_quiet(&mut shell)?;
    shell.ask("kill -9 $!; wait $!")?;
    shell.leave().map(drop)
}

/// It is to have another parent than when it was started, or it takes no notice of the signal; and it gives the new program an
/// environment of its own.
const CONFIG: &str = "\
daemon on;
worker_processes 1;
error_log /tmp/said notice;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
    access_log off;
    server {
        listen 80;
        location /pid { return 200 \"worker $pid.\"; }
    }
}
";

/// It goes on in the background.
const DAEMON: &str = "busybox sh -c '/usr/sbin/nginx -c /nginx.conf; sleep 1000'";

fn upgrades_nginx(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = workers::nginx_with(setup, CONFIG, DAEMON, &[])?;
    let upgraded = upgrade(&mut shell);
    upgraded.map_err(|why| {
        let said = shell.ask("cat /tmp/said; ps").unwrap_or_default();
        shell.guest.explain(&format!("{why}: {said}"))
    })?;
    is_quiet(&mut shell)?;
    shell.ask("kill -9 $(pidof nginx)")?;
    shell.leave().map(drop)
}

fn worker() -> Result<(workers::Peer, u32), String> {
    let mut peer = workers::Peer::new()?;
    let worker = peer.worker().map_err(|error| error.to_string())?;
    Ok((peer, worker))
}

fn upgrade(shell: &mut Operator) -> Result<(), String> {
    const TRIES: usize = 100;
    let (mut old, first) = worker()?;
    shell.ask(
        "kill -USR2 $(cat /run/nginx.pid); until [ -e /run/nginx.pid.oldbin ]; do sleep 0.1; done",
    )?;
    for _ in 0..TRIES {
        if worker()?.1 != first {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    shell
        .ask("kill -WINCH $(cat /run/nginx.pid.oldbin); kill -QUIT $(cat /run/nginx.pid.oldbin)")?;
    // It is closed when its worker has nothing to do any more.
    old.worker().ok();
    shell.ask("while [ -e /run/nginx.pid.oldbin ]; do sleep 0.1; done")?;
    for _ in 0..8 {
        match worker()?.1 {
            other if other == first => return Err("the old program serves".into()),
            _ => {}
        }
    }
    Ok(())
}
