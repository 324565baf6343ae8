//! `sietch network connect` and `disconnect` for machines that run.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

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

fn start(setup: &Setup, who: &str, flags: &[&str]) -> Result<(), String> {
    let program = format!("echo of-{who} > /tmp/who; httpd -p 80 -h /tmp; sleep 1000");
    let words = ["-d", "--name", who];
    let program = ["busybox", "sh", "-c", &program];
    let started = said(&mut setup.command(&[&words[..], flags, &program].concat()))?;
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
    let outcome = start(setup, "web", &["--network", "day"])
        .and_then(|()| start(setup, "peer", &["--network", "night"]))
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

/// One that was started on no network, and one that leaves its first.
pub fn of_any_start(setup: &Setup) -> Result<(), String> {
    create("dawn", &[])?;
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    let forward = format!("127.0.0.1:{port}:80");
    let outcome = start(setup, "member", &["--network", "dawn"])
        .and_then(|()| start(setup, "lone", &["-p", &forward]))
        .and_then(|()| comes_and_goes("lone", port))
        .and_then(|()| leaves_its_first());
    let outcome = outcome.and_then(|()| match setup.is_long() {
        true => unforwarded(setup).and_then(|()| unanswered()),
        false => Ok(()),
    });
    let mut logs = String::new();
    for who in ["member", "lone", "plain"] {
        logs += &said(sietch().args(["logs", who]))?;
        said(sietch().args(["rm", "-f", who]))?;
    }
    remove("dawn")?;
    outcome.map_err(|error| format!("{error}\n{logs}"))
}

/// A connection by a published port, of which half of the question is sent.
fn half_asked(port: u16) -> Result<TcpStream, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    stream.write_all(b"GET /who HTTP/1.0\r\n").map_err(text)?;
    Ok(stream)
}

fn finish(mut stream: TcpStream, word: &str) -> Result<(), String> {
    let mut answer = String::new();
    let heard = stream
        .write_all(b"\r\n")
        .and_then(|()| stream.read_to_string(&mut answer));
    match answer.contains(word) {
        true => Ok(()),
        false => Err(format!(
            "a published port never says {word}: {answer} {heard:?}"
        )),
    }
}

fn wait_for_port(port: u16, word: &str) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let heard = half_asked(port).and_then(|stream| finish(stream, word));
        if heard.is_ok() || Instant::now() > deadline {
            return heard;
        }
        thread::sleep(POLL);
    }
}

/// Connections that it has, and new ones by its port, do not notice.
fn comes_and_goes(lone: &str, port: u16) -> Result<(), String> {
    wait_for_port(port, "of-lone")?;
    let held = half_asked(port)?;
    change(&["connect", "--alias", "shop", "dawn", lone])?;
    finish(held, "of-lone")?;
    wait_to_hear(lone, "member", "of-member")?;
    wait_to_hear("member", "shop", "of-lone")?;
    expect(&["network", "inspect", "dawn"], "\"lone\"")?;
    expect(&["snapshot", lone], "an address of its own")?;
    wait_for_port(port, "of-lone")?;
    let address = in_machine(lone, "nslookup lone")?;
    if !address.contains("10.0.2.15") {
        return Err(format!("it does not know itself: {address}"));
    }
    let held = half_asked(port)?;
    change(&["disconnect", "dawn", lone])?;
    finish(held, "of-lone")?;
    wait_for_port(port, "of-lone")?;
    let links = in_machine(lone, "cat /proc/net/dev")?;
    if links.contains("net1") || !links.contains("eth0") {
        return Err(format!("what is left of dawn: {links}"));
    }
    expect(&["network", "disconnect", "dawn", lone], "is not on")?;
    change(&["connect", "dawn", lone])
}

/// It has its address when it comes back, and nobody finds it meanwhile.
fn leaves_its_first() -> Result<(), String> {
    wait_to_hear("lone", "member", "of-member")?;
    let address = || {
        let said = said(sietch().args(["inspect", "member"]))?;
        let line = said
            .lines()
            .find_map(|line| line.split_once("\"address\": \"10."));
        let (_, rest) = line.ok_or(format!("no address: {said}"))?;
        Ok::<_, String>(rest.trim_end_matches([',', '"']).to_string())
    };
    let own = address()?;
    change(&["disconnect", "dawn", "member"])?;
    let asked = in_machine("lone", "nslookup member")?;
    if asked.contains(&own) {
        return Err(format!("member is still known: {asked}"));
    }
    expect(&["network", "disconnect", "dawn", "member"], "is not on")?;
    change(&["connect", "dawn", "member"])?;
    wait_to_hear("lone", "member", "of-member")?;
    wait_to_hear("member", "lone", "of-lone")?;
    match address()? == own {
        true => Ok(()),
        false => Err(format!("{own} is another address now")),
    }
}

/// One whose way out is QEMU's own network.
fn unforwarded(setup: &Setup) -> Result<(), String> {
    start(setup, "plain", &[])?;
    for _ in 0..CYCLES {
        change(&["connect", "dawn", "plain"])?;
        wait_to_hear("plain", "member", "of-member")?;
        wait_to_hear("member", "plain", "of-plain")?;
        change(&["disconnect", "dawn", "plain"])?;
    }
    Ok(())
}

/// A machine that stands removes its link once it goes on, when nobody waits for that any more.
fn unanswered() -> Result<(), String> {
    let inspected = said(sietch().args(["inspect", "lone"]))?;
    let pid = inspected
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"pid\": "));
    let pid = pid.and_then(|pid| pid.trim_end_matches(',').parse().ok());
    let qemu = pid.and_then(Pid::from_raw);
    let qemu = qemu.ok_or_else(|| format!("no pid: {inspected}"))?;
    let say = |signal| kill_process(qemu, signal).map_err(|error| error.to_string());
    say(Signal::STOP)?;
    let asked = expect(
        &["network", "disconnect", "dawn", "lone"],
        "does not answer",
    );
    say(Signal::CONT)?;
    asked?;
    change(&["connect", "dawn", "lone"])?;
    wait_to_hear("lone", "member", "of-member")?;
    wait_to_hear("member", "lone", "of-lone")
}
