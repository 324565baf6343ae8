//! What the protocols count, as our own `netstat` and Debian's tools tell it.

use crate::Test;
use crate::build;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::operator::Operator;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "netstat counts each connection, and what a full queue refuses",
        counts,
    ),
    ("netstat shows sockets and routes", shows),
    (
        "Debian's netstat, vmstat and sar tell of the network",
        tools_of_debian,
    ),
];

const PYTHON: &str = "/usr/bin/python3";
/// Connections that the test opens.
const OPENED: u64 = 1000;
/// A server that closes what it accepts, and a client that closes too.
const CONNECT: &str = "import socket; \
    server = socket.create_server(('127.0.0.1', 7000)); \
    name = ('127.0.0.1', 7000); \
    any((client := socket.create_connection(name), server.accept()[0].close(), \
    client.close()) and False for _ in range(1000))";
/// A listener with a short queue that accepts nobody, and more clients than it can hold.
const CROWD: &str = "import socket, time; \
    server = socket.socket(); server.bind(('127.0.0.1', 7001)); server.listen(1); \
    held = [socket.socket() for _ in range(9)]; \
    [one.setblocking(False) or one.connect_ex(('127.0.0.1', 7001)) for one in held]; \
    time.sleep(3)";

/// The value of a counter in the first report of `netstat -s`.
pub fn value(said: &str, name: &str) -> Result<u64, String> {
    let (_, behind) = said
        .split_once(name)
        .ok_or(format!("no {name} in {said}"))?;
    let behind = behind.trim_start().trim_start_matches('=').trim_start();
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .map_err(|_| format!("no number of {name} in {said}"))
}

fn shell(setup: &Setup, flags: &[&str]) -> Result<Operator, String> {
    let netstat = build::tool("admin", "netstat")?;
    let netstat = format!("{}:/netstat", netstat.display());
    let flags = [&["--add", &netstat], flags].concat();
    let (mut shell, _) = Operator::start(setup, 8080, &flags)?;
    // The address may be on its way from a DHCP server.
    shell.ask("until /netstat -rn | grep -q default; do sleep 0.1; done")?;
    Ok(shell)
}

fn counts(setup: &Setup) -> Result<(), String> {
    let modules = build::python_library()?;
    let mut shell = shell(setup, &["--add", PYTHON, "--add", &modules])?;
    let before = shell.ask("/netstat -s -P tcp")?;
    shell.ask(&format!("{PYTHON} -c \"{CONNECT}\""))?;
    let after = shell.ask("/netstat -s -P tcp")?;
    for name in ["tcpActiveOpens", "tcpPassiveOpens"] {
        let (was, is) = (value(&before, name)?, value(&after, name)?);
        if is != was + OPENED {
            return Err(format!("{name} went from {was} to {is}: {after}"));
        }
    }
    shell.ask(&format!("{PYTHON} -c \"{CROWD}\""))?;
    let crowded = shell.ask("/netstat -s -P tcp")?;
    let (was, is) = (
        value(&after, "tcpListenDrop ")?,
        value(&crowded, "tcpListenDrop ")?,
    );
    if is <= was {
        return Err(format!("nobody was refused: {crowded}"));
    }
    let reports = shell.ask("/netstat -s -P tcp 1 2")?;
    let (_, second) = reports.rsplit_once("TCP\t").ok_or("no second report")?;
    match (
        value(&reports, "tcpActiveOpens")?,
        value(second, "tcpActiveOpens")?,
    ) {
        (OPENED.., 0) => shell.leave().map(drop),
        _ => Err(format!("the second report is no difference: {reports}")),
    }
}

fn shows(setup: &Setup) -> Result<(), String> {
    let mut shell = shell(setup, &["--add", "/usr/bin/redis-server"])?;
    let redis = "redis-server --save '' --port 6379 --daemonize yes > /tmp/log";
    shell.ask(&format!("/usr/bin/{redis}"))?;
    shell.ask("until /netstat -an | grep -q LISTEN; do sleep 0.1; done")?;
    let said = shell.ask("/netstat -an; /netstat -rn")?;
    for words in [
        "*.6379               *.*                        0       0 LISTEN",
        "default              10.0.2.2             UG",
        "10.0.2.0/24          -                    U",
    ] {
        if !said.contains(words) {
            return Err(format!("no {words:?} in {said}"));
        }
    }
    shell.leave().map(drop)
}

/// Connections go on while `sar` looks.
fn tools_of_debian(setup: &Setup) -> Result<(), String> {
    let modules = build::python_library()?;
    let endless = CONNECT.replace("range(1000)", "iter(int, 1)");
    let script = format!(
        "{PYTHON} -c \"{endless}\" & \
        until /usr/bin/netstat -an | grep -q 7000; do sleep 0.1; done; \
        /usr/bin/sar -n TCP,ETCP,DEV,UDP,IP,SOCK,SOCK6 2 1; echo '#sar'; \
        /usr/bin/netstat -s; /usr/bin/netstat -an; /usr/bin/netstat -i; /usr/bin/vmstat 1 2; kill $!"
    );
    let args = [
        "-m",
        "512M",
        "--net",
        "none",
        "--add",
        PYTHON,
        "--add",
        &modules,
        "--add",
        "/usr/bin/sar",
        "--add",
        "/usr/lib/sysstat/sadc",
        "--add",
        "/usr/bin/netstat",
        "--add",
        "/usr/bin/vmstat",
        "busybox",
        "sh",
        "-c",
        &script,
    ];
    let end = setup.start(&args)?.wait(2 * BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    let said = &end.console;
    // The line below a head of sar, first its time.
    let below = |head: &str| -> Vec<f64> {
        let mut lines = said.lines().skip_while(|line| !line.contains(head)).skip(1);
        let words = lines.next().unwrap_or_default().split_whitespace().skip(1);
        words.filter_map(|word| word.parse().ok()).collect()
    };
    match below("active/s passive/s")[..] {
        [active, passive, segments_in, _] if active > 1.0 && passive > 1.0 && segments_in > 1.0 => {
        }
        _ => return Err(format!("sar sees no connections: {said}")),
    }
    match below("IFACE   rxpck/s")[..] {
        [frames, _, kilobytes, ..] if frames > 1.0 && kilobytes > 0.0 => {}
        _ => return Err(format!("sar sees no bytes: {said}")),
    }
    for words in [
        "active connection openings",
        "segments sent out",
        "Active Internet connections (servers and established)",
        "127.0.0.1:7000",
        "Kernel Interface table",
        "procs",
    ] {
        if !said.contains(words) {
            return Err(format!("no {words:?} in {said}"));
        }
    }
    Ok(())
}
