//! Networks of machines (`sietch network`, `run --network`): names, isolation, published ports, and the switch's end.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::guest::{Setup, sietch};
use crate::{Test, network_connect};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "machines of a network reach each other by name, others do not, whatever befalls the switch",
        by_name,
    ),
    (
        "a machine on several networks finds the machines of each, and they find it",
        on_several,
    ),
    (
        "a machine that runs is put on a network and taken from it, again and again (networks)",
        network_connect::while_it_runs,
    ),
    (
        "a machine that runs is put on a network if it was on none, and leaves its first (networks)",
        network_connect::of_any_start,
    ),
];

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// Asks for the address of `asks` by TCP (RFC 1035 4.2.2), and shows the answer in hexadecimal digits.
const BY_TCP: &str = r"printf '\000\026\253\315\001\000\000\001\000\000\000\000\000\000\004asks\000\000\001\000\001' \
    | nc $(sed -n 's/^nameserver //p' /etc/resolv.conf | head -n 1) 53 | od -An -v -tx1 | tr -d ' \n'";
/// Clients of a published port at once, as many as QEMU itself serves; `ports` has a thousand.
const CLIENTS: &str = "4";

/// What a command says, however it ends.
pub fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Fails unless `sietch` with these arguments says that.
pub fn expect(args: &[&str], word: &str) -> Result<(), String> {
    let said = said(sietch().args(args))?;
    match said.contains(word) {
        true => Ok(()),
        false => Err(format!("{args:?} never says {word:?}: {said}")),
    }
}

/// Makes a network that is not there yet, with these flags.
pub fn create(network: &str, flags: &[&str]) -> Result<(), String> {
    let args = [&["network", "create"], flags, &[network]].concat();
    let output = sietch().args(args).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() && output.stdout.trim_ascii() == network.as_bytes() {
        true => Ok(()),
        false => Err(format!("no network {network}: {output:?}")),
    }
}

/// What a program says in a machine of its own on `network`.
fn asked(setup: &Setup, network: &str, program: &[&str]) -> Result<String, String> {
    let flags = ["--rm", "--name", "asks", "--network", network];
    said(&mut setup.command(&[&flags, program].concat()))
}

fn expect_asked(setup: &Setup, network: &str, program: &[&str], word: &str) -> Result<(), String> {
    let said = asked(setup, network, program)?;
    match said.contains(word) {
        true => Ok(()),
        false => Err(format!(
            "{program:?} on {network} never says {word:?}: {said}"
        )),
    }
}

/// The number behind a word of `network inspect`, and a text in quotes.
fn inspected(network: &str, key: &str) -> Result<String, String> {
    let said = said(sietch().args(["network", "inspect", network]))?;
    let line = said
        .lines()
        .find(|line| line.contains(&format!("\"{key}\":")));
    let value = line.and_then(|line| line.split_once(": "));
    let (_, value) = value.ok_or_else(|| format!("no {key}: {said}"))?;
    Ok(value.trim_matches([',', '"', ' ']).to_string())
}

fn by_name(setup: &Setup) -> Result<(), String> {
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    create("front", &["--ipv6"])?;
    create("back", &[])?;
    let forward = format!("127.0.0.1:{port}:6379");
    let flags = ["-d", "--name", "db", "--network", "front"];
    let names = ["--network-alias", "cache", "-p", &forward];
    let redis = ["redis-server", "--save", "", "--protected-mode", "no"];
    let started =
        said(&mut setup.command(&[&flags[..], &names, &redis, &["--bind", "*", "-::*"]].concat()))?;
    if started.trim() != "db" {
        return Err(format!("db does not start: {started}"));
    }
    let outcome = with_db(setup, port);
    let log = said(sietch().args(["logs", "db"]))?;
    said(sietch().args(["rm", "-f", "db"]))?;
    outcome.map_err(|error| format!("{error}\n{log}"))?;
    expect_asked(setup, "front", &["busybox", "nslookup", "db"], "NXDOMAIN")?;
    // A record of one address, of the name that the question has.
    let by_tcp = ["busybox", "sh", "-c", BY_TCP];
    expect_asked(setup, "front", &by_tcp, "c00c00010001000000050004")?;
    remove("front")?;
    remove("back")?;
    expect(&["network", "inspect", "back"], "There is no network back")
}

/// Removes a network once its last machine has left.
pub fn remove(network: &str) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = said(sietch().args(["network", "rm", network]))?;
        match said.trim() == network {
            true => return Ok(()),
            false if Instant::now() > deadline => return Err(said),
            false => thread::sleep(POLL),
        }
    }
}

fn wait_for_words(name: &str, words: &str) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !said(sietch().args(["logs", name]))?.contains(words) {
        if Instant::now() > deadline {
            return Err(format!("{name} never says {words:?}"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn with_db(setup: &Setup, port: u16) -> Result<(), String> {
    wait_for_words("db", "Ready to accept connections")?;
    let address = inspected("front", "address")?;
    let address6 = inspected("front", "address6")?;
    let ping = |host| ["redis-cli", "-h", host, "ping"];
    for host in ["db", "cache.front"] {
        expect_asked(setup, "front", &ping(host), "PONG")?;
    }
    // A machine has its own IPv6 address once it knows that nobody else has it.
    let by_address6 = format!(
        "for try in 1 2 3 4 5 6 7 8 9 10; do echo PING | nc -w 5 {address6} 6379 && break; sleep 1; done"
    );
    let by_address6 = ["busybox", "sh", "-c", &by_address6];
    expect_asked(setup, "front", &by_address6, "PONG")?;
    expect_asked(setup, "back", &ping("db"), "Could not connect")?;
    let by_address = ["busybox", "ping", "-c", "2", "-W", "1", &address];
    expect_asked(setup, "back", &by_address, "100% packet loss")?;
    expect(&["network", "rm", "front"], "used by db")?;
    some_clients(port)?;
    kill_switch("front")?;
    expect_asked(setup, "front", &ping("db"), "PONG")?;
    some_clients(port)?;
    match inspected("front", "address")? == address {
        true => Ok(()),
        false => Err("db has another address than before".into()),
    }
}

/// Says who it is, and asks others who they are until they say it.
fn talk(who: &str, asked: &[&str]) -> String {
    let others = asked.join(" ");
    format!(
        "echo of-{who} > /tmp/who; httpd -p 80 -h /tmp; \
         for other in {others}; do until wget -q -O - http://$other/who; do sleep 1; done; done; \
         nslookup nobody; echo all said; sleep 1000"
    )
}

fn start(setup: &Setup, who: &str, networks: &[&str], asked: &[&str]) -> Result<(), String> {
    let mut words = vec!["-d", "--name", who];
    words.extend(networks.iter().flat_map(|network| ["--network", network]));
    let program = talk(who, asked);
    words.extend(["busybox", "sh", "-c", &program]);
    let started = said(&mut setup.command(&words))?;
    match started.trim() == who {
        true => Ok(()),
        false => Err(format!("{who} does not start: {started}")),
    }
}

fn on_several(setup: &Setup) -> Result<(), String> {
    create("left", &[])?;
    create("right", &[])?;
    let started = start(setup, "one", &["left"], &["mid"])
        .and_then(|()| start(setup, "two", &["right"], &["mid"]))
        .and_then(|()| {
            start(
                setup,
                "mid",
                &["left", "right"],
                &["one", "two", "two.right"],
            )
        });
    let outcome = started.and_then(|()| have_talked());
    let mut logs = String::new();
    for who in ["one", "two", "mid"] {
        logs += &said(sietch().args(["logs", who]))?;
        said(sietch().args(["rm", "-f", who]))?;
    }
    remove("left")?;
    remove("right")?;
    outcome.map_err(|error| format!("{error}\n{logs}"))
}

fn have_talked() -> Result<(), String> {
    for (who, heard) in [
        ("mid", &["of-one", "of-two", "NXDOMAIN"][..]),
        ("one", &["of-mid"]),
        ("two", &["of-mid"]),
    ] {
        wait_for_words(who, "all said")?;
        let log = said(sietch().args(["logs", who]))?;
        if let Some(missing) = heard.iter().find(|word| !log.contains(**word)) {
            return Err(format!("{who} never hears {missing}"));
        }
    }
    // What the card says on the one network is no forgery on the other.
    match inspected("left", "not_the_senders")?.as_str() {
        "0" => Ok(()),
        forged => Err(format!("{forged} frames were taken for forged ones")),
    }
}

/// The published port, beside the network.
fn some_clients(port: u16) -> Result<(), String> {
    let port = port.to_string();
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(["-p", &port, "-c", CLIENTS, "-n", "1000", "-t", "get", "-q"]);
    let said = said(&mut benchmark)?;
    match said.contains("requests per second") && !said.contains("rror") {
        true => Ok(()),
        false => Err(format!("{CLIENTS} clients: {said}")),
    }
}

fn kill_switch(network: &str) -> Result<(), String> {
    let pid = || {
        let number = inspected(network, "switch_pid")?.parse().ok();
        Ok::<_, String>(number.and_then(Pid::from_raw))
    };
    let killed = pid()?.ok_or("no switch")?;
    kill_process(killed, Signal::KILL).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if pid()?.is_some_and(|other| other != killed) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err("no other switch comes".into());
        }
        thread::sleep(POLL);
    }
}
