//! /proc/net/tcp and its kin: the sockets of each protocol (proc_pid_net(5)).
//!
//! Names decide on the list: a connection of IPv4 through a socket of IPv6 stands with
//! IPv4's.

use alloc::boxed::Box;
use core::fmt::{Result, Write};
use core::net::IpAddr;

use inet::Transport;
use sync::Error;

use inet_sockets::{InetSocket, Position};
use vfs::pseudo::{Entry, Special, Text, TextFile};
use vfs::{InodeRef, Metadata};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/raw", |text| heading(text, "")),
    Entry::new("net/raw6", |text| heading6(text, "")),
    Entry::new("net/sockstat6", sockstat6),
];

/// The lists, which are as long as there are sockets.
pub const SPECIALS: &[Special] = &[
    Special::in_pieces("net/tcp", tcp),
    Special::in_pieces("net/tcp6", tcp6),
    Special::in_pieces("net/udp", udp),
    Special::in_pieces("net/udp6", udp6),
];

/// The columns that every list of sockets has.
fn heading(text: &mut Text, more: &str) -> Result {
    text.push_str("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt");
    writeln!(text, "   uid  timeout inode{more}")
}

fn heading6(text: &mut Text, more: &str) -> Result {
    text.push_str("  sl  local_address                         remote_address");
    text.push_str("                        st tx_queue rx_queue tr tm->when retrnsmt");
    writeln!(text, "   uid  timeout inode{more}")
}

/// What datagram sockets have in addition.
const DATAGRAM_COLUMNS: &str = " ref pointer drops";

fn sockstat6(text: &mut Text) -> Result {
    let sockets = inet_sockets::Sockets::from(net::current_stack(), inet_sockets::Position::START)
        .map(|(_, socket)| socket);
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

fn tcp(metadata: Metadata, _: usize) -> InodeRef {
    list(metadata, Transport::Tcp, false)
}

fn tcp6(metadata: Metadata, _: usize) -> InodeRef {
    list(metadata, Transport::Tcp, true)
}

fn udp(metadata: Metadata, _: usize) -> InodeRef {
    list(metadata, Transport::Udp, false)
}

fn udp6(metadata: Metadata, _: usize) -> InodeRef {
    list(metadata, Transport::Udp, true)
}

fn list(metadata: Metadata, transport: Transport, is_v6: bool) -> InodeRef {
    let generate =
        move |cursor, text: &mut Text| piece(cursor, text, transport, is_v6).map_err(|_| Error::Io);
    TextFile::in_pieces(metadata, Box::new(generate))
}

/// The heading, and the sockets from the cursor on.
fn piece(
    cursor: u64,
    text: &mut Text,
    transport: Transport,
    is_v6: bool,
) -> core::result::Result<Option<u64>, core::fmt::Error> {
    let (start, mut row) = parse(cursor);
    let more = match transport {
        Transport::Tcp => "",
        Transport::Udp => DATAGRAM_COLUMNS,
    };
    match is_v6 {
        _ if cursor != 0 => {}
        false => heading(text, more)?,
        true => heading6(text, more)?,
    }
    let is_wanted =
        |socket: &InetSocket| socket.transport == transport && socket.local.is_ipv6() == is_v6;
    for (position, socket) in inet_sockets::Sockets::from(net::current_stack(), start)
        .filter(|(_, socket)| is_wanted(socket))
    {
        if text.is_piece() {
            return Ok(Some(cursor_of(position, row)));
        }
        line(text, row, &socket)?;
        row += 1;
    }
    Ok(None)
}

/// A cursor: whether it is among those in TIME_WAIT, the shard, the place there, and how many
/// rows stand before it. It is 0 only at the start. Rows of programs' tables stand as waiting in a shard that is none, the
/// table and the row in its place.
const ROW_BITS: u32 = 28;
const PLACE_BITS: u32 = 26;
const SHARD_BITS: u32 = 9;
const WAITING: u64 = 1 << (ROW_BITS + PLACE_BITS + SHARD_BITS);
const PROGRAMS: u16 = (1 << SHARD_BITS) - 1;
const TABLE_ROW_BITS: u32 = 16;

fn cursor_of(position: Position, row: u64) -> u64 {
    let (waiting, shard, place) = match position {
        Position::Slot(shard, slot) => (0, shard, slot),
        Position::Waiting(shard, skipped) => (WAITING, shard, skipped),
        Position::Program(table, row) => {
            let place = usize::from(table) << TABLE_ROW_BITS | row;
            (WAITING, PROGRAMS, place)
        }
        Position::End => return u64::MAX,
    };
    let place = (place as u64).min((1 << PLACE_BITS) - 1);
    waiting | u64::from(shard) << (ROW_BITS + PLACE_BITS) | place << ROW_BITS | row
}

fn parse(cursor: u64) -> (Position, u64) {
    let part = |shift: u32, bits: u32| cursor >> shift & ((1 << bits) - 1);
    let shard = part(ROW_BITS + PLACE_BITS, SHARD_BITS) as u16;
    let place = part(ROW_BITS, PLACE_BITS) as usize;
    let position = match cursor & WAITING {
        0 => Position::Slot(shard, place),
        _ if shard == PROGRAMS => {
            let row = place & ((1 << TABLE_ROW_BITS) - 1);
            Position::Program((place >> TABLE_ROW_BITS) as u16, row)
        }
        _ => Position::Waiting(shard, place),
    };
    (position, part(0, ROW_BITS))
}

fn line(text: &mut Text, row: u64, socket: &InetSocket) -> Result {
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
fn address(text: &mut Text, ip: IpAddr) -> Result {
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
