//! `sietch network connect` and `disconnect` for machines that run.

use std::thread;
use std::time::{Duration, Instant};

use crate::guest::{Setup, sietch};
use crate::networks::{create, expect, remove, said};

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// Times that the machine joins and leaves while it asks for others.
const CYCLES: usize = 3;
const CYCLES_LONG: usize = 100;
/// Memory that the machine may have less after as many: what asks at that moment, and what caches took.
const SPARE_KIB: u64 = 16 << 10;
/// Asks as fast as it can, also while there is nobody to be asked.
const LOAD: &str = "while :; do timeout 2 wget -q -O /dev/null http://peer/who; done";

fn start(setup: &Setup, who: &str, network: &str) -> Result<(), String> {
    let program = format!("echo of-{who} > /tmp/who; httpd -p 80 -h /tmp; sleep 1000");
    let words = ["-d", "--name", who, "--network", network];
    let program = ["busybox", "sh", "-c", &program];
    let started = said(&mut setup.command(&[&words[..], &program].concat()))?;
    match started.trim() == who {
        true => Ok(()),
        false => Err(format!("{who} does not start: {started}")),
    }
}

/// What a command in the machine `who` says.
fn in_machine(who: &str, command: &str) -> Result<String, String> {
    said(sietch().args(["exec", who, "busybox", "sh", "-c", command]))
}

/// Waits until `who` hears `word` from `asked`: servers start beside us.
fn wait_to_hear(who: &str, asked: &str, word: &str) -> Result<(), String> {
    let ask = format!("timeout 5 wget -q -O - http://{asked}/who");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = in_machine(who, &ask)?;
        if said.contains(word) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{who} never hears {word} from {asked}: {said}"));
        }
        thread::sleep(POLL);
    }
}

fn change(words: &[&str]) -> Result<(), String> {
    let output = sietch().arg("network").args(words).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() && output.stdout.is_empty() && output.stderr.is_empty() {
        true => Ok(()),
        false => Err(format!("{words:?}: {output:?}")),
    }
}

/// Joins and leaves, beside a machine that is there all the time.
pub fn while_it_runs(setup: &Setup) -> Result<(), String> {
    create("day", &[])?;
    create("night", &["--ipv6"])?;
    let outcome = start(setup, "web", "day")
        .and_then(|()| start(setup, "peer", "night"))
        .and_then(|()| with_both(setup));
    let mut logs = String::new();
    for who in ["web", "peer"] {
        logs += &said(sietch().args(["logs", who]))?;
        said(sietch().args(["rm", "-f", who]))?;
    }
    remove("day")?;
    remove("night")?;
    outcome.map_err(|error| format!("{error}\n{logs}"))
}

fn with_both(setup: &Setup) -> Result<(), String> {
    said(sietch().args(["exec", "-d", "web", "busybox", "sh", "-c", LOAD]))?;
    joined()?;
    change(&["disconnect", "night", "web"])?;
    left()?;
    let cycles = if setup.is_long() { CYCLES_LONG } else { CYCLES };
    let before = free_kib()?;
    for _ in 0..cycles {
        change(&["connect", "night", "web"])?;
        wait_to_hear("web", "peer", "of-peer")?;
        change(&["disconnect", "night", "web"])?;
    }
    let after = free_kib()?;
    if after + SPARE_KIB < before {
        return Err(format!("{before} KiB were available, {after} KiB are"));
    }
    left()?;
    change(&["connect", "night", "web"])?;
    let restarted = said(sietch().args(["restart", "-t", "1", "web"]))?;
    wait_to_hear("web", "peer", "of-peer")
        .map_err(|error| format!("after a restart ({restarted}): {error}"))
}

/// On both networks it is found, and finds others.
fn joined() -> Result<(), String> {
    let ip = ["--ip", "10.89.1.77", "--alias", "shop"];
    // Networks of the user may have these addresses already; then it says which are free.
    let subnet = said(sietch().args(["network", "inspect", "night"]))?;
    let has_usual = subnet.contains("\"subnet\": \"10.89.1.0/24\"");
    let flags = if has_usual { &ip[..] } else { &ip[2..] };
    change(&[&["connect"], flags, &["night", "web"]].concat())?;
    wait_to_hear("web", "peer", "of-peer")?;
    wait_to_hear("peer", "shop.night", "of-web")?;
    expect(&["network", "inspect", "night"], "\"web\"")?;
    expect(&["inspect", "web"], "\"night\": \"10.89.")?;
    expect(&["network", "rm", "night"], "used by")?;
    expect(&["network", "connect", "night", "web"], "already")?;
    if has_usual {
        wait_to_hear("peer", "10.89.1.77", "of-web")?;
    }
    Ok(())
}

/// On the first one only it has no link there, and finds nobody; and cannot leave twice.
fn left() -> Result<(), String> {
    let links = in_machine("web", "cat /proc/net/dev")?;
    if links.contains("net1") || !links.contains("eth0") {
        return Err(format!("links that are left: {links}"));
    }
    let asked = in_machine("web", "nslookup peer")?;
    if !asked.contains("NXDOMAIN") {
        return Err(format!("peer is still known: {asked}"));
    }
    expect(&["network", "disconnect", "night", "web"], "is not on")
}

/// What programs in the machine could have more.
fn free_kib() -> Result<u64, String> {
    let said = in_machine("web", "cat /proc/meminfo")?;
    let line = said.lines().find(|line| line.starts_with("MemAvailable:"));
    let figure = line.and_then(|line| line.split_whitespace().nth(1));
    figure
        .and_then(|figure| figure.parse().ok())
        .ok_or_else(|| format!("no MemAvailable: {said}"))
}
