//! Flows over rings, behind each card that has several: which ring a flow has, and its order.

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

use qemu::namespace::MACHINE;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::link_counts::kstat;
use crate::links::{PORT, operator_with};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[(
    "a hash without ports leads all flows of two hosts to one CPU, in order (link layer)",
    without_ports,
)];

const RECEIVER: &str = "tests/programs/scenes/in_order.c";
const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
const REDIS_PORT: u16 = 6379;
const FLOWS: u32 = 32;
const OF_EACH: u32 = 50;
/// Other frames that a CPU gets meanwhile.
const OTHERS_MAX: u64 = 100;
/// Each is three frames at least.
const CONNECTIONS: usize = 64;

/// Section 1, check 8. The hash has TCP's ports and not UDP's, whose fragments have none: so flows
/// of UDP between two hosts spread worse than those of TCP, and keep their order as well.
fn without_ports(setup: &Setup) -> Result<(), String> {
    if !setup.has_rings() || !setup.has_tap() {
        return Ok(());
    }
    ["virtio", "igb"].iter().try_for_each(|nic| {
        let done = without_ports_behind(&setup.with_nic(nic));
        done.map_err(|why| format!("{nic}: {why}"))
    })
}

fn without_ports_behind(setup: &Setup) -> Result<(), String> {
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let receiver = build::c(Path::new(RECEIVER))?;
    let receiver = format!("{}:/bin/in_order", receiver.display());
    let flags = ["--add", &kstat, "--add", &receiver, "--add", REDIS];
    let mut shell = operator_with(setup, &flags)?;
    shell.ask(&format!(
        "in_order {PORT} >/tmp/said & until grep -q listening /tmp/said; do sleep 0.1; done; \
         redis-server --port {REDIS_PORT} --protected-mode no --save '' >/dev/null &"
    ))?;
    let server = SocketAddr::from((MACHINE, REDIS_PORT));
    shell.guest.expect_answer(server, b"PING\r\n")?;

    let before = taken(&mut shell)?;
    send_flows().map_err(|error| error.to_string())?;
    let said = shell.ask("until grep -q late /tmp/said; do sleep 0.1; done; cat /tmp/said")?;
    let of_udp = differences(before, taken(&mut shell)?);
    let came = said
        .split_whitespace()
        .filter_map(|word| word.parse::<u64>().ok());
    let is_right = match came.collect::<Vec<_>>()[..] {
        [came, late] => came > u64::from(FLOWS * OF_EACH) / 2 && late == 0,
        _ => false,
    };
    let [least, most] = of_udp;
    if !is_right || least > OTHERS_MAX || most < u64::from(FLOWS * OF_EACH) / 2 {
        return Err(format!("CPUs took {of_udp:?} frames: {said}"));
    }

    let before = taken(&mut shell)?;
    for _ in 0..CONNECTIONS {
        TcpStream::connect(server).map_err(|error| error.to_string())?;
    }
    let of_tcp = differences(before, taken(&mut shell)?);
    match of_tcp[0] >= CONNECTIONS as u64 / 2 {
        true => shell.leave().map(drop),
        false => Err(format!("CPUs took {of_tcp:?} frames of TCP")),
    }
}

/// Frames for each of two CPUs.
fn taken(shell: &mut Operator) -> Result<[u64; 2], String> {
    let of = |shell: &mut Operator, cpu| {
        kstat(
            shell,
            &format!("eth0:0:mac_rx_hwlane*_fanout{cpu}:ipackets"),
        )
    };
    Ok([of(shell, 0)?, of(shell, 1)?])
}

/// In their order by size.
fn differences(before: [u64; 2], after: [u64; 2]) -> [u64; 2] {
    let mut grown = [after[0] - before[0], after[1] - before[1]];
    grown.sort_unstable();
    grown
}

/// Datagrams of all flows in turn, each from a port of its own, in bursts that the host's queue holds.
fn send_flows() -> std::io::Result<()> {
    let sockets = (0..FLOWS).map(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)));
    let sockets = sockets.collect::<std::io::Result<Vec<_>>>()?;
    let send = |socket: &UdpSocket, flow: u32, number: u32| {
        let bytes = [flow.to_be_bytes(), number.to_be_bytes()].concat();
        socket.send_to(&bytes, (MACHINE, PORT)).map(drop)
    };
    for number in 1..=OF_EACH {
        for (flow, socket) in (1..).zip(&sockets) {
            send(socket, flow, number)?;
        }
        thread::sleep(Duration::from_millis(10));
    }
    // The end, more than once: it may be lost.
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(100));
        sockets
            .first()
            .map_or(Ok(()), |socket| send(socket, 0, 0))?;
    }
    Ok(())
}
