//! What became of datagrams that did not arrive, for programs that want to know (Linux's
//! IP_RECVERR).
//!
//! An ICMP message about a datagram of ours leaves an error with its socket, which the next call
//! returns, if the socket has a peer and the message is final. A socket may ask for more: then
//! each message is queued as a [`Failure`], with whom the datagram was for, and any leaves an
//! error, so that a socket without a peer hears too. What is too long to be sent is queued as
//! well, but leaves no error, for the call has returned it. While an ICMP failure is first in the
//! queue its error waits; with the last of them it goes.
//!
//! The queue is charged to the socket's receive buffer; what does not fit is lost.
//!
//! A shell whose socket has members in several stacks asks each when its first failure was
//! ([`Stack::first_failure`]), takes the earliest of all, and tells the members which of them has the
//! next ([`Stack::pend_failure`]).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use base::Instant;
use wire::UDP_HEADER_BYTES;

use super::UdpSocket;
use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::counters::DropReason;
use crate::env::{Env, Events};
use crate::error::Error;
use crate::icmp::{Fate, Quoted, Report};
use crate::net::Net;
use crate::options::{Options, PathDiscovery};
use crate::stack::Stack;
use crate::table::Socket;

/// Why a datagram did not arrive.
#[derive(Debug)]
pub struct Failure {
    /// When that was known.
    pub at: Instant,
    /// What a call is told of it.
    pub error: Error,
    /// Whom the datagram was for.
    pub to: Endpoint,
    /// What would fit, or where the flaw is.
    pub detail: u32,
    /// What the message said; `None` if we found out ourselves.
    pub message: Option<FailureMessage>,
    /// The start of the datagram's bytes.
    pub payload: Vec<u8>,
}

/// The ICMP message that told of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailureMessage {
    /// Who sent it.
    pub from: IpAddr,
    /// To which of our addresses.
    pub to: IpAddr,
    /// Its type.
    pub kind: u8,
    /// Its code.
    pub code: u8,
    /// Hops that it might still have made.
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    pub tos: u8,
}

/// A socket's failures that no program has taken yet.
#[derive(Default)]
pub(super) struct Failures(VecDeque<Failure>);

impl Failures {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Failure {
    fn charge(&self) -> usize {
        size_of::<Self>() + self.payload.capacity()
    }

    /// Of a datagram of which `transport` was quoted, header included; `None` without memory.
    fn quoted(
        (at, to): (Instant, Endpoint),
        transport: &[u8],
        error: Error,
        report: &Report<'_>,
    ) -> Option<Self> {
        let rest = transport.get(UDP_HEADER_BYTES..).unwrap_or_default();
        let mut payload = Vec::new();
        payload.try_reserve_exact(rest.len()).ok()?;
        payload.extend_from_slice(rest);
        let (kind, code) = report.kind;
        let info = report.info;
        Some(Self {
            at,
            error,
            to,
            detail: report.detail,
            message: Some(FailureMessage {
                from: info.src(),
                to: info.dst(),
                kind,
                code,
                hop_limit: info.hop_limit,
                tos: info.tos,
            }),
            payload,
        })
    }
}

impl Options {
    /// Whether a program wants to hear what becomes of its datagrams to `dst`.
    fn queues_failures_to(&self, dst: IpAddr) -> bool {
        match dst {
            IpAddr::V4(_) => self.queue_failures_v4,
            IpAddr::V6(_) => self.queue_failures_v6,
        }
    }
}

impl UdpSocket {
    /// Queues a failure if the socket's buffer and memory take it.
    fn push_failure(&mut self, net: &mut Net, failure: Failure) {
        let (before, charge) = (self.queued_bytes, failure.charge());
        let has_room = before + charge <= self.bytes_max() && net.udp_room(before) >= charge;
        if has_room && self.failures.0.try_reserve(1).is_ok() {
            self.failures.0.push_back(failure);
            self.queued_bytes += charge;
            net.udp_memory.bill(before, self.queued_bytes);
        }
    }

    /// Takes the first failure. The next one's error waits then, if a message told of it.
    fn pop_failure(&mut self, net: &mut Net) -> Option<Failure> {
        let failure = self.failures.0.pop_front()?;
        let before = self.queued_bytes;
        self.queued_bytes -= failure.charge();
        net.udp_memory.bill(before, self.queued_bytes);
        let next = self.failures.0.front();
        let next = next.filter(|next| next.message.is_some());
        if failure.message.is_some() || next.is_some() {
            self.error = next.map(|next| next.error);
        }
        Some(failure)
    }

    /// The program does not want to hear any more.
    pub fn forget_failures(&mut self, net: &mut Net) {
        let error = self.error;
        while self.pop_failure(net).is_some() {}
        self.error = error;
    }
}

impl Stack {
    /// Takes the first failure of a datagram socket.
    pub fn take_failure<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<Failure, Error> {
        let socket = self.sockets.udp_mut(id)?;
        let failure = socket.pop_failure(&mut self.net).ok_or(Error::WouldBlock)?;
        if !socket.failures.is_empty() {
            env.wake(id, Events::ERROR);
        }
        Ok(failure)
    }

    /// When the failure was that [`take_failure`](Self::take_failure) would take, and whether a
    /// message told of it.
    pub fn first_failure(&mut self, id: SocketId) -> Option<(Instant, bool)> {
        let socket = self.sockets.udp_mut(id).ok()?;
        let first = socket.failures.0.front()?;
        Some((first.at, first.message.is_some()))
    }

    /// One of the socket's members took a failure. `is_next` says whether the first one here is the
    /// next of all, whose error waits; of the others none does.
    pub fn pend_failure<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        is_next: bool,
    ) -> Result<(), Error> {
        let socket = self.sockets.udp_mut(id)?;
        let first = socket.failures.0.front().filter(|_| is_next);
        socket.error = first.map(|first| first.error);
        if is_next {
            env.wake(id, Events::ERROR);
        }
        Ok(())
    }

    /// A datagram of ours, of which `quoted` is the start, did not arrive.
    pub(crate) fn udp_lost<E: Env>(
        &mut self,
        env: &mut E,
        tuple: &FourTuple,
        quoted: &Quoted<'_>,
        report: &Report<'_>,
    ) -> Result<(), DropReason> {
        let index = self
            .net
            .demux
            .udp
            .find((tuple.local, tuple.remote), || 0)
            .ok_or(DropReason::NoSocket)?;
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(index) else {
            return Err(DropReason::NoSocket);
        };
        let discovery = socket.options.path_discovery;
        let error = match report.fate {
            Fate::Lost(error) => error,
            Fate::TooBig(_) if !discovery.believes() => return Ok(()),
            Fate::TooBig(mtu) => {
                let mut cx = self.context(env);
                cx.learn_mtu(tuple.remote.addr, mtu, quoted.total)
                    .ok_or(DropReason::Suspicious)?;
                if discovery == PathDiscovery::Never {
                    return Ok(());
                }
                Error::MessageTooLong
            }
        };
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(index) else {
            return Err(DropReason::NoSocket);
        };
        let is_queued = socket.options.queues_failures_to(tuple.remote.addr);
        // Like Linux: a socket without a peer could not tell which datagram it was.
        let is_told_unasked = report.is_hard && socket.peer == Some(tuple.remote);
        if !is_queued && !is_told_unasked {
            return Ok(());
        }
        if is_queued
            && let Some(failure) =
                Failure::quoted((env.now(), tuple.remote), quoted.transport, error, report)
        {
            socket.push_failure(&mut self.net, failure);
        }
        socket.error = Some(error);
        env.wake(socket.id, Events::ERROR);
        Ok(())
    }

    /// A program has tried to send a datagram of `len` bytes to `to`, which is too long.
    pub(super) fn note_too_long<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        to: Endpoint,
        len: usize,
    ) -> Result<(), Error> {
        let socket = self.sockets.udp_mut(id)?;
        let detail = self.net.mtu_told(to.addr, socket.options.path_discovery);
        // Linux looks at the length first where no packet of IPv4 has so many bytes, and tells
        // the port of the peer alone.
        let is_absurd = to.addr.is_ipv4() && len > usize::from(u16::MAX);
        if is_absurd || !socket.options.queues_failures_to(to.addr) {
            return Ok(());
        }
        let port = match to.addr {
            IpAddr::V4(_) => socket.peer.map_or(0, |peer| peer.port),
            IpAddr::V6(_) => to.port,
        };
        let failure = Failure {
            at: env.now(),
            error: Error::MessageTooLong,
            to: Endpoint::new(to.addr, port),
            detail,
            message: None,
            payload: Vec::new(),
        };
        socket.push_failure(&mut self.net, failure);
        env.wake(id, Events::ERROR);
        Ok(())
    }
}
