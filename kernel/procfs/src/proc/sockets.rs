//! /proc/net: lists of sockets that are not the internet's (proc_pid_net(5)).

use alloc::boxed::Box;
use core::fmt::{Result, Write};

use sockets::{UnixFacts, UnixState, next_unix_socket};
use sync::Error;
use vfs::pseudo::{Entry, Special, Text, TextFile};
use vfs::socket::{SocketType, UnixAddress};
use vfs::{InodeRef, Metadata};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[Entry::new("net/netlink", netlink)];

/// The list of Unix sockets, which is as long as there are some.
pub const SPECIALS: &[Special] = &[Special::in_pieces("net/unix", unix)];

fn netlink(text: &mut Text) -> Result {
    text.push_str("sk               Eth Pid        Groups   Rmem     Wmem     ");
    writeln!(text, "Dump  Locks    Drops    Inode")?;
    for socket in kernel_netlink::list(&net::current_stack()) {
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

fn unix(metadata: Metadata, _: usize) -> InodeRef {
    TextFile::in_pieces(
        metadata,
        Box::new(|cursor, text| unix_piece(cursor, text).map_err(|_| Error::Io)),
    )
}

/// The heading, and the sockets behind the one whose number is the cursor.
fn unix_piece(cursor: u64, text: &mut Text) -> core::result::Result<Option<u64>, core::fmt::Error> {
    if cursor == 0 {
        writeln!(
            text,
            "Num       RefCount Protocol Flags    Type St Inode Path"
        )?;
    }
    let mut last = cursor;
    while let Some(socket) = next_unix_socket(last) {
        if text.is_piece() {
            return Ok(Some(last));
        }
        last = socket.number;
        unix_socket(&socket, text)?;
    }
    Ok(None)
}

/// The state is that of a socket's life (`SS_*`), not of a connection.
fn unix_socket(socket: &UnixFacts, text: &mut Text) -> Result {
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
