//! /proc/net/tcp and its kin: the sockets of each protocol (proc_pid_net(5)).
//!
//! Names decide on the list: a connection of IPv4 through a socket of IPv6 stands with
//! IPv4's.

use alloc::string::String;
use core::fmt::{Result, Write};
use core::net::IpAddr;

use inet::Transport;

use crate::fs::pseudo::Entry;
use crate::net;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/raw", |text| heading(text, "")),
    Entry::new("net/raw6", |text| heading6(text, "")),
    Entry::new("net/sockstat6", sockstat6),
    Entry::new("net/tcp", tcp),
    Entry::new("net/tcp6", tcp6),
    Entry::new("net/udp", udp),
    Entry::new("net/udp6", udp6),
];

/// The columns that every list of sockets has.
fn heading(text: &mut String, more: &str) -> Result {
    text.push_str("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt");
    writeln!(text, "   uid  timeout inode{more}")
}

fn heading6(text: &mut String, more: &str) -> Result {
    text.push_str("  sl  local_address                         remote_address");
    text.push_str("                        st tx_queue rx_queue tr tm->when retrnsmt");
    writeln!(text, "   uid  timeout inode{more}")
}

/// What datagram sockets have in addition.
const DATAGRAM_COLUMNS: &str = " ref pointer drops";

fn sockstat6(text: &mut String) -> Result {
    let sockets = net::Sockets::from(net::Position::START).map(|(_, socket)| socket);
    let [mut tcp, mut udp] = [0, 0];
    for socket in sockets.filter(|socket| socket.local.is_ipv6()) {
        match socket.transport {
            Transport::Tcp => tcp += 1,
            Transport::Udp => udp += 1,
        }
    }
    writeln!(
        text,
        "TCP6: inuse {tcp}\nUDP6: inuse {udp}\nUDPLITE6: inuse 0"
    )?;
    writeln!(text, "RAW6: inuse 0\nFRAG6: inuse 0 memory 0")
}

fn tcp(text: &mut String) -> Result {
    heading(text, "")?;
    list(text, Transport::Tcp, false)
}

fn tcp6(text: &mut String) -> Result {
    heading6(text, "")?;
    list(text, Transport::Tcp, true)
}

fn udp(text: &mut String) -> Result {
    heading(text, DATAGRAM_COLUMNS)?;
    list(text, Transport::Udp, false)
}

fn udp6(text: &mut String) -> Result {
    heading6(text, DATAGRAM_COLUMNS)?;
    list(text, Transport::Udp, true)
}

fn list(text: &mut String, transport: Transport, is_v6: bool) -> Result {
    let sockets = net::Sockets::from(net::Position::START).map(|(_, socket)| socket);
    let wanted =
        sockets.filter(|socket| socket.transport == transport && socket.local.is_ipv6() == is_v6);
    (0..)
        .zip(wanted)
        .try_for_each(|(row, socket)| line(text, row, &socket))
}

fn line(text: &mut String, row: usize, socket: &net::InetSocket) -> Result {
    write!(text, "{row:4}: ")?;
    for end in [socket.local, socket.remote] {
        address(text, end.ip())?;
        write!(text, ":{:04X} ", end.port())?;
    }
    write!(
        text,
        "{:02X} {:08X}:{:08X} 00:00000000 00000000     0        0 {} ",
        socket.state, socket.unacked, socket.unread, socket.number
    )?;
    text.push_str(match socket.transport {
        Transport::Tcp => "1 0000000000000000 20 4 30 10 -1\n",
        Transport::Udp => "2 0000000000000000 0\n",
    });
    Ok(())
}

/// An address as the hexadecimal numbers that it is in memory.
fn address(text: &mut String, ip: IpAddr) -> Result {
    let mut words = |bytes: &[u8]| {
        let words = bytes.as_chunks::<4>().0;
        words
            .iter()
            .try_for_each(|word| write!(text, "{:08X}", u32::from_ne_bytes(*word)))
    };
    match ip {
        IpAddr::V4(ip) => words(&ip.octets()),
        IpAddr::V6(ip) => words(&ip.octets()),
    }
}
