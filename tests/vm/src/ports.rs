//! Ports of the host that lead into a machine (`-p`): by passt to as many clients as come, and
//! by QEMU's own network where passt cannot start.
//!
//! passt needs a host with a route to somewhere. The namespace of these tests has none, which
//! is what the second test wants; the first makes another one that has.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use qemu::namespace;

use crate::build;
use crate::clocks::freeze;
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch, state_folder};
use crate::lifecycle::{expect, said};
use crate::netstat::value;
use crate::{Test, networks};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a forwarded port serves fifty clients, and a thousand",
        many,
    ),
    (
        "a burst longer than the card's queue leaves whole once the host goes on",
        burst,
    ),
    ("a forwarded UDP port answers", datagrams),
    (
        "without a route a forwarded port is served by QEMU itself, and the user hears why",
        fallback,
    ),
];

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[
    (
        "clients of a forwarded port that come while QEMU has no CPU are all answered",
        unattended,
    ),
    (
        "a forwarded port of a machine on a network serves a thousand clients",
        many_beside_a_network,
    ),
    (
        "a client of a forwarded port that comes while a snapshot's machine starts is answered over its first connection",
        early,
    ),
];

/// Makes a network with a route, though nobody is at its end, and becomes its arguments.
const ROUTED: &str = "ip link set lo up && ip tuntap add mode tap away && \
    ip address add 192.0.2.2/24 dev away && ip link set away up && \
    ip route add default via 192.0.2.1 && exec \"$@\"";
/// Starts its arguments, which publish the port, and calls until it is open; what is answered over that connection.
const EARLY_CLIENT: &str = "
import socket, subprocess, sys, time
starting = subprocess.Popen(sys.argv[1:])
deadline = time.monotonic() + 60
while True:
    client = socket.socket()
    try:
        client.connect(('127.0.0.1', 6379))
        break
    except ConnectionRefusedError:
        client.close()
        assert time.monotonic() < deadline, 'the port stays closed'
        time.sleep(.002)
client.settimeout(60)
client.sendall(b'PING\\r\\n')
print('answered', client.recv(99), 'started', starting.wait())
";
/// More frames than the card's queue and what is between it and passt take, but not many more.
const BURST: u64 = 1200;
/// Sends so many datagrams to the gateway.
const DATAGRAMS: &str =
    "exec 3> /dev/udp/192.0.2.1/9; for ((left = $1; left; left--)); do echo $left >&3; done";
/// Four hundred clients that come at once, and are all answered.
const CROWD: &str = "
import socket
clients = [socket.create_connection(('127.0.0.1', 6379)) for _ in range(400)]
for client in clients:
    client.sendall(b'PING\\r\\n')
for client in clients:
    client.settimeout(30)
    answer = client.recv(99)
    assert answer == b'+PONG\\r\\n', answer
";
/// Long enough for all clients to come.
const FROZEN: Duration = Duration::from_secs(3);
const PORT: u16 = 6379;
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
const REDIS: [&str; 5] = ["redis-server", "--save", "", "--protected-mode", "no"];

fn many(setup: &Setup) -> Result<(), String> {
    let host = Host::with_route();
    let name = "passt-clients";
    let forward = format!("127.0.0.1:{PORT}:{PORT}");
    let mut guest = host.start(setup, name, &["-p", &forward], &REDIS)?;
    guest.expect("Ready to accept connections", BOOT_PATIENCE)?;
    load(&host, &guest, "50")?;
    // About twice the backlog of Redis; passt does not repeat a SYN.
    load(&host, &guest, "1000")?;
    let niceness = passt_of(name).and_then(|pid| niceness_of(&pid));
    match niceness {
        Some(niceness) if niceness > 0 => {}
        Some(_) => return Err("passt, which may spin, has as much weight as QEMU".into()),
        None => return Err("passt does not serve the port".into()),
    }
    // Nobody is left to stop it.
    guest.kill()?;
    let deadline = Instant::now() + PATIENCE;
    while has_passt(name) {
        if Instant::now() > deadline {
            return Err("passt stays when its machine is gone".into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// More SYNs than a Unix socket has room for by default. passt sends each once.
fn unattended(setup: &Setup) -> Result<(), String> {
    let host = Host::with_route();
    let forward = format!("127.0.0.1:{PORT}:{PORT}");
    let guest = host.start(setup, "passt-unattended", &["-p", &forward], &REDIS)?;
    guest.expect("Ready to accept connections", BOOT_PATIENCE)?;
    let qemu = guest.qemu().ok_or("sietch has no QEMU")?;
    thread::scope(|scope| {
        let frozen = scope.spawn(|| freeze(qemu, FROZEN));
        let served = host.run(&guest, "/usr/bin/python3", &["-c", CROWD]);
        let frozen = frozen.join().map_err(|_| "nobody froze QEMU")?;
        frozen.and(served.map(drop))
    })?;
    guest.stop().map(drop)
}

/// passt stands still meanwhile, as it does on a host that has no CPU for it.
fn burst(setup: &Setup) -> Result<(), String> {
    let (host, name) = (Host::with_route(), "passt-burst");
    let forward = format!("127.0.0.1:{PORT}:{PORT}");
    let kstat = format!("{}:/kstat", build::tool("admin", "kstat")?.display());
    let flags = ["-p", &forward, "--add", "/bin/bash", "--add", &kstat];
    let guest = host.start(setup, name, &flags, &REDIS)?;
    guest.expect("Ready to accept connections", BOOT_PATIENCE)?;
    let bash = |script: &str, count: u64| {
        let count = count.to_string();
        let line = ["exec", name, "/bin/bash", "-c", script, "bash", &count];
        said(sietch().args(line), 0)
    };
    // The gateway is known then.
    bash(DATAGRAMS, 1)?;
    let before = frames_sent(name)?;
    let passt = passt_of(name).ok_or("passt does not serve the port")?;
    signal(&passt, "STOP")?;
    let sent = bash(DATAGRAMS, BURST).and_then(|_| frames_sent(name));
    signal(&passt, "CONT")?;
    if sent? >= before + BURST {
        return Err("the card took all at once, so none had to wait".into());
    }
    let deadline = Instant::now() + PATIENCE;
    while frames_sent(name)? < before + BURST {
        if Instant::now() > deadline {
            let gone = frames_sent(name)? - before;
            return Err(guest.explain(&format!("sends {gone} frames of {BURST}")));
        }
        thread::sleep(POLL);
    }
    let interfaces = bash(
        "while read -r line; do echo \"$line\"; done < /proc/net/dev",
        0,
    )?;
    guest.stop()?;
    let eth0 = interfaces.lines().find(|line| line.starts_with("eth0:"));
    match eth0.and_then(|line| line.split_whitespace().nth(12)) {
        Some("0") => Ok(()),
        _ => Err(format!("frames were dropped: {interfaces}")),
    }
}

/// Frames that the card of a machine took.
fn frames_sent(name: &str) -> Result<u64, String> {
    let line = ["exec", name, "/kstat", "card::ring:tx_frames"];
    let said = said(sietch().args(line), 0)?;
    value(&said, "tx_frames")
}

fn signal(process: &Path, signal: &str) -> Result<(), String> {
    let pid = process.file_name().unwrap_or_default();
    let mut kill = Command::new("kill");
    said(kill.arg("-s").arg(signal).arg(pid), 0).map(drop)
}

/// The switch is between passt and the machine then, and starts with it.
fn many_beside_a_network(setup: &Setup) -> Result<(), String> {
    let network = "thousand";
    networks::create(network, &[])?;
    let outcome = many_on(setup, network);
    let removed = networks::remove(network);
    outcome.and(removed)
}

fn many_on(setup: &Setup, network: &str) -> Result<(), String> {
    let (host, name) = (Host::with_route(), "network-clients");
    let forward = format!("127.0.0.1:{PORT}:{PORT}");
    let flags = ["-p", &forward, "--network", network];
    let guest = host.start(setup, name, &flags, &REDIS)?;
    guest.expect("Ready to accept connections", BOOT_PATIENCE)?;
    load(&host, &guest, "1000")?;
    let by_passt = has_passt(name);
    guest.stop()?;
    match by_passt {
        true => Ok(()),
        false => Err("passt does not serve the port".into()),
    }
}

/// passt is up before the machine is, and does not repeat a SYN.
fn early(setup: &Setup) -> Result<(), String> {
    let host = Host::with_route();
    let forward = format!("127.0.0.1:{PORT}:{PORT}");
    let guest = host.start(setup, "early-source", &["-p", &forward], &REDIS)?;
    guest.expect("Ready to accept connections", BOOT_PATIENCE)?;
    expect(&["snapshot", "early-source", "early"], 0, &["early"])?;
    guest.stop()?;
    let name = "early";
    let mut sietch = sietch();
    sietch.args([
        "run", "--from", "early", "-d", "--name", name, "-p", &forward,
    ]);
    let mut client = Command::new("timeout");
    client.args(["120", "/usr/bin/python3", "-c", EARLY_CLIENT]);
    client.arg(sietch.get_program()).args(sietch.get_args());
    for (key, value) in sietch.get_envs() {
        client.env(key, value.unwrap_or_default());
    }
    let answer = said(&mut host.around(client), 0);
    let by_passt = has_passt(name);
    expect(&["rm", "-f", name], 0, &[name])?;
    expect(&["snapshots", "--rm", "early"], 0, &["early"])?;
    match (
        answer?.contains("answered b'+PONG\\r\\n' started 0"),
        by_passt,
    ) {
        (true, true) => Ok(()),
        (false, _) => Err("the first connection brought no answer".into()),
        (_, false) => Err("passt does not serve the port".into()),
    }
}

/// Sets and gets by so many clients at once.
fn load(host: &Host, guest: &Guest, clients: &str) -> Result<(), String> {
    let flags = ["-c", clients, "-n", "5000", "-t", "set,get", "-q"];
    let output = host.run(guest, "redis-benchmark", &flags)?;
    match output.contains("rror") || output.matches("requests per second").count() < 2 {
        true => Err(format!("{clients} clients: {output}")),
        false => Ok(()),
    }
}

fn datagrams(setup: &Setup) -> Result<(), String> {
    let host = Host::with_route();
    let program = ["memcached", "-u", "root", "-U", "11211", "-vv"];
    let forward = "127.0.0.1:5301:11211/udp";
    let guest = host.start(setup, "passt-datagrams", &["-p", forward], &program)?;
    guest.expect("server listening (udp)", BOOT_PATIENCE)?;
    // A frame of memcached's (doc/protocol.txt): its number, 0 of 1, and a command.
    let ask = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
        s.settimeout(20); s.sendto(b'\\0\\1\\0\\0\\0\\1\\0\\0version\\r\\n', ('127.0.0.1', 5301)); \
        print(s.recv(99)[8:].decode())";
    let answer = host.run(&guest, "/usr/bin/python3", &["-c", ask])?;
    guest.stop()?;
    match answer.contains("VERSION ") {
        true => Ok(()),
        false => Err(format!("no answer but {answer:?}")),
    }
}

fn fallback(setup: &Setup) -> Result<(), String> {
    let host = Host::as_it_is();
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    let forward = format!("127.0.0.1:{port}:{PORT}");
    let guest = host.start(setup, "no-passt", &["-p", &forward], &REDIS)?;
    guest.expect_answer((Ipv4Addr::LOCALHOST, port).into(), b"PING\r\n")?;
    let has_said = guest.console().contains("passt does not start (");
    guest.stop()?;
    // A host that lets these tests have no namespace has its own routes.
    match has_said || !namespace::is_inside() {
        true => Ok(()),
        false => Err("there is no word of passt".into()),
    }
}

/// The network on the host's side of a machine.
struct Host {
    is_apart: bool,
}

impl Host {
    fn as_it_is() -> Self {
        Self { is_apart: false }
    }

    /// One with a route.
    fn with_route() -> Self {
        let is_apart = namespace::is_inside();
        Self { is_apart }
    }

    /// Starts a machine with these flags.
    fn start(
        &self,
        setup: &Setup,
        name: &str,
        flags: &[&str],
        program: &[&str],
    ) -> Result<Guest, String> {
        let command = setup.command(&[&["--name", name], flags, program].concat());
        Guest::of(self.around(command))
    }

    /// The command on this host, or on one made for it.
    fn around(&self, command: Command) -> Command {
        if !self.is_apart {
            return command;
        }
        let mut apart = Command::new("unshare");
        apart.args(["--net", "--", "sh", "-c", ROUTED, "sh"]);
        apart.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            apart.env(key, value.unwrap_or_default());
        }
        apart
    }

    /// Runs a client of `guest`'s; what it said.
    fn run(&self, guest: &Guest, program: &str, args: &[&str]) -> Result<String, String> {
        let pid = guest.pid().to_string();
        let mut command = match self.is_apart {
            true => {
                let mut inside = Command::new("nsenter");
                inside.args(["--net", "--target", &pid, "--", "timeout", "60", program]);
                inside
            }
            false => {
                let mut plain = Command::new("timeout");
                plain.args(["60", program]);
                plain
            }
        };
        let output = command.args(args).output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        match output.status.success() {
            true => Ok(said),
            false => Err(guest.explain(&format!("left {program} with {}: {said}", output.status))),
        }
    }
}

/// Whether a passt serves the machine `name`.
fn has_passt(name: &str) -> bool {
    passt_of(name).is_some()
}

/// The passt that serves the machine `name`: its folder in /proc.
fn passt_of(name: &str) -> Option<PathBuf> {
    let log = state_folder().join("sietch").join(name).join("passt.log");
    let log = log.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut passts = processes.map(|process| process.path()).filter(|process| {
        let comm = fs::read_to_string(process.join("comm"));
        comm.is_ok_and(|comm| comm.starts_with("passt"))
    });
    passts.find(|process| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&log)
    })
}

/// How little weight a process has (proc(5): `/proc/PID/stat`, field 19).
fn niceness_of(process: &Path) -> Option<i32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19 - 3)?.parse().ok()
}
