//! /proc/net: what tools like netstat and ss read (proc_pid_net(5)).
//!
//! Numbers are those of all shards together.

use core::fmt::{Result, Write};
use core::net::IpAddr;

use base::PAGE_BYTES;
use inet::Cidr;

use vfs::pseudo::{Entry, Text};

use net::plan::{self, RouteKind};
use sockets::Held;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/arp", arp),
    Entry::new("net/dev", dev),
    Entry::new("net/rings", rings),
    Entry::new("net/route", route),
    Entry::new("net/packet_buffers", buffers),
    Entry::new("net/sockstat", sockstat),
    Entry::new("net/tcp_events", super::tcp_events::generate),
];

fn dev(text: &mut Text) -> Result {
    let heads = "bytes    packets errs drop fifo frame compressed multicast";
    writeln!(
        text,
        "Inter-|   Receive                                                |  Transmit"
    )?;
    writeln!(
        text,
        " face |{heads}|bytes    packets errs drop fifo colls carrier compressed"
    )?;
    for interface in net::current_stack().interfaces() {
        let of = net::current_stack().traffic(&interface);
        write!(
            text,
            "{:>6}: {:7} {:7}    0 {:4}    0     0          0         0 ",
            interface.name, of.bytes_in, of.frames_in, of.dropped_in
        )?;
        writeln!(
            text,
            "{:7} {:7}    0 {:4}    0     0       0          0",
            of.bytes_out, of.frames_out, of.dropped_out
        )?;
    }
    Ok(())
}

/// `ATF_*` of a neighbour.
const COMPLETE: u32 = 0x2;
const PERMANENT: u32 = 0x4;

/// `RTF_*` of a route.
const UP: u32 = 0x1;
const GATEWAY: u32 = 0x2;
const REJECT: u32 = 0x200;

fn arp(text: &mut Text) -> Result {
    text.push_str("IP address       HW type     Flags       HW address");
    writeln!(text, "            Mask     Device")?;
    let all = plan::neighbours(&net::current_stack());
    let known = all.iter().filter(|one| one.ip.is_ipv4());
    for (one, mac) in known.filter_map(|one| Some((one, one.mac?))) {
        let station = mac.map(|byte| alloc::format!("{byte:02x}")).join(":");
        let ip = alloc::format!("{}", one.ip);
        let flags = match one.is_permanent() {
            true => COMPLETE | PERMANENT,
            false => COMPLETE,
        };
        writeln!(
            text,
            "{ip:<16} 0x1         0x{flags:x}         {station}     *        eth0"
        )?;
    }
    Ok(())
}

/// The main table's routes of IPv4.
fn route(text: &mut Text) -> Result {
    text.push_str("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\t");
    writeln!(text, "MTU\tWindow\tIRTT")?;
    let number = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u32::from_ne_bytes(ip.octets()),
        IpAddr::V6(_) => 0,
    };
    for route in plan::routes(&net::current_stack()) {
        let IpAddr::V4(first) = route.destination else {
            continue;
        };
        let mask = Cidr::new(first, route.prefix_len).map_or(0, |cidr| number(cidr.mask().into()));
        let flags = match (route.kind, route.gateway) {
            (RouteKind::Unicast, None) => UP,
            (RouteKind::Unicast, Some(_)) => UP | GATEWAY,
            (RouteKind::Unreachable, _) => UP | REJECT,
            (RouteKind::Local | RouteKind::Broadcast, _) => continue,
        };
        writeln!(
            text,
            "eth0\t{:08X}\t{:08X}\t{flags:04X}\t0\t0\t{}\t{mask:08X}\t0\t0\t0",
            number(route.destination),
            route.gateway.map_or(0, number),
            route.metric
        )?;
    }
    Ok(())
}

/// Ours alone: what each pair of queues of the card did, one line each.
fn rings(text: &mut Text) -> Result {
    writeln!(
        text,
        "ring received handed_over sent soft_ring_full tcp_fragments"
    )?;
    for (ring, counted) in net::ring_counters().iter().enumerate() {
        writeln!(
            text,
            "{ring} {} {} {} {} {}",
            counted.received,
            counted.handed_over,
            counted.sent,
            counted.soft_ring_full,
            counted.tcp_fragments
        )?;
    }
    writeln!(text, "exceptions_dropped {}", net::exceptions_dropped())
}

/// What packet memory the sockets of each protocol hold is theirs; buffers in the device and in
/// flight are nobody's (`buffers`).
fn sockstat(text: &mut Text) -> Result {
    let counts = net::current_stack().each_shard(|stack| {
        let connections = stack.connections();
        let tcp = connections.filter(|entry| entry.socket.is_some()).count();
        [
            tcp,
            stack.sockets_used() - tcp,
            stack.orphans(),
            stack.time_waits(),
            stack.tcp_memory(),
            stack.udp_memory(),
        ]
    });
    let sum = |a: [usize; 6], b: [usize; 6]| core::array::from_fn(|at| a[at] + b[at]);
    let [tcp, udp, orphans, waiting, held, held_udp] = counts.into_iter().fold([0; 6], sum);
    let [pages, pages_udp] = [held, held_udp].map(|bytes| bytes.div_ceil(PAGE_BYTES));
    let alive = tcp - orphans.min(tcp);
    writeln!(text, "sockets: used {}", Held::count())?;
    writeln!(
        text,
        "TCP: inuse {alive} orphan {orphans} tw {waiting} alloc {tcp} mem {pages}"
    )?;
    writeln!(text, "UDP: inuse {udp} mem {pages_udp}")
}

/// Ours alone: packet buffers of the whole machine.
fn buffers(text: &mut Text) -> Result {
    let all = net::packet_buffers();
    writeln!(text, "limit {}", all.limit)?;
    writeln!(text, "total {}", all.total)?;
    writeln!(text, "in_use {}", all.total.saturating_sub(all.free))?;
    writeln!(text, "reserve {}", all.reserve)?;
    writeln!(text, "block_bytes {}", mbuf::BLOCK_BYTES)
}
