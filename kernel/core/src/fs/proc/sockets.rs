//! /proc/net: lists of sockets that are not TCP's (proc_pid_net(5)).

use alloc::string::String;
use core::fmt::{Result, Write};
use core::net::SocketAddr;

use inet::{Endpoint, Transport};

use super::net::{endpoint, heading};
use crate::fs::pseudo::Entry;
use crate::net;
use crate::socket::{SocketType, UnixAddress};
use crate::unix::{UnixFacts, UnixState, next_socket};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/netlink", netlink),
    Entry::new("net/raw6", raw6),
    Entry::new("net/sockstat6", sockstat6),
    Entry::new("net/udp", udp),
    Entry::new("net/unix", unix),
];

fn netlink(text: &mut String) -> Result {
    text.push_str("sk               Eth Pid        Groups   Rmem     Wmem     ");
    writeln!(text, "Dump  Locks    Drops    Inode")?;
    for socket in crate::netlink::list() {
        writeln!(
            text,
            "{:016x} {:<3} {:<10} {:08x} {:<8} 0        {:<5} 2        {:<8} {:<8}",
            0,
            socket.protocol as u8,
            socket.port,
            socket.groups as u32,
            socket.queued_bytes,
            u8::from(socket.has_dump),
            socket.dropped,
            socket.inode
        )?;
    }
    Ok(())
}

/// There are none.
fn raw6(text: &mut String) -> Result {
    text.push_str("  sl  local_address                         remote_address");
    writeln!(
        text,
        "                        st tx_queue rx_queue tr tm->when retrnsmt"
    )
}

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

fn udp(text: &mut String) -> Result {
    heading(text)?;
    let sockets = net::Sockets::from(net::Position::START).map(|(_, socket)| socket);
    let datagram = sockets.filter(|socket| socket.transport == Transport::Udp);
    (0..).zip(datagram).try_for_each(|(row, socket)| {
        let end = |name: SocketAddr| Endpoint::new(name.ip(), name.port());
        write!(text, "{row:5}: ")?;
        endpoint(&end(socket.local), text)?;
        text.push(' ');
        endpoint(&end(socket.remote), text)?;
        write!(text, " {:02X} 00000000:{:08X}", socket.state, socket.unread)?;
        text.push_str(" 00:00000000 00000000     0        0 ");
        writeln!(text, "{} 2 0000000000000000 0", socket.number)
    })
}

fn unix(text: &mut String) -> Result {
    writeln!(
        text,
        "Num       RefCount Protocol Flags    Type St Inode Path"
    )?;
    let mut last = 0;
    while let Some(socket) = next_socket(last) {
        last = socket.number;
        unix_socket(&socket, text)?;
    }
    Ok(())
}

/// The state is that of a socket's life (`SS_*`), not of a connection.
fn unix_socket(socket: &UnixFacts, text: &mut String) -> Result {
    let (flags, state) = match socket.state {
        UnixState::Listening => (0x1_0000, 1),
        UnixState::Unconnected => (0, 1),
        UnixState::Connected => (0, 3),
    };
    let kind = match socket.kind {
        SocketType::Stream => 1,
        SocketType::Datagram => 2,
        SocketType::Raw => 3,
        SocketType::SeqPacket => 5,
    };
    write!(
        text,
        "{:016x}: 00000002 00000000 {flags:08X} {kind:04X} {state:02X} {:5}",
        0, socket.number
    )?;
    match &socket.name {
        UnixAddress::Unnamed => {}
        UnixAddress::Path(path) => write!(text, " {}", path.escape_ascii())?,
        UnixAddress::Abstract(name) => write!(text, " @{}", name.escape_ascii())?,
    }
    writeln!(text)
}
