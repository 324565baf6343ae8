//! The walk through `docs/clumsy-kernel.md`, seen in counters.

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::netstat::value;
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "the clumsy kernel drops SYNs among its own, and its tools say why",
        clumsy,
    ),
    (
        "the ordinary kernel does not lose a SYN where the clumsy one does",
        ordinary,
    ),
];

const PYTHON: &str = "/usr/bin/python3";
/// Ports that a client may have, all of which are used up before clients come at once.
const PORTS: u64 = 200;
/// Clients that come at once. Each meets an older connection, and half of all random numbers
/// lie before the older one's: that all of them lie behind happens once in 16 million runs.
const CLIENTS: u64 = 24;

/// What the kernel counted, and what its tools showed.
struct Seen {
    resent: u64,
    resets: u64,
    bad_numbers: u64,
    refused: u64,
    waiting: u64,
    retransmits: String,
    time_waits: String,
}

fn run(setup: &Setup, flags: &[&str]) -> Result<Seen, String> {
    let modules = build::python_library()?;
    let mut added: Vec<String> = vec![
        PYTHON.into(),
        modules,
        "tests/harness/burst.py:/burst.py".into(),
    ];
    for name in ["netstat", "tcpretrans", "tcptimewait"] {
        let program = build::tool("admin", name)?;
        added.push(format!("{}:/{name}", program.display()));
    }
    let added = added.iter().flat_map(|what| ["--add", what.as_str()]);
    let flags: Vec<&str> = flags.iter().copied().chain(added).collect();
    let wiring = ["-m", "512M", "--net", "none"];
    let mut shell = Operator::start_wired(setup, &[&wiring[..], &flags].concat())?;
    let last = 40_000 + PORTS - 1;
    shell.ask(&format!(
        "echo 40000 {last} > /proc/sys/net/ipv4/ip_local_port_range"
    ))?;
    let said = shell.ask(&format!("{PYTHON} /burst.py {PORTS} {CLIENTS}"))?;
    if !said.contains(&format!("opened {}", PORTS + CLIENTS)) {
        return Err(format!("not all connections were opened: {said}"));
    }
    let counted = shell.ask("/netstat -s -P tcp")?;
    let reasons = shell.ask("cat /proc/net/reasons")?;
    let used = shell.ask("cat /proc/net/sockstat")?;
    let waiting = used.split_once(" tw ").and_then(|(_, behind)| {
        let word = behind.split_whitespace().next()?;
        word.parse().ok()
    });
    let seen = Seen {
        resent: value(&counted, "tcpRetransSegs ")?,
        resets: value(&counted, "tcpOutRsts ")?,
        bad_numbers: value(&reasons, "TCPS_SYN_SENT-Bad_seq")?,
        refused: value(&counted, "tcpListenDrop ")? + value(&counted, "tcpListenDropQ0 ")?,
        waiting: waiting.ok_or(format!("no TIME_WAIT in {used}"))?,
        retransmits: shell.ask("/tcpretrans -a 1 1")?,
        time_waits: shell.ask("/tcptimewait -a 1 1")?,
    };
    shell.leave()?;
    Ok(seen)
}

fn clumsy(setup: &Setup) -> Result<(), String> {
    let seen = run(setup, &["--clumsy"])?;
    let Seen { resent, resets, .. } = seen;
    if !(1..=CLIENTS).contains(&resent) || resets != resent || seen.bad_numbers != resets {
        return Err(format!(
            "{resent} segments sent again, {resets} resets, {} for bad numbers",
            seen.bad_numbers
        ));
    }
    if seen.refused != 0 || seen.waiting == 0 {
        let (refused, waiting) = (seen.refused, seen.waiting);
        return Err(format!("{refused} were refused, {waiting} wait"));
    }
    for (said, words) in [
        (&seen.retransmits, "SYN_SENT"),
        (&seen.time_waits, "TIME_WAIT"),
    ] {
        let lines = said.lines().filter(|line| line.contains(words)).count() as u64;
        if lines < resent {
            return Err(format!("{lines} lines with {words} of {resent}: {said}"));
        }
    }
    Ok(())
}

fn ordinary(setup: &Setup) -> Result<(), String> {
    let seen = run(setup, &[])?;
    match seen {
        Seen {
            resent: 0,
            resets: 0,
            bad_numbers: 0,
            refused: 0,
            waiting: 0,
            ..
        } if !seen.retransmits.contains("SYN_SENT") => Ok(()),
        Seen { resent, resets, .. } => Err(format!(
            "{resent} sent again, {resets} resets: {}",
            seen.retransmits
        )),
    }
}
