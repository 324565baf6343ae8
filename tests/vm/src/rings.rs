//! A card with a pair of queues for each CPU: whether all of them work, and for whom.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use qemu::namespace::{MACHINE_V6, MACHINE_V6_FLAG};

use crate::Test;
use crate::build;
use crate::guest::{Guest, Setup};
use crate::operator::Operator;
use crate::redis::benchmark;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "two Redis on two CPUs are served by both rings of the card, in order",
        both_rings_serve,
    ),
    (
        "a card that is told the hash brings each frame to the ring of its connection",
        card_steers,
    ),
    (
        "two Redis on two CPUs are served over IPv6 by both rings of the card, in order",
        both_rings_serve_v6,
    ),
    (
        "a card that is told the hash brings frames of IPv6 to the ring of their connection",
        card_steers_v6,
    ),
    (
        "both rings serve IPv6 while addresses and routes of the machine come and go",
        addresses_change,
    ),
    (
        "connections of a machine with two rings to itself reach their listener",
        to_itself,
    ),
];

/// A CPU that the host keeps from running looks busy.
pub const TESTS_OF_LOAD: &[Test] = &[(
    "a CPU takes a ring's frames while it is needed, and not longer (link layer)",
    elastic,
)];

/// The server, for `--add`.
pub const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
const CLIENT: &str = "/usr/bin/redis-benchmark:/usr/bin/redis-benchmark";
const IP: &str = "/usr/sbin/ip";
const PORTS: [u16; 2] = [6379, 6380];
/// Of a hundred frames, each ring carries so many at least.
const SHARE_MIN: u64 = 15;
/// Of a hundred frames, so many at most come by the wrong ring of a card that follows what
/// is sent.
const HANDED_OVER_MAX: u64 = 50;
/// The same of a card that knows the hash, but not what neighbours say to each other by IPv6.
const HANDED_OVER_MAX_V6: u64 = 1;

/// An address of IPv6 is not to be used before it is known to be nobody else's.
const WHILE_TENTATIVE: &str = "while ip addr show dev eth0 | grep -q tentative; do sleep 0.1; done";

/// Connections that live while shards move.
const CLIENTS: usize = 4;
/// The machine is not to be full by them alone.
const BETWEEN_PINGS: Duration = Duration::from_millis(50);
/// A busy host makes a quiet machine look busy.
const MOVE_PATIENCE: Duration = Duration::from_secs(120);
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// What the machine says of one ring in /proc/net/rings.
#[derive(Debug)]
struct Ring {
    received: u64,
    handed_over: u64,
    sent: u64,
    dropped: u64,
}

fn start(setup: &Setup) -> Result<(Operator, SocketAddr), String> {
    let ip6 = ["--ip6", MACHINE_V6_FLAG];
    let programs = ["--add", REDIS, "--add", CLIENT, "--add", IP];
    let flags = [&programs[..], &ip6].concat();
    let (mut operator, address) = Operator::start(setup, PORTS[0], &flags)?;
    for port in PORTS {
        operator.ask(&format!(
            "redis-server --port {port} --protected-mode no --save '' >/dev/null &"
        ))?;
        let address = SocketAddr::new(address.ip(), port);
        operator.guest.expect_answer(address, b"PING\r\n")?;
    }
    Ok((operator, address))
}

/// Each connection's frames come by the ring that the card chose, and are for the shard
/// that the hash chose. A card that follows what is sent brings all but the first few
/// frames of a connection where they belong.
fn both_rings_serve(setup: &Setup) -> Result<(), String> {
    both_rings(setup, HANDED_OVER_MAX, None)
}

fn card_steers(setup: &Setup) -> Result<(), String> {
    both_rings(&setup.with_nic("igb"), 0, None)
}

fn both_rings_serve_v6(setup: &Setup) -> Result<(), String> {
    both_rings(setup, HANDED_OVER_MAX, Some(MACHINE_V6.into()))
}

fn card_steers_v6(setup: &Setup) -> Result<(), String> {
    let machine = Some(MACHINE_V6.into());
    both_rings(&setup.with_nic("igb"), HANDED_OVER_MAX_V6, machine)
}

/// Loads both Redis: at `machine`, if there is a way to it, if not at the machine's first address.
fn both_rings(setup: &Setup, handed_over_max: u64, machine: Option<IpAddr>) -> Result<(), String> {
    if !setup.has_rings() || machine.is_some() && !setup.has_tap() {
        return Ok(());
    }
    let (mut operator, address) = start(setup)?;
    let address = SocketAddr::new(machine.unwrap_or(address.ip()), address.port());
    operator.guest.expect_answer(address, b"PING\r\n")?;
    load_both(&operator.guest, address)?;
    let rings = rings(&mut operator)?;
    let sum = |of: fn(&Ring) -> u64| rings.iter().map(of).sum::<u64>();
    let (received, sent) = (sum(|ring| ring.received), sum(|ring| ring.sent));
    let is_shared = |ring: &Ring| {
        ring.received * 100 >= received * SHARE_MIN && ring.sent * 100 >= sent * SHARE_MIN
    };
    let fails = |why: &str| Err(format!("{why}: {rings:?}"));
    if rings.len() != 2 || !rings.iter().all(is_shared) {
        return fails("the rings do not share the frames");
    }
    if sum(|ring| ring.handed_over) * 100 > received * handed_over_max {
        return fails("frames come to the wrong ring");
    }
    if sum(|ring| ring.dropped) != 0 {
        return fails("frames were dropped");
    }
    match counter(&mut operator, "TCPOFOQueue")? {
        0 => expect_status(&operator.leave()?, 0),
        count => Err(format!("{count} segments came out of order")),
    }
}

/// An address that is no other machine's.
const SECOND: &str = "fd00:51e7::99";

/// The first shard publishes a dozen changes a second while both carry load; each shard then
/// takes connections at an address that is new.
fn addresses_change(setup: &Setup) -> Result<(), String> {
    if !setup.has_rings() || !setup.has_tap() {
        return Ok(());
    }
    let (mut operator, address) = start(setup)?;
    let at = |machine: &str| {
        let machine = machine
            .parse()
            .map_err(|error| format!("{machine}: {error}"));
        machine.map(|machine| SocketAddr::new(machine, address.port()))
    };
    operator.ask(&format!(
        "(until [ -e /tmp/over ]; do ip addr add {SECOND}/64 dev eth0; \
        ip route add 2001:db8::/32 via fd00:51e7::2; sleep 0.1; \
        ip addr del {SECOND}/64 dev eth0; ip route del 2001:db8::/32; done; touch /tmp/still) &"
    ))?;
    for _ in 0..3 {
        load_both(&operator.guest, at(&MACHINE_V6.to_string())?)?;
    }
    operator.ask("touch /tmp/over; until [ -e /tmp/still ]; do sleep 0.1; done")?;
    operator.ask(&format!(
        "ip addr add {SECOND}/64 dev eth0; {WHILE_TENTATIVE}"
    ))?;
    let before = rings(&mut operator)?;
    load_both(&operator.guest, at(SECOND)?)?;
    let rings = rings(&mut operator)?;
    let is_loaded = |(now, before): (&Ring, &Ring)| now.received > before.received + 1000;
    match rings.len() == 2 && rings.iter().zip(&before).all(is_loaded) {
        true => expect_status(&operator.leave()?, 0),
        false => Err(format!("one ring serves: {before:?}, then {rings:?}")),
    }
}

fn load_both(guest: &Guest, address: SocketAddr) -> Result<(), String> {
    let load = ["-n", "4000", "-c", "20", "-t", "set,get"];
    thread::scope(|scope| {
        let clients = PORTS.map(|port| {
            let address = SocketAddr::new(address.ip(), port);
            scope.spawn(move || benchmark(guest, address, &load).map(drop))
        });
        clients.into_iter().try_for_each(|client| {
            let done = client.join();
            done.unwrap_or_else(|_| Err("a client panicked".into()))
        })
    })
}

/// Connections begin on either CPU and are accepted on either; each needs a port of its own
/// that leads to the shard in which both ends lie.
fn to_itself(setup: &Setup) -> Result<(), String> {
    if !setup.has_rings() {
        return Ok(());
    }
    let (mut operator, _) = start(setup)?;
    operator.ask(WHILE_TENTATIVE)?;
    let own = MACHINE_V6.to_string();
    for address in ["127.0.0.1", "10.0.2.15", "::1", &own] {
        let said = operator.ask(&format!(
            "redis-benchmark -h {address} -k 0 -c 10 -n 500 -t ping_mbulk --csv 2>&1"
        ))?;
        if !said.contains("PING_MBULK") || said.contains("rror") {
            return Err(format!("at {address}: {said}"));
        }
    }
    expect_status(&operator.leave()?, 0)
}

/// A quiet machine leaves both rings to one CPU, one whose first CPU is full does not, and back;
/// connections over both rings live through it, each in order.
fn elastic(setup: &Setup) -> Result<(), String> {
    if !setup.has_rings() || !setup.has_tap() {
        return Ok(());
    }
    for nic in ["virtio", "igb"] {
        elastic_behind(&setup.with_nic(nic)).map_err(|why| format!("{nic}: {why}"))?;
    }
    Ok(())
}

fn elastic_behind(setup: &Setup) -> Result<(), String> {
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let (mut shell, address) =
        Operator::start(setup, PORTS[0], &["--add", REDIS, "--add", &kstat])?;
    shell.ask(&format!(
        "redis-server --port {} --protected-mode no --save '' >/dev/null & \
         busy() {{ grep '^cpu[01]' /proc/stat; kstat -p 'eth0:0:mac_rx_hwlane*:cpu'; }}; \
         runs() {{ until busy | tee /tmp/busy | grep -q \"hwlane1:cpu[^0-9]*$1\\$\"; \
                   do sleep 3; done; cat /tmp/busy; }}",
        PORTS[0]
    ))?;
    shell.guest.expect_answer(address, b"PING\r\n")?;
    let is_over = AtomicBool::new(false);
    let answered = AtomicU64::new(0);
    let served = thread::scope(|scope| {
        let client = || ping_redis(address, &is_over, &answered, BETWEEN_PINGS);
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        let moved = moves(&mut shell, &answered);
        is_over.store(true, Ordering::Relaxed);
        let mut results = clients.into_iter().map(|client| match client.join() {
            Ok(result) => result.map_err(|error| format!("a connection: {error}")),
            Err(_) => Err("a client panicked".into()),
        });
        moved.and_then(|()| results.try_for_each(|result| result))
    });
    served?;
    match counter(&mut shell, "TCPOFOQueue")? {
        0 => expect_status(&shell.leave()?, 0),
        count => Err(format!("{count} segments came out of order")),
    }
}

/// Twice, since what one change leaves behind the next one may meet.
fn moves(shell: &mut Operator, answered: &AtomicU64) -> Result<(), String> {
    let spin = "(while :; do :; done) & one=$!; (while :; do :; done) & two=$!; runs 1";
    for line in [
        "runs 0",
        spin,
        "kill $one $two; runs 0",
        spin,
        "kill $one $two",
    ] {
        let before = answered.load(Ordering::Relaxed);
        shell
            .ask_within(line, MOVE_PATIENCE)
            .map_err(|why| match shell.ask("busy") {
                Ok(said) => format!("{why}: {said}"),
                Err(_) => why,
            })?;
        shell.ask("sleep 1")?;
        if answered.load(Ordering::Relaxed) == before {
            return Err(format!("nobody was answered around `{line}`"));
        }
    }
    Ok(())
}

/// Asks one server by one connection, again and again.
pub fn ping_redis(
    address: SocketAddr,
    is_over: &AtomicBool,
    answered: &AtomicU64,
    pause: Duration,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        if answer != *b"+PONG\r\n" {
            return Err(io::Error::other("another answer"));
        }
        answered.fetch_add(1, Ordering::Relaxed);
        thread::sleep(pause);
    }
    Ok(())
}

fn rings(operator: &mut Operator) -> Result<Vec<Ring>, String> {
    let said = operator.ask("cat /proc/net/rings")?;
    let rings = said.lines().filter_map(|line| {
        let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers.ok()?.as_slice() {
            &[_, received, handed_over, sent, full, fragments] => Some(Ring {
                received,
                handed_over,
                sent,
                dropped: full + fragments,
            }),
            _ => None,
        }
    });
    Ok(rings.collect())
}

/// A counter of /proc/net/netstat, by its name.
pub fn counter(operator: &mut Operator, name: &str) -> Result<u64, String> {
    let said = operator.ask("cat /proc/net/netstat")?;
    let lines: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let found = lines.windows(2).find_map(|pair| {
        let column = pair[0].iter().position(|word| *word == name)?;
        pair[1].get(column)?.parse().ok()
    });
    found.ok_or_else(|| format!("no {name} in {said}"))
}
