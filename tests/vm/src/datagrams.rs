//! Datagrams of both families between this host and Python in a machine: large ones, which
//! go in fragments, and those of groups.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use qemu::namespace::{MACHINE, MACHINE_V6, MACHINE_V6_FLAG, TAP};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Guest, Setup};
use crate::ipv6::run;

/// The tests.
pub const TESTS: &[Test] = &[
    ("datagrams of 8 KiB pass both ways in both families", large),
    ("groups of both families are heard both ways", groups),
];

/// Answers each datagram with itself; `call` makes it speak to two groups. An address cannot
/// be used before it is known that nobody else has it (IFA_F_TENTATIVE, 0x40).
const ECHO: &str = "\
from socket import *
import select, struct, time
while any(int(line.split()[4], 16) & 0x40 for line in open('/proc/net/if_inet6')):
    time.sleep(0.1)
six = socket(AF_INET6, SOCK_DGRAM)
six.bind(('::', 7007))
six.setsockopt(IPPROTO_IPV6, IPV6_JOIN_GROUP,
               inet_pton(AF_INET6, 'ff02::51e7') + struct.pack('I', 2))
four = socket(AF_INET, SOCK_DGRAM)
four.bind(('0.0.0.0', 7008))
four.setsockopt(IPPROTO_IP, IP_ADD_MEMBERSHIP, inet_aton('239.5.1.7') + inet_aton('0.0.0.0'))
print('rea' + 'dy', flush=True)
while True:
    for ready in select.select([six, four], [], [])[0]:
        data, peer = ready.recvfrom(65535)
        if data == b'call':
            six.sendto(b'six', ('ff02::51e8', 7009, 0, 2))
            four.sendto(b'four', ('239.5.1.8', 7010))
        else:
            ready.sendto(data, peer)
";
const PORT: u16 = 7007;
const GROUP_PORT_V4: u16 = 7008;
const LARGE_BYTES: usize = 8192;
/// How often a datagram is sent before it counts as lost for good.
const TRIES: u32 = 20;
const THIS_HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

fn start(setup: &Setup) -> Result<Option<Guest>, String> {
    if !setup.has_tap() {
        return Ok(None);
    }
    let args = ["--ip6", MACHINE_V6_FLAG, "/usr/bin/python3", "-c", ECHO];
    let (guest, _) = setup.serve(PORT, &args)?;
    guest.expect("ready", BOOT_PATIENCE)?;
    Ok(Some(guest))
}

fn socket(name: SocketAddr) -> Result<UdpSocket, String> {
    let text = |error: std::io::Error| format!("{name}: {error}");
    let socket = UdpSocket::bind(name).map_err(text)?;
    socket
        .set_read_timeout(Some(Duration::from_secs(2)))
        .map_err(text)?;
    Ok(socket)
}

fn any(is_v6: bool, port: u16) -> SocketAddr {
    match is_v6 {
        true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
        false => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
    }
}

/// Sends `bytes` until they come to `to`, which may be `from` itself.
fn exchange(
    guest: &Guest,
    bytes: &[u8],
    (from, target): (&UdpSocket, SocketAddr),
    (to, wanted): (&UdpSocket, &[u8]),
) -> Result<SocketAddr, String> {
    let mut got = vec![0; usize::from(u16::MAX)];
    for _ in 0..TRIES {
        from.send_to(bytes, target)
            .map_err(|error| format!("{target}: {error}"))?;
        match to.recv_from(&mut got) {
            Ok((len, peer)) if got[..len] == *wanted => return Ok(peer),
            // A late answer to an earlier try, or none yet.
            Ok(_) | Err(_) => {}
        }
    }
    Err(guest.explain(&format!("left {target} without an answer")))
}

fn large(setup: &Setup) -> Result<(), String> {
    let Some(guest) = start(setup)? else {
        return Ok(());
    };
    let bytes: Vec<u8> = (0..LARGE_BYTES).map(|at| ((at * 7) >> 3) as u8).collect();
    for target in [IpAddr::V6(MACHINE_V6), IpAddr::V4(MACHINE)] {
        let own = socket(any(target.is_ipv6(), 0))?;
        let to = SocketAddr::new(target, PORT);
        exchange(&guest, &bytes, (&own, to), (&own, &bytes))?;
    }
    guest.stop().map(drop)
}

/// The number of the tap interface, which link-local groups are named with.
fn tap_index() -> Result<u32, String> {
    let path = "/proc/net/if_inet6";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find(|line| line.ends_with(TAP));
    let word = line.and_then(|line| line.split(' ').nth(1));
    let index = word.and_then(|word| u32::from_str_radix(word, 16).ok());
    index.ok_or_else(|| format!("no {TAP} in {text}"))
}

fn groups(setup: &Setup) -> Result<(), String> {
    let Some(guest) = start(setup)? else {
        return Ok(());
    };
    run("ip", &["route", "replace", "239.0.0.0/8", "dev", TAP])?;
    let index = tap_index()?;
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x51e7);
    let six = SocketAddrV6::new(group, PORT, 0, index);
    let four = SocketAddr::new(Ipv4Addr::new(239, 5, 1, 7).into(), GROUP_PORT_V4);
    for target in [six.into(), four] {
        let own = socket(any(target.is_ipv6(), 0))?;
        let peer = exchange(&guest, b"hello", (&own, target), (&own, b"hello"))?;
        if peer.ip().is_multicast() {
            return Err(format!("{peer} answers, which is nobody's own address"));
        }
    }
    let text = |error: std::io::Error| error.to_string();
    let heard_six = socket(any(true, 7009))?;
    let spoken = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x51e8);
    heard_six.join_multicast_v6(&spoken, index).map_err(text)?;
    let heard_four = socket(any(false, 7010))?;
    let spoken = Ipv4Addr::new(239, 5, 1, 8);
    heard_four
        .join_multicast_v4(&spoken, &THIS_HOST)
        .map_err(text)?;
    let own = socket(any(false, 0))?;
    let machine = SocketAddr::new(MACHINE.into(), PORT);
    exchange(&guest, b"call", (&own, machine), (&heard_six, b"six"))?;
    exchange(&guest, b"call", (&own, machine), (&heard_four, b"four"))?;
    guest.stop().map(drop)
}
