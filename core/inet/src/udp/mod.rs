//! Datagram sockets.
//!
//! `arrive` finds the socket of a received datagram and puts it into the socket's queue; `send`
//! decides where a program's bytes go, `fill` takes them and `packet` sends them, or `template` by the
//! headers of the last ones, as `predicted` finds the sockets of those that come. Both ways many
//! datagrams of one size can pass as one: a program gives several at once, which `fill` cuts, or
//! those that wait are `joined` and read at once. Each crossing into the kernel then serves many.

mod arrive;
mod destination;
mod failure;
mod fill;
mod gro;
mod packet;
mod predicted;
mod send;
mod template;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use mbuf::Chain;

use crate::addr::{Endpoint, SocketId};
use crate::counters::DropReason;
use crate::env::Events;
use crate::error::Error;
use crate::input::IpInfo;
use crate::net::Net;
use crate::options::{Options, Shutdown};

pub(crate) use destination::Destination;
pub(crate) use packet::PacketOptions;

pub use failure::{Failure, FailureMessage};

use failure::Failures;
use template::Template;

/// A received datagram.
#[derive(Debug)]
pub struct Datagram {
    /// Who sent it.
    pub from: Endpoint,
    /// Which of our addresses it was sent to.
    pub to: Endpoint,
    /// Hops that it might still have made.
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    pub tos: u8,
    /// Its bytes, or those of several that were joined.
    pub payload: Chain,
    /// Bytes of each that was joined but the last, which may have fewer; zero for one alone.
    pub segment_bytes: u16,
    /// Datagrams that the socket had no room for before this one.
    pub drops: u32,
}

impl Datagram {
    fn new(info: &IpInfo, (from, to): (Endpoint, Endpoint), payload: Chain) -> Self {
        Self {
            from,
            to,
            hop_limit: info.hop_limit,
            tos: info.tos,
            payload,
            segment_bytes: 0,
            drops: 0,
        }
    }
}

/// What a datagram has of its own, instead of what its socket has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SendOptions {
    /// Who shall get it; the peer if none.
    pub to: Option<Endpoint>,
    /// Which of our addresses it shall come from.
    pub from: Option<IpAddr>,
    /// Hops that it may make.
    pub hop_limit: Option<u8>,
    /// DSCP and ECN bits.
    pub tos: Option<u8>,
    /// Cut it into datagrams of so many bytes; zero for one.
    pub segment_bytes: Option<u16>,
}

impl From<Option<Endpoint>> for SendOptions {
    fn from(to: Option<Endpoint>) -> Self {
        Self {
            to,
            ..Self::default()
        }
    }
}

impl SendOptions {
    /// Whether a datagram goes as its socket says, but for its receiver and how it is cut.
    #[inline]
    fn has_nothing_of_its_own(&self) -> bool {
        self.from.is_none() && self.hop_limit.is_none() && self.tos.is_none()
    }
}

/// A datagram socket.
pub(crate) struct UdpSocket {
    pub id: SocketId,
    /// Port zero: not bound.
    pub local: Endpoint,
    /// What a program has bound it to, for when the peer is taken away.
    pub bound: IpAddr,
    pub peer: Option<Endpoint>,
    pub options: Options,
    pub error: Option<Error>,
    /// Nobody waits for datagrams any more; those that come can be read.
    pub is_read_shut: bool,
    pub is_write_shut: bool,
    /// Groups that it has joined.
    pub groups: Vec<IpAddr>,
    /// Where the last datagram went.
    destination: Destination,
    last_to: Option<Endpoint>,
    /// The headers of datagrams to it.
    template: Option<Template>,
    queue: VecDeque<Datagram>,
    failures: Failures,
    queued_bytes: usize,
    drops: u32,
}

impl UdpSocket {
    /// A socket of the family of `local`, which names nothing.
    pub fn new(id: SocketId, local: Endpoint) -> Self {
        Self {
            id,
            local,
            bound: local.addr,
            peer: None,
            options: Options::default(),
            error: None,
            is_read_shut: false,
            is_write_shut: false,
            groups: Vec::new(),
            destination: Destination::NONE,
            last_to: None,
            template: None,
            queue: VecDeque::new(),
            failures: Failures::default(),
            queued_bytes: 0,
            drops: 0,
        }
    }

    /// Ends one or both directions.
    pub fn shut(&mut self, how: Shutdown) {
        self.is_read_shut |= how != Shutdown::Write;
        self.is_write_shut |= how != Shutdown::Read;
        self.drop_template();
    }

    /// Names, options or ends have changed.
    pub fn drop_template(&mut self) {
        self.template = None;
    }

    /// Memory that waiting datagrams are charged with.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Datagrams that there was no room for.
    pub fn drops(&self) -> u32 {
        self.drops
    }

    /// Memory that a datagram is charged with: its buffers, however little they hold.
    #[inline]
    fn charge(datagram: &Datagram) -> usize {
        size_of::<Datagram>() + datagram.payload.memory()
    }

    /// Memory that what waits may be charged with. Linux doubles SO_RCVBUF to account for
    /// overhead; here the buffers count instead.
    fn bytes_max(&self) -> usize {
        2 * self.options.recv_buffer as usize
    }

    /// Queues a datagram unless that is more than the socket's buffer or memory takes.
    #[inline]
    fn push(&mut self, net: &mut Net, mut datagram: Datagram) -> Result<(), DropReason> {
        datagram.drops = self.drops;
        let pushed = self.push_within_memory(net, datagram);
        self.drops = self.drops.wrapping_add(u32::from(pushed.is_err()));
        pushed
    }

    #[inline]
    fn push_within_memory(&mut self, net: &mut Net, datagram: Datagram) -> Result<(), DropReason> {
        let (before, charge) = (self.queued_bytes, Self::charge(&datagram));
        if net.udp_room(before) < charge && (before != 0 || net.is_scarce) {
            return Err(DropReason::UdpMemoryTight);
        }
        self.push_within_buffer(datagram, charge)?;
        net.udp_memory.bill(before, self.queued_bytes);
        Ok(())
    }

    #[inline]
    fn push_within_buffer(&mut self, datagram: Datagram, charge: usize) -> Result<(), DropReason> {
        if self.queued_bytes + charge > self.bytes_max() && !self.queue.is_empty() {
            return Err(DropReason::QueueFull);
        }
        if let Some(last) = self.queue.back_mut()
            && self.options.join_datagrams
            && last.is_followed_by(&datagram)
        {
            let before = Self::charge(last);
            last.join(datagram);
            self.queued_bytes += Self::charge(last) - before;
            return Ok(());
        }
        if self.queue.try_reserve(1).is_err() {
            return Err(DropReason::UdpMemoryTight);
        }
        self.queued_bytes += charge;
        self.queue.push_back(datagram);
        Ok(())
    }

    #[inline]
    pub fn pop(&mut self, net: &mut Net) -> Option<Datagram> {
        let datagram = self.queue.pop_front()?;
        let before = self.queued_bytes;
        self.queued_bytes -= Self::charge(&datagram);
        net.udp_memory.bill(before, self.queued_bytes);
        Some(datagram)
    }

    pub fn front(&self) -> Option<&Datagram> {
        self.queue.front()
    }

    pub fn poll(&self) -> Events {
        let mut events = Events::WRITABLE;
        events.set(Events::READABLE, !self.queue.is_empty());
        events.set(Events::ERROR, self.error.is_some());
        events.set(Events::FAILURE, !self.failures.is_empty());
        if self.is_read_shut {
            events |= Events::READABLE | Events::READ_CLOSED;
        }
        events.set(Events::HANGUP, self.is_read_shut && self.is_write_shut);
        events
    }
}
