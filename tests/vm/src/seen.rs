//! What the machine's own tools see of programs with a network of their own (`docs/bypass.md`).

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::Test;
use crate::build;
use crate::bypass::{self, operator_of};
use crate::guest::Setup;
use crate::links::operator_with;
use crate::operator::Operator;
use crate::resp::Redis;
use crate::workers::{Peer, nginx_beside};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Debian's ss and netstat show Redis by libsietch.so, its connections and its process",
        shows_redis,
    ),
    (
        "a program that fills its table of sockets with anything lies about itself only (seen)",
        hostile,
    ),
    (
        "Debian's tcpdump and snoop see each frame of Redis by libsietch.so once",
        captures_redis,
    ),
    (
        "a program that mirrors frames shows its own interface's, and no more than it may (seen)",
        mirrors,
    ),
    (
        "nginx by libsietch.so with four workers is listed by worker, and captured once (seen)",
        shows_workers,
    ),
    (
        "Debian's ss shows sockets for datagrams of a program by libsietch.so",
        shows_datagrams,
    ),
];

/// What captures.
pub const TCPDUMP: &str = "/usr/bin/tcpdump";

/// What lists sockets.
pub const SS: &str = "/usr/bin/ss";
const NETSTAT: &str = "/usr/bin/netstat";
const REDIS: &str = "/usr/bin/redis-server";
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const PORT: u16 = 6379;
/// The program's address and port in /proc/net/tcp.
const IN_PROC: &str = "3D02000A:18EB";

/// The first line of `said` with all of `words`.
fn line<'a>(said: &'a str, words: &[&str]) -> Result<&'a str, String> {
    let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
    let found = said.lines().find(has_all);
    found.ok_or_else(|| format!("no line with {words:?} in {said}"))
}

fn without(said: &str, words: &str) -> Result<(), String> {
    match said.contains(words) {
        true => Err(format!("{words} is in {said}")),
        false => Ok(()),
    }
}

/// A program that listens at an address is listed.
pub fn is_listed(shell: &mut Operator, address: &str, program: &str) -> Result<(), String> {
    let said = shell.ask(&format!("{SS} -ltnp"))?;
    line(&said, &["LISTEN", address, program]).map(drop)
}

fn shows_redis(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let kstat = build::tool("admin", "kstat")?;
    let kstat = format!("{}:/bin/kstat", kstat.display());
    let mut shell = operator_of(setup, "256M", &[REDIS, SS, NETSTAT, &kstat])?;
    let program = "redis-server --protected-mode no --save ''";
    bypass::start(&mut shell, program, "Ready to accept connections")?;
    let process = shell.ask("echo pid=$!")?;
    let process = line(&process, &["pid="])?.trim().to_string();
    let number = process.trim_start_matches("pid=").to_string();
    listens(&mut shell, &process)?;
    let address = SocketAddr::from((bypass::PROGRAM, PORT));
    let mut client = Redis::connect(address)?;
    client.call(&["SET", "key", "value"])?;
    connects(&mut shell, &process)?;
    counts(&mut shell, &number)?;
    shell.ask("kill -STOP $!")?;
    let said = shell.ask(&format!("{SS} -tn; {SS} -ltn"))?;
    line(&said, &["ESTAB", "10.0.2.61:6379", "10.0.2.2:"])?;
    line(&said, &["LISTEN", "10.0.2.61:6379"])?;
    shell.ask("kill -CONT $!")?;
    client.call(&["GET", "key"])?;
    drop(client);
    let gone =
        format!("until ! {SS} -tn state established | grep -q 10.0.2.61; do sleep 0.1; done");
    shell.ask(&gone)?;
    shell.ask("kill -9 $!; wait $!")?;
    without(&shell.ask(&format!("{SS} -tan"))?, "10.0.2.61:")?;
    shell.leave().map(drop)
}

/// A listener, before any frame has come for it.
fn listens(shell: &mut Operator, process: &str) -> Result<(), String> {
    let said = shell.ask(&format!("{SS} -ltnp"))?;
    let listener = line(&said, &["LISTEN", "10.0.2.61:6379", "0.0.0.0:*"])?;
    line(listener, &["redis-server", process])?;
    // The kernel's own is there, too.
    line(&said, &["LISTEN", "*:6379", process])?;
    let said = shell.ask("cat /proc/net/tcp")?;
    line(&said, &[IN_PROC, "00000000:0000 0A"]).map(drop)
}

fn connects(shell: &mut Operator, process: &str) -> Result<(), String> {
    let said = shell.ask(&format!("{SS} -tnapi"))?;
    let connection = line(&said, &["ESTAB", "10.0.2.61:6379", &format!("{HOST}:")])?;
    line(connection, &["redis-server", process])?;
    line(&said, &["cubic", "rtt:", "cwnd:", "mss:"])?;
    let said = shell.ask(&format!("{NETSTAT} -tnap"))?;
    let number = process.trim_start_matches("pid=");
    let program = format!("{number}/redis");
    line(&said, &["10.0.2.61:6379", "LISTEN", &program])?;
    line(&said, &["10.0.2.61:6379", "ESTABLISHED", &program])?;
    let said = shell.ask("cat /proc/net/tcp")?;
    line(&said, &[IN_PROC, "0202000A:", " 01 "]).map(drop)
}

/// What the program's stack counts.
fn counts(shell: &mut Operator, number: &str) -> Result<(), String> {
    let said = shell.ask(&format!(
        "kstat -p 'sietch:{number}:stack:tcp_passive_opens'"
    ))?;
    let opened = line(
        &said,
        &[&format!("sietch:{number}:stack:tcp_passive_opens\t1")],
    );
    opened.map(drop)
}

fn hostile(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new("tests/programs/scenes/stack_table.c"))?;
    let program = format!("{}:/bin/stack_table", program.display());
    let mut shell = operator_of(setup, "256M", &[REDIS, SS, NETSTAT, &program])?;
    line(&shell.ask("stack_table refused")?, &["refused all"])?;
    without(&shell.ask(&format!("{SS} -tan"))?, "10.0.2.77")?;
    shell.ask("redis-server --port 7000 --save '' >/tmp/log &")?;
    shell.ask(&format!(
        "until {SS} -ltn | grep -q 0.0.0.0:7000; do sleep 0.1; done"
    ))?;
    honest(&mut shell)?;
    for what in ["scribble", "unmapped"] {
        shell.ask(&format!(
            "stack_table {what} >/tmp/said & until grep -q . /tmp/said; do sleep 0.1; done"
        ))?;
        for _ in 0..5 {
            let said = shell.ask(&format!(
                "{SS} -tan; {SS} -uan; {NETSTAT} -tuan; cat /proc/net/tcp /proc/net/udp"
            ))?;
            only_its_own(&said)?;
        }
        // It dies while somebody reads.
        shell.ask(&format!(
            "other=$!; (for i in 1 2 3 4 5 6; do {SS} -tanp; done) >/tmp/seen & \
             sleep 0.3; kill -9 $other; wait $other $!"
        ))?;
        without(&shell.ask(&format!("{SS} -tan"))?, "10.0.2.77")?;
    }
    shell.leave().map(drop)
}

/// A table that says what is so, and more that cannot be.
fn honest(shell: &mut Operator) -> Result<(), String> {
    shell.ask(
        "stack_table honest >/tmp/said & until grep -q . /tmp/said; do sleep 0.1; done; pid=$!",
    )?;
    let said = shell.ask(&format!("{SS} -tanp"))?;
    line(&said, &["LISTEN", "10.0.2.77:7001", "stack_table"])?;
    for port in [7002, 7003] {
        let shown = line(
            &said,
            &["ESTAB", &format!("10.0.2.77:{port}"), "10.0.2.2:9"],
        )?;
        without(shown, "stack_table")?;
    }
    for port in [7004, 7005, 7006] {
        without(&said, &format!(":{port}"))?;
    }
    shell.ask("kill $pid; wait $pid")?;
    without(&shell.ask(&format!("{SS} -tan"))?, "10.0.2.77")
}

/// Nobody else's socket is hidden or invented.
fn only_its_own(said: &str) -> Result<(), String> {
    line(said, &["LISTEN", "0.0.0.0:7000"])?;
    line(said, &["00000000:1B58", "0A"])?;
    let rows = said.lines().filter(|line| line.contains("10.0.2.77"));
    let own = |row: &str| {
        row.split_whitespace()
            .any(|word| word.starts_with("10.0.2.77:"))
    };
    match rows.into_iter().find(|row| !own(row)) {
        Some(row) => Err(format!("a row that is nobody's: {row}")),
        None => Ok(()),
    }
}

/// Has tcpdump write what passes a link, a line for each frame.
pub fn begin_capture(shell: &mut Operator, link: &str) -> Result<(), String> {
    let said = shell.ask(&format!(
        "tcpdump -Z root -ltvni {link} tcp >/tmp/dump 2>/tmp/heard & capture=$!; \
         for i in $(seq 100); do grep -q listening /tmp/heard && break; sleep 0.1; done; cat /tmp/heard",
    ))?;
    line(&said, &[&format!("listening on {link}")]).map(drop)
}

/// The frames, none of them twice.
pub fn end_capture(shell: &mut Operator) -> Result<Vec<String>, String> {
    let said = shell.ask("sleep 1; kill -INT $capture; wait $capture; cat /tmp/heard /tmp/dump")?;
    line(&said, &["0 packets dropped by kernel"])?;
    let mut frames: Vec<String> = Vec::new();
    for line in said
        .lines()
        .filter(|line| line.contains("10.0.2.") || line.contains("IP ("))
    {
        match frames.last_mut().filter(|_| !line.contains("IP (")) {
            Some(last) => last.push_str(line),
            None => frames.push(line.into()),
        }
    }
    // Numbers of our own packets may be 0.
    let mut numbered: Vec<_> = frames
        .iter()
        .filter(|one| one.contains("10.0.2.2."))
        .collect();
    numbered.retain(|one| !one.contains("id 0,"));
    numbered.sort();
    match numbered.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{} is there twice", pair[0])),
        None => Ok(frames),
    }
}

fn captures_redis(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let snoop = build::tool("snoop", "snoop")?;
    let snoop = format!("{}:/bin/snoop", snoop.display());
    let mut shell = operator_of(setup, "256M", &[REDIS, TCPDUMP, &snoop])?;
    let program = "redis-server --protected-mode no --save ''";
    bypass::start(&mut shell, program, "Ready to accept connections")?;
    begin_capture(&mut shell, "vnic61")?;
    shell.ask("snoop -d vnic61 -c 5 -o /tmp/kept tcp port 6379 >/tmp/snoop 2>&1 & sleep 0.5")?;
    let mut client = Redis::connect(SocketAddr::from((bypass::PROGRAM, PORT)))?;
    client.call(&["PING"])?;
    let frames = end_capture(&mut shell)?;
    shows_a_ping(&frames)?;
    let said = shell.ask("wait $!; cat /tmp/snoop; snoop -i /tmp/kept")?;
    line(&said, &["10.0.2.2", "10.0.2.61", "TCP D=6379", "Syn"])?;
    line(&said, &["10.0.2.61", "10.0.2.2", "S=6379", "Syn"])?;
    shell.leave().map(drop)
}

/// Without the card: what the kernel lets a program say of one.
fn mirrors(setup: &Setup) -> Result<(), String> {
    let program = build::c(Path::new("tests/programs/scenes/port_mirror.c"))?;
    let program = format!("{}:/bin/port_mirror", program.display());
    let mut shell = operator_with(setup, &["--add", &program])?;
    line(&shell.ask("port_mirror")?, &["mirrored all"])?;
    without(&shell.ask("cat /proc/net/dev")?, "enp")?;
    shell.leave().map(drop)
}

/// A client's PING to the program's Redis, and its answer.
pub fn shows_a_ping(frames: &[String]) -> Result<(), String> {
    let has = |direction: &str, length: &str| {
        let is_it = |frame: &String| frame.contains(direction) && frame.contains(length);
        frames.iter().any(is_it)
    };
    let asked = has("> 10.0.2.61.6379:", "length 14");
    match asked && has("10.0.2.61.6379 >", "length 7") {
        true => Ok(()),
        false => Err(format!("no question or no answer in {frames:?}")),
    }
}

fn shows_workers(setup: &Setup) -> Result<(), String> {
    const PEERS: usize = 12;
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = nginx_beside(setup, &[SS, TCPDUMP])?;
    begin_capture(&mut shell, "vnic61")?;
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        let mut peer = Peer::new()?;
        let worker = peer.worker().map_err(|error| error.to_string())?;
        peers.push((
            peer.port().map_err(|error| error.to_string())?,
            worker,
            peer,
        ));
    }
    let listed = shell.ask(&format!("{SS} -tnap"))?;
    let frames = end_capture(&mut shell)?;
    for (port, worker, _) in &peers {
        let shown = line(
            &listed,
            &["ESTAB", "10.0.2.61:80", &format!("10.0.2.2:{port} ")],
        )?;
        line(shown, &["nginx", &format!("pid={worker},")])?;
        let opening = format!("10.0.2.61.80 > 10.0.2.2.{port}: Flags [S.]");
        if !frames.iter().any(|frame| frame.contains(&opening)) {
            return Err(format!("no {opening} in {frames:?}"));
        }
    }
    shell.leave().map(drop)
}

fn shows_datagrams(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new("tests/programs/scenes/mmsg_echo.c"))?;
    let program = format!("{}:/bin/mmsg_echo", program.display());
    let mut shell = operator_of(setup, "256M", &[SS, &program])?;
    bypass::start(&mut shell, "mmsg_echo", "serving")?;
    let said = shell.ask(&format!("{SS} -uanp; cat /proc/net/udp"))?;
    line(&said, &["UNCONN", "10.0.2.61:7 ", "mmsg_echo"])?;
    line(&said, &["3D02000A:0007", " 07 "])?;
    shell.ask("kill -9 $!; wait $!")?;
    without(&shell.ask(&format!("{SS} -uan"))?, "10.0.2.61:")?;
    shell.leave().map(drop)
}
