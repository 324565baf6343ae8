//! What a program without anything to do waits for, and how the kernel is told of frames.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rt::vfio::{Function, Interrupt};
use rt::{Edges, PortMirror, XdpSocket, wait_for, wait_for_edge};

/// A queue's doorbell: readable when frames have come. It may be used in poll(2) and epoll, after
/// [`forget`](Self::forget) and [`arm`](rt::FrameIo::arm).
pub enum Doorbell {
    /// The socket whose rings the kernel fills.
    Socket(XdpSocket),
    /// The interrupt of the program's own card.
    Card(OwnCard),
}

/// What the system knows of a card of the program's.
pub struct OwnCard {
    pub(crate) interrupt: Interrupt,
    /// Comes when the administrator has taken the card away.
    pub(crate) revocation: Interrupt,
    /// Both, for a program that waits for nothing else.
    pub(crate) edges: Edges,
    pub(crate) function: Function,
    pub(crate) mirror: Option<Arc<PortMirror>>,
}

impl Doorbell {
    /// Has the kernel send what was submitted.
    ///
    /// Errors: `NetworkDown` without the link.
    #[inline]
    pub fn kick(&self) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.kick(),
            // The driver has told the card.
            Self::Card(..) => Ok(()),
        }
    }

    /// Whether the queue gets flows that no queue of its link has, as it does at first.
    ///
    /// Errors: `NetworkDown` without the link.
    pub fn take_new_flows(&self, is_taker: bool) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.take_new_flows(is_taker),
            // Nobody else has a queue of it.
            Self::Card(..) => Ok(()),
        }
    }

    /// Has what a peer sends to an end of ours go to another queue of the link. Frames of it that have come are in our
    /// rings then, and no more come.
    ///
    /// Errors: `Unsupported` for a card, which has one queue; those of [`XdpSocket::move_flow`].
    pub fn move_flow(&self, local: SocketAddrV4, peer: SocketAddrV4, to: u16) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.move_flow(local, peer, to),
            Self::Card(..) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Has it go to the kernel's network stack.
    ///
    /// Errors: those of [`move_flow`](Self::move_flow).
    pub fn move_flow_to_stack(&self, local: SocketAddrV4, peer: SocketAddrV4) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.move_flow_to_stack(local, peer),
            Self::Card(..) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Has new flows of a port, or all datagrams to it, go to the kernel's network stack, or to queues as ever.
    ///
    /// Errors: those of [`move_flow`](Self::move_flow).
    pub fn move_port(&self, protocol: u8, port: u16, is_to_stack: bool) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.move_port(protocol, port, is_to_stack),
            Self::Card(..) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// What it holds of the system, for programs that close what they do not know.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = vec![self.as_fd()];
        if let Self::Card(card) = self {
            all.push(card.revocation.as_fd());
            all.push(card.edges.as_fd());
            all.extend(card.function.descriptors());
            all.extend(card.mirror.as_deref().map(AsFd::as_fd));
        }
        all
    }

    /// What can be read once the link is gone, if the doorbell itself does not say so.
    pub fn revocation(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Socket(_) => None,
            Self::Card(card) => Some(card.revocation.as_fd()),
        }
    }

    /// Waits until frames have come, or for so many nanoseconds. A signal ends the wait.
    ///
    /// Errors: `NetworkDown` without the link.
    pub fn wait(&self, most_nanos: Option<u64>) -> io::Result<()> {
        match self {
            Self::Socket(socket) => wait_for(socket.as_fd(), None, most_nanos),
            Self::Card(card) => wait_for_edge(&card.edges, most_nanos),
        }
    }

    /// The interrupt that it is, if it is one: who waits for edges of it ([`Edges`]) need not forget any.
    pub fn interrupt(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Socket(_) => None,
            Self::Card(card) => Some(card.interrupt.as_fd()),
        }
    }

    /// Forgets what has come, before [`arm`](rt::FrameIo::arm), for who waits until the doorbell is readable. Others may wait
    /// for the same.
    pub fn forget(&self) {
        // A socket's is readable as long as there are frames.
        if let Self::Card(card) = self {
            card.interrupt.clear();
        }
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.as_fd(),
            Self::Card(card) => card.interrupt.as_fd(),
        }
    }
}
