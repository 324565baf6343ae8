//! /proc/net: what tools like netstat and ss read (proc_pid_net(5)).
//!
//! Numbers are those of the whole stack.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Result, Write};
use core::net::Ipv4Addr;

use crate::fs::pseudo::Entry;
use crate::net;
use crate::socket::Held;
use base::PAGE_BYTES;

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

fn arp(text: &mut String) -> Result {
    text.push_str("IP address       HW type     Flags       HW address");
    writeln!(text, "            Mask     Device")?;
    let known = net::with_stack(|stack, _| stack.neighbors().collect::<Vec<_>>());
    for (ip, mac) in known.unwrap_or_default() {
        let station = mac.0.map(|byte| alloc::format!("{byte:02x}")).join(":");
        let ip = alloc::format!("{ip}");
        writeln!(
            text,
            "{ip:<16} 0x1         0x2         {station}     *        eth0"
        )?;
    }
    Ok(())
}

fn route(text: &mut String) -> Result {
    text.push_str("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\t");
    writeln!(text, "MTU\tWindow\tIRTT")?;
    let number = |addr: Ipv4Addr| u32::from_ne_bytes(addr.octets());
    let way = net::with_stack(|stack, _| (stack.address(), stack.gateway()));
    let (address, gateway) = way.unwrap_or_default();
    if let Some(gateway) = gateway {
        writeln!(
            text,
            "eth0\t00000000\t{:08X}\t0003\t0\t0\t0\t00000000\t0\t0\t0",
            number(gateway)
        )?;
    }
    if let Some(address) = address {
        let mask = number(address.mask());
        let network = number(address.addr()) & mask;
        writeln!(
            text,
            "eth0\t{network:08X}\t00000000\t0001\t0\t0\t0\t{mask:08X}\t0\t0\t0"
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
