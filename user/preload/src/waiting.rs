//! What waits in a socket that goes over to the kernel's stack (`hand_over`): datagrams to be read, peers to be accepted.
//!
//! The kernel's socket has the frames already, so nothing more comes here. A *datagram* is sent to the kernel's socket once more, by a
//! raw socket and under its sender's name: it does not leave the machine, and takes its place in the queue. A *peer* becomes a
//! connection of the kernel's on a socket of its own (`repair`), which that listener then has in its queue (TCP_REPAIR,
//! `docs/tcp-repair.md`). Who is in the middle of a handshake may finish it first, for a moment.
//!
//! Datagrams that come meanwhile may be read before those that waited.
//!
//! Not here: what cannot be passed on is lost, as a wire may lose a datagram, or refused, and a sentence says so once.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use posix::{
    Endpoint, Errno, Host, Open, Portable, Result, TcpSnapshot, Transport, WaitingDatagram,
};

use crate::answer;
use crate::config;
use crate::next;
use crate::repair;
use crate::state::{self, Port};

/// How long peers may take to finish their handshakes, and how often it is looked.
const HANDSHAKES_MAX: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(1);
/// Bytes of an IPv4 header without options, and of UDP's.
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;

/// Passes on what waits, to the kernel's socket `number`.
pub fn pass(host: &mut Host<Port>, (open, number): (&Open, c_int), portable: &Portable) {
    let passed = match (portable, open.transport()) {
        (Portable::Listening(..), _) => pass_peers(host, open),
        (Portable::Named(local) | Portable::Datagrams(local, _), Transport::Udp) => {
            pass_datagrams(local.port, &host.take_waiting_datagrams(open))
        }
        _ => Ok(()),
    };
    if let Err(error) = passed {
        complain(number, error);
    }
}

fn complain(number: c_int, error: Errno) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Relaxed) {
        let why = std::io::Error::from_raw_os_error(error.number());
        eprintln!(
            "libsietch: what waited in socket {number} is lost on its way to the kernel's stack: {why}."
        );
    }
}

fn pass_peers(host: &mut Host<Port>, open: &Open) -> Result<()> {
    finish_handshakes(host);
    for (local, peer) in host.waiting_ends(open)? {
        let moved = host.link().move_flow_to_stack(local, peer);
        moved.map_err(|_| Errno::NO_BUFFERS)?;
    }
    host.look_at_all(state::now());
    let options = host.portable_options(open);
    let mut passed = Ok(());
    for peer in host.take_waiting_connections(open) {
        let given = socket(libc::SOCK_STREAM, 0).and_then(|socket| {
            for (level, name, value) in &options {
                repair::set(socket.as_raw_fd(), *level, *name, value).ok();
            }
            give(socket.as_raw_fd(), &peer)
        });
        passed = passed.and(given);
    }
    passed
}

/// Makes the connection on a socket of the kernel's, and gives it to the listener.
fn give(number: c_int, peer: &TcpSnapshot) -> Result<()> {
    repair::restore(number, peer)?;
    repair::go_on(number, peer)?;
    repair::catch_up(number, peer)?;
    repair::give_to_listener(number)
}

/// Nobody new comes; who has our answer may still send the last word.
pub fn finish_handshakes(host: &mut Host<Port>) {
    let mut waited = Duration::ZERO;
    while host.half_open() != 0 && waited < HANDSHAKES_MAX {
        thread::sleep(LOOK);
        waited += LOOK;
        host.look_at_all(state::now());
    }
}

fn pass_datagrams(port: u16, waiting: &[WaitingDatagram]) -> Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    let host = config::get().ok_or(Errno::NETWORK_DOWN)?.address.host();
    let own = SocketAddrV4::new(host, port);
    let raw = socket(libc::SOCK_RAW, libc::IPPROTO_RAW)?;
    let (level, name) = (libc::IPPROTO_IP, libc::IP_HDRINCL);
    repair::set(raw.as_raw_fd(), level, name, &1_i32.to_ne_bytes())?;
    let to = repair::name_of(Endpoint::v4(host, port));
    let len = size_of_val(&to) as libc::socklen_t;
    for datagram in waiting {
        let packet = packet(datagram, own);
        let (at, bytes) = (packet.as_ptr().cast(), packet.len());
        // SAFETY: so many bytes are there, and a name of that size.
        let sent = unsafe {
            next::sendto.get()(raw.as_raw_fd(), at, bytes, 0, (&raw const to).cast(), len)
        };
        if sent < 0 {
            return Err(Errno::from_number(answer::errno()));
        }
    }
    Ok(())
}

/// The datagram with its headers (RFC 791, RFC 768), for our own address. The kernel fills in IPv4's length and checksum, and UDP's is
/// left out.
fn packet(datagram: &WaitingDatagram, own: SocketAddrV4) -> Vec<u8> {
    let IpAddr::V4(from) = datagram.from.addr.to_canonical() else {
        return Vec::new();
    };
    let mut packet = vec![0; IP_BYTES];
    packet[0] = 0x45;
    packet[1] = datagram.tos;
    packet[8] = datagram.hop_limit;
    packet[9] = libc::IPPROTO_UDP as u8;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&own.ip().octets());
    let len = (UDP_BYTES + datagram.bytes.len()) as u16;
    let words = [datagram.from.port, own.port(), len, 0];
    packet.extend(words.map(u16::to_be_bytes).as_flattened());
    packet.extend(&datagram.bytes);
    packet
}

/// A socket of the kernel's, which no program sees.
fn socket(kind: c_int, protocol: c_int) -> Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let number = unsafe { next::socket.get()(libc::AF_INET, kind | libc::SOCK_CLOEXEC, protocol) };
    match number {
        0.. => {
            // SAFETY: it is nobody else's.
            Ok(unsafe { OwnedFd::from_raw_fd(number) })
        }
        _ => Err(Errno::from_number(answer::errno())),
    }
}
