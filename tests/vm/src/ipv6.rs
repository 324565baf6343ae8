//! IPv6 from outside: Redis, nginx, ping, and floods of ICMP.
//!
//! All of it goes over the tap interface of our own namespace; where there is none, QEMU's
//! user network leads nobody in by IPv6, and there is nothing to test.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use qemu::namespace::{MACHINE, MACHINE_V6, MACHINE_V6_FLAG, TAP, THIS_HOST_V6};

use crate::Test;
use crate::guest::{Setup, write_file};
use crate::operator::Operator;
use crate::redis::benchmark;
use crate::redis_leaks::{REDIS, START, STOP};
use crate::resp::Redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Redis serves clients of both families by IPv6 sockets",
        redis,
    ),
    ("nginx serves curl by IPv6", nginx),
    (
        "Debian's ping reaches the machine by IPv6, by its link-local address too",
        ping,
    ),
    (
        "a flood of ICMP leaves a connection to Redis working",
        flood,
    ),
];

const PING: &[u8] = b"PING\r\n";

/// Starts a machine with both addresses; none where IPv6 cannot reach it.
pub fn machine(
    setup: &Setup,
    port: u16,
    flags: &[&str],
) -> Result<Option<(Operator, SocketAddr)>, String> {
    if !setup.has_tap() {
        return Ok(None);
    }
    let flags = [&["--ip6", MACHINE_V6_FLAG], flags].concat();
    let (operator, _) = Operator::start(setup, port, &flags)?;
    Ok(Some((operator, SocketAddr::new(MACHINE_V6.into(), port))))
}

fn redis(setup: &Setup) -> Result<(), String> {
    let Some((mut operator, address)) = machine(setup, 6379, &["--add", REDIS])? else {
        return Ok(());
    };
    operator.ask(START)?;
    operator.guest.expect_answer(address, PING)?;
    let mut six = Redis::connect(address)?;
    let mut four = Redis::connect(SocketAddr::new(MACHINE.into(), 6379))?;
    six.call(&["SET", "well", "water"])?;
    let value = four.call(&["GET", "well"])?;
    let clients = six.call(&["CLIENT", "LIST"])?;
    if value != "water" || !clients.contains(&format!("addr=[{THIS_HOST_V6}]:")) {
        return Err(operator.guest.explain(&format!("said {value}, {clients}")));
    }
    benchmark(
        &operator.guest,
        address,
        &["-n", "2000", "-c", "50", "-t", "set,get"],
    )?;
    benchmark(
        &operator.guest,
        address,
        &["-n", "200", "-d", "65536", "-t", "set,get"],
    )?;
    operator.ask(STOP)?;
    expect_status(&operator.leave()?, 0)
}

const CONFIGURATION: &str = "\
daemon off;
error_log stderr;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
    access_log off;
    sendfile on;
    server { listen 80; listen [::]:80; root /site; }
}
";

fn nginx(setup: &Setup) -> Result<(), String> {
    let Some((mut operator, address)) = nginx_machine(setup)? else {
        return Ok(());
    };
    fetch(&operator, "curl", &[], address)?;
    operator.ask(STOP)?;
    expect_status(&operator.leave()?, 0)
}

/// Starts a machine with nginx, which serves both families.
pub fn nginx_machine(setup: &Setup) -> Result<Option<(Operator, SocketAddr)>, String> {
    let page = write_file("site6/index.html", page())?;
    let configuration = write_file("nginx6.conf", CONFIGURATION)?;
    let flags = [
        "--add",
        "/usr/sbin/nginx:/usr/sbin/nginx",
        "--add",
        &format!("{page}:/site/index.html"),
        "--add",
        &format!("{configuration}:/nginx.conf"),
    ];
    let Some((mut operator, address)) = machine(setup, 80, &flags)? else {
        return Ok(None);
    };
    operator.ask("nginx -c /nginx.conf &")?;
    operator
        .guest
        .expect_answer(address, b"GET / HTTP/1.0\r\n\r\n")?;
    Ok(Some((operator, address)))
}

fn page() -> String {
    "spice ".repeat(50_000)
}

/// Fetches nginx' page by curl, which `program` runs behind the arguments `before`.
pub fn fetch(
    operator: &Operator,
    program: &str,
    before: &[&str],
    from: SocketAddr,
) -> Result<(), String> {
    let url = format!("http://{from}/index.html");
    let args = [before, &["-g", "-sS", "--max-time", "60", &url]].concat();
    let (got, _) = run(program, &args)?;
    match got == page() {
        true => Ok(()),
        false => {
            let start = got.get(..80).unwrap_or(&got);
            let why = format!("gave {} bytes at {url}: {start}", got.len());
            Err(operator.guest.explain(&why))
        }
    }
}

/// To each address.
const PINGS: u32 = 3;

/// The host asks a group for the link-local address, so the card must let groups in.
fn ping(setup: &Setup) -> Result<(), String> {
    let nics: &[&str] = match setup.has_our_pci() {
        true => &["virtio", "e1000", "igb"],
        false => &["virtio"],
    };
    let mut nics = nics.iter();
    nics.try_for_each(|nic| {
        ping_behind(&setup.with_nic(nic)).map_err(|why| format!("{nic}: {why}"))
    })
}

fn ping_behind(setup: &Setup) -> Result<(), String> {
    let Some((mut operator, _)) = machine(setup, 7, &[])? else {
        return Ok(());
    };
    operator.ask("until grep -q '00 80.*eth0' /proc/net/if_inet6; do sleep 1; done")?;
    // The address that the first card's number makes.
    let link_local = format!("fe80::5054:ff:fe12:3456%{TAP}");
    for (address, bytes) in [
        (MACHINE_V6.to_string(), "56"),
        (MACHINE_V6.to_string(), "1300"),
        (link_local, "56"),
    ] {
        for _ in 0..PINGS {
            // One by one: after the last of several ping(8) waits only as long as two took before.
            let args = ["-6", "-c", "1", "-W", "20", "-s", bytes, &address];
            let (said, is_well) = run("ping", &args)?;
            if !is_well {
                return Err(operator.guest.explain(&format!("{address}: {said}")));
            }
        }
    }
    expect_status(&operator.leave()?, 0)
}

/// Echo requests of each family, and datagrams to closed ports.
const ECHOES: &str = "3000";
const STRAYS: u32 = 20_000;
/// Of so many strays that arrived, at least half are left without an answer.
const MANY: u64 = 10_000;

fn flood(setup: &Setup) -> Result<(), String> {
    let Some((mut operator, address)) = machine(setup, 6379, &["--add", REDIS])? else {
        return Ok(());
    };
    operator.ask(START)?;
    operator.guest.expect_answer(address, PING)?;
    let mut six = Redis::connect(address)?;
    let mut four = Redis::connect(SocketAddr::new(MACHINE.into(), 6379))?;
    let floods = [format!("-6 {MACHINE_V6}"), format!("-4 {MACHINE}")].map(|target| {
        let args = format!("-q -f -c {ECHOES} -w 30 {target}");
        Command::new("ping").args(args.split(' ')).spawn()
    });
    stray(MACHINE_V6.into(), "[::]:0")?;
    stray(MACHINE.into(), "0.0.0.0:0")?;
    for round in 0..200 {
        let value = round.to_string();
        for client in [&mut six, &mut four] {
            client.call(&["SET", "key", &value])?;
            if client.call(&["GET", "key"])? != value {
                return Err(operator.guest.explain("gave another value"));
            }
        }
    }
    for flood in floods {
        let ended = flood.and_then(|mut ping| ping.wait());
        ended.map_err(|error| format!("ping: {error}"))?;
    }
    let asked = counter(&mut operator, "Icmp6InEchos")?;
    let replied = counter(&mut operator, "Icmp6OutEchoReplies")?;
    let strays = counter(&mut operator, "Udp6NoPorts")?;
    let errors = counter(&mut operator, "Icmp6OutDestUnreachs")?;
    println!("     {asked} echoes, {replied} replies, {strays} strays, {errors} errors");
    let is_unlimited = strays > MANY && errors > strays / 2;
    if asked == 0 || replied == 0 || strays == 0 || errors == 0 || is_unlimited {
        return Err(operator.guest.explain("did not meet the flood"));
    }
    six.call(&["PING"])?;
    operator.ask(STOP)?;
    expect_status(&operator.leave()?, 0)
}

/// Sends datagrams that nobody waits for.
fn stray(to: std::net::IpAddr, from: &str) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind(from).map_err(text)?;
    for number in 0..STRAYS {
        // A full queue of the interface is no fault.
        let _ = socket.send_to(&number.to_be_bytes(), SocketAddr::new(to, 9));
    }
    Ok(())
}

/// A counter of `/proc/net/snmp6`.
pub fn counter(operator: &mut Operator, name: &str) -> Result<u64, String> {
    let text = operator.ask(&format!("grep {name} /proc/net/snmp6"))?;
    let mut words = text.split_whitespace().skip_while(|word| *word != name);
    let number = words.nth(1).and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("no {name} in {text}"))
}

/// What a command of this host says, and whether it went well.
pub fn run(program: &str, args: &[&str]) -> Result<(String, bool), String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    Ok((
        String::from_utf8_lossy(&said).into_owned(),
        output.status.success(),
    ))
}
