//! An AF_XDP socket that is bound to a link.

use std::io;
use std::net::SocketAddrV4;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XdpMmapOffsets, XdpRingOffset, XdpStatistics, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with};
use xdp::{Entry, Geometry, offset};

use crate::exchange::{Exchange, Rings};
use crate::filter::Filter;
use crate::ring::RingMemory;
use crate::umem::{CHUNK_BYTES, Umem};

/// Where mmap(2) finds the rings (XDP_PGOFF_*, XDP_UMEM_PGOFF_*).
const RX_OFFSET: u64 = 0;
const TX_OFFSET: u64 = 0x8000_0000;
const FILL_OFFSET: u64 = 0x1_0000_0000;
const COMPLETION_OFFSET: u64 = 0x1_8000_0000;

/// How large a socket's rings and memory are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Entries of each ring, a power of two.
    pub entries: u32,
    /// Chunks of packet memory; even, so that they fill pages.
    pub chunks: usize,
    /// Chunks that are kept for what passes through.
    pub reserve: usize,
}

/// A link's frames. Dropping it gives them back to the kernel's network stack.
///
/// It and its exchange may be dropped in any order: the kernel keeps the pages of the packet memory that it
/// was told of, wherever the program maps what then.
#[derive(Debug)]
pub struct XdpSocket {
    socket: OwnedFd,
    queue: u16,
}

/// Whether a queue gets new flows (`docs/rings.md`).
const XDP_NEW_FLOWS: libc::c_int = 0x5301;

/// `struct xdp_flow`: a connection, and the queue that has it from then on; or a protocol's port.
#[repr(C)]
struct XdpFlow {
    hosts: [[u8; 4]; 2],
    ports: [u16; 2],
    queue: u16,
    protocol: u8,
    zero: u8,
}

/// The queue of an `xdp_flow` that is the kernel's stack.
const TO_STACK: u16 = u16::MAX;

/// `_IOW(0xda, 3, struct xdp_flow)`.
const MOVE_FLOW: libc::Ioctl = 0x4010_da03_u32 as libc::Ioctl;

impl XdpSocket {
    /// Takes the first of these queues that nobody has of the link with this number (see
    /// [`Interface`](crate::Interface)).
    ///
    /// Errors: those of the system, `Unsupported` where rings are laid out in another way.
    pub fn open(
        link: u32,
        queues: RangeInclusive<u16>,
        setup: Setup,
    ) -> io::Result<(Self, Exchange<RingMemory>)> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        Self::open_on(socket, link, queues, setup)
    }

    /// The same, but flows that no queue has do not come, until they are [asked for](Self::take_new_flows).
    ///
    /// Errors: those of [`open`](Self::open).
    pub fn open_quietly(
        link: u32,
        queues: RangeInclusive<u16>,
        setup: Setup,
    ) -> io::Result<(Self, Exchange<RingMemory>)> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        set_taker(socket.as_fd(), false)?;
        Self::open_on(socket, link, queues, setup)
    }

    /// The same by a filter of the link, which needs no rights: only what the filter admits is received and sent.
    ///
    /// Errors: those of [`open`](Self::open); the filter is in use, was revoked, or is another link's.
    pub fn open_filtered(
        filter: &Filter,
        link: u32,
        queues: RangeInclusive<u16>,
        setup: Setup,
    ) -> io::Result<(Self, Exchange<RingMemory>)> {
        Self::open_on(filter.socket()?, link, queues, setup)
    }

    fn open_on(
        socket: OwnedFd,
        link: u32,
        queues: RangeInclusive<u16>,
        setup: Setup,
    ) -> io::Result<(Self, Exchange<RingMemory>)> {
        let umem = Umem::new(setup.chunks, setup.reserve)?;
        register(socket.as_fd(), &umem)?;
        let rings = map(socket.as_fd(), setup.entries)?;
        let exchange = Exchange::new(umem, rings, setup.entries);
        let mut exchange = exchange.ok_or(io::ErrorKind::InvalidInput)?;
        exchange.supply();
        let queue = bind_first(socket.as_fd(), link, queues)?;
        Ok((Self { socket, queue }, exchange))
    }

    /// Which queue of the link it is.
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// Whether it gets flows that no queue of the link has. It does at first.
    ///
    /// Errors: `NetworkDown` without the link, or of the system.
    pub fn take_new_flows(&self, is_taker: bool) -> io::Result<()> {
        set_taker(self.socket.as_fd(), is_taker)
    }

    /// Has what a peer sends to an end of ours go to another queue of the link. Frames of it that have come are in our
    /// rings then, and no more come.
    ///
    /// Errors: `ENXIO` or `ENODEV` without such a queue, `ENOBUFS` if the link remembers too many connections, or
    /// of the system.
    pub fn move_flow(&self, local: SocketAddrV4, peer: SocketAddrV4, to: u16) -> io::Result<()> {
        self.redirect(&XdpFlow {
            hosts: [local.ip().octets(), peer.ip().octets()],
            ports: [local.port(), peer.port()],
            queue: to,
            protocol: 0,
            zero: 0,
        })
    }

    /// Has it go to the kernel's network stack, as [`move_flow`](Self::move_flow) to a queue.
    ///
    /// Errors: those of [`move_flow`](Self::move_flow).
    pub fn move_flow_to_stack(&self, local: SocketAddrV4, peer: SocketAddrV4) -> io::Result<()> {
        self.move_flow(local, peer, TO_STACK)
    }

    /// Has what comes to a port by a protocol of IP, of no flow that anybody has begun, go to the kernel's network stack,
    /// or to queues as ever.
    ///
    /// Errors: those of [`move_flow`](Self::move_flow).
    pub fn move_port(&self, protocol: u8, port: u16, is_to_stack: bool) -> io::Result<()> {
        self.redirect(&XdpFlow {
            hosts: [[0; 4]; 2],
            ports: [port, 0],
            queue: if is_to_stack { TO_STACK } else { self.queue },
            protocol,
            zero: 0,
        })
    }

    fn redirect(&self, flow: &XdpFlow) -> io::Result<()> {
        // SAFETY: the flow is as long as the request says.
        let outcome = unsafe { libc::ioctl(self.socket.as_raw_fd(), MOVE_FLOW, flow) };
        done(outcome)
    }

    /// Has the kernel send what was submitted. What the link does not take now goes out later by
    /// itself.
    ///
    /// Errors: `NetworkDown` without the link.
    pub fn kick(&self) -> io::Result<()> {
        match send(&self.socket, &[], SendFlags::DONTWAIT) {
            Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What went wrong in the kernel so far.
    pub fn statistics(&self) -> io::Result<XdpStatistics> {
        Ok(xdp_statistics(&self.socket)?)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn set_taker(socket: BorrowedFd<'_>, is_taker: bool) -> io::Result<()> {
    let value = libc::c_int::from(is_taker);
    // SAFETY: the value is as long as is said.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            XDP_NEW_FLOWS,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    done(outcome)
}

fn done(outcome: libc::c_int) -> io::Result<()> {
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The lowest of these queues that is free.
fn bind_first(socket: BorrowedFd<'_>, link: u32, queues: RangeInclusive<u16>) -> io::Result<u16> {
    let flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    for queue in queues {
        match bind(socket, &SocketAddrXdp::new(flags, link, queue.into())) {
            Ok(()) => return Ok(queue),
            Err(Errno::BUSY) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::BUSY.into())
}

fn register(socket: BorrowedFd<'_>, umem: &Umem) -> io::Result<()> {
    let memory = XdpUmemReg {
        addr: umem.address() as u64,
        len: umem.bytes() as u64,
        chunk_size: CHUNK_BYTES as u32,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    Ok(set_xdp_umem_reg(socket, memory)?)
}

fn map(socket: BorrowedFd<'_>, entries: u32) -> io::Result<Rings<RingMemory>> {
    set_xdp_umem_fill_ring_size(socket, entries)?;
    set_xdp_umem_completion_ring_size(socket, entries)?;
    set_xdp_rx_ring_size(socket, entries)?;
    set_xdp_tx_ring_size(socket, entries)?;
    if !are_ours(&xdp_mmap_offsets(socket)?) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let map = |entry, at| {
        let geometry = Geometry::check(entries, entry).ok_or(io::ErrorKind::InvalidInput)?;
        RingMemory::map(socket, geometry.bytes(), at)
    };
    Ok(Rings {
        fill: map(Entry::Address, FILL_OFFSET)?,
        completion: map(Entry::Address, COMPLETION_OFFSET)?,
        rx: map(Entry::Descriptor, RX_OFFSET)?,
        tx: map(Entry::Descriptor, TX_OFFSET)?,
    })
}

/// Whether words and entries lie where `core/xdp` has them. They always have in Linux.
fn are_ours(offsets: &XdpMmapOffsets) -> bool {
    let ours = XdpRingOffset {
        producer: offset::PRODUCER as u64,
        consumer: offset::CONSUMER as u64,
        desc: offset::ENTRIES as u64,
        flags: Some(offset::FLAGS as u64),
    };
    let rings = [offsets.rx, offsets.tx, offsets.fr, offsets.cr];
    rings.iter().all(|ring| *ring == ours)
}
