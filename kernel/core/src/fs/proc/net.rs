//! /proc/net: what tools like netstat and ss read (proc_pid_net(5)).
//!
//! Numbers are those of the whole stack.

use alloc::string::String;
use core::fmt::{Result, Write};
use core::net::IpAddr;

use base::PAGE_BYTES;
use inet::{Cidr, NeighborState};

use crate::fs::pseudo::Entry;
use crate::net;
use crate::net::plan::{self, RouteKind};
use crate::socket::Held;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/arp", arp),
    Entry::new("net/dev", dev),
    Entry::new("net/route", route),
    Entry::new("net/sockstat", sockstat),
    Entry::new("net/tcp_events", super::tcp_events::generate),
];

fn dev(text: &mut String) -> Result {
    let heads = "bytes    packets errs drop fifo frame compressed multicast";
    writeln!(
        text,
        "Inter-|   Receive                                                |  Transmit"
    )?;
    writeln!(
        text,
        " face |{heads}|bytes    packets errs drop fifo colls carrier compressed"
    )?;
    for interface in net::interfaces() {
        let of = interface.traffic();
        write!(
            text,
            "{:>6}: {:7} {:7}    0    0    0     0          0         0 ",
            interface.name, of.bytes_in, of.frames_in
        )?;
        writeln!(
            text,
            "{:7} {:7}    0    0    0     0       0          0",
            of.bytes_out, of.frames_out
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

fn arp(text: &mut String) -> Result {
    text.push_str("IP address       HW type     Flags       HW address");
    writeln!(text, "            Mask     Device")?;
    let all = plan::neighbours();
    let known = all.iter().filter(|one| one.ip.is_ipv4());
    for (one, mac) in known.filter_map(|one| Some((one, one.mac?))) {
        let station = mac.map(|byte| alloc::format!("{byte:02x}")).join(":");
        let ip = alloc::format!("{}", one.ip);
        let flags = match one.state {
            NeighborState::Permanent => COMPLETE | PERMANENT,
            _ => COMPLETE,
        };
        writeln!(
            text,
            "{ip:<16} 0x1         0x{flags:x}         {station}     *        eth0"
        )?;
    }
    Ok(())
}

/// The main table's routes of IPv4.
fn route(text: &mut String) -> Result {
    text.push_str("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\t");
    writeln!(text, "MTU\tWindow\tIRTT")?;
    let number = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u32::from_ne_bytes(ip.octets()),
        IpAddr::V6(_) => 0,
    };
    for route in plan::routes() {
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

/// Packet buffers in use count as TCP's, those included that wait in the device.
fn sockstat(text: &mut String) -> Result {
    let counts = net::with_stack(|stack, _| {
        let connections = stack.connections();
        let tcp = connections.filter(|entry| entry.socket.is_some()).count();
        (
            tcp,
            stack.sockets_used() - tcp,
            stack.orphans(),
            stack.time_waits(),
        )
    });
    let (tcp, udp, orphans, waiting) = counts.unwrap_or_default();
    let pages = (net::packets_in_use() * mbuf::BLOCK_BYTES).div_ceil(PAGE_BYTES);
    let alive = tcp - orphans.min(tcp);
    writeln!(text, "sockets: used {}", Held::count())?;
    writeln!(
        text,
        "TCP: inuse {alive} orphan {orphans} tw {waiting} alloc {tcp} mem {pages}"
    )?;
    writeln!(text, "UDP: inuse {udp} mem 0")
}
