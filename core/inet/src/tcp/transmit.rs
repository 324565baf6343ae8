//! One segment onto the wire.

use core::net::IpAddr;

use mbuf::{Chain, ChecksumOffload, SegmentOffload};
use wire::{Seq, Sum, TCP_HEADER_BYTES, TcpFlags, TcpOptions, TcpRepr, TcpView, Timestamps};

use super::acknowledge::AckDue;
use super::ecn;
use super::tcb::Tcb;
use crate::addr::FourTuple;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::error::Error;
use crate::family::{Family, IpFields, ip_header_len};
use crate::output::{CachedRoute, NextHop, Offload};

/// Shift of all windows that we offer: 8 MiB at most, in steps of 128 bytes.
pub(super) const WINDOW_SCALE: u8 = 7;

/// What a socket or a connection wishes for its packets.
#[derive(Clone, Copy)]
struct Manner {
    ttl: u8,
    tos: u8,
    mss: u16,
}

impl Tcb {
    /// Sends a segment of an open connection. Whatever it carries, it acknowledges.
    pub(super) fn transmit<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        seq: Seq,
        flags: TcpFlags,
        payload: Chain,
    ) {
        let repr = self.header(cx, seq, flags);
        self.put(cx, &repr, payload, 0);
    }

    /// The same for bytes that leave for the first time: routers may mark them (RFC 3168
    /// 6.1.5 excepts all other segments).
    #[inline]
    pub(super) fn transmit_new<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        seq: Seq,
        mut flags: TcpFlags,
        payload: Chain,
    ) {
        let mut code = 0;
        if self.ecn.is_on && !payload.is_empty() {
            code = ecn::CAPABLE;
            if core::mem::take(&mut self.ecn.is_reduced) {
                flags = flags.with(TcpFlags::CWR);
            }
        }
        let repr = self.header(cx, seq, flags);
        self.put(cx, &repr, payload, code);
    }

    /// The header of the next segment, whose acknowledgement is then no longer owed.
    #[inline(always)]
    fn header<E: Env>(&mut self, cx: &Context<'_, E>, seq: Seq, flags: TcpFlags) -> TcpRepr {
        let mut options = TcpOptions::default();
        if let Some(clocks) = self.clocks {
            options.timestamps = Some(Timestamps {
                value: self.clock(cx.now),
                echo: clocks.recent,
            });
        }
        if self.receiver.doubled.is_some() || self.receiver.early.is_some() {
            options.sack = self.sack_blocks();
        }
        let repr = TcpRepr {
            src_port: self.tuple.local.port,
            dst_port: self.tuple.remote.port,
            seq,
            ack: self.receiver.nxt,
            flags: flags.with(TcpFlags::ACK).with(self.notification()),
            window: self.offer_window(cx.net),
            options,
        };
        self.receiver.ack = AckDue::No;
        self.receiver.unacked = 0;
        self.receiver.acked = self.receiver.nxt;
        self.timers.disarm_delayed_ack();
        repr
    }

    /// Hands a header and its payload to IP, with an ECN code.
    #[inline(always)]
    pub(super) fn put<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        repr: &TcpRepr,
        payload: Chain,
        code: u8,
    ) {
        let manner = Manner {
            ttl: self.options.ttl,
            tos: self.options.tos & !ecn::BITS | code,
            mss: self.sender.mss,
        };
        let tuple = &self.tuple;
        match cx.next_hop(tuple, &mut self.route) {
            Ok(next_hop) => cx.put_between(tuple, manner, repr, payload, next_hop),
            Err(_) => cx.net.drop(DropReason::NoRoute),
        }
    }

    /// An acknowledgement and nothing else.
    pub(super) fn send_ack<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        cx.net.count(Count::PureAcksOut);
        self.transmit(cx, self.sender.nxt, TcpFlags::ACK, Chain::new());
    }

    /// An acknowledgement to a segment that an attacker may have sent (RFC 5961).
    pub(super) fn send_challenge<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if cx.net.may_challenge(cx.now) {
            cx.net.count(Count::ChallengeAcks);
            self.send_ack(cx);
        }
    }
}

impl<E: Env> Context<'_, E> {
    /// Where a connection's packets go.
    #[inline]
    pub(super) fn next_hop<'c>(
        &mut self,
        tuple: &FourTuple,
        cache: &'c mut CachedRoute,
    ) -> Result<&'c NextHop, Error> {
        let (src, dst) = (&tuple.local.addr, &tuple.remote.addr);
        self.net.cached_route(src, dst, cache, self.now)
    }

    /// Sends a segment from one end to the other.
    #[inline(always)]
    fn put_between(
        &mut self,
        tuple: &FourTuple,
        Manner { ttl, tos, mss }: Manner,
        repr: &TcpRepr,
        packet: Chain,
        next_hop: &NextHop,
    ) {
        match (tuple.local.addr, tuple.remote.addr) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let ip = IpFields {
                    src,
                    dst,
                    ttl,
                    tos,
                    mss,
                };
                self.put_segment(&ip, repr, packet, next_hop);
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let ip = IpFields {
                    src,
                    dst,
                    ttl,
                    tos,
                    mss,
                };
                self.put_segment(&ip, repr, packet, next_hop);
            }
            // No connection has ends of two families.
            _ => self.net.drop(DropReason::NoRoute),
        }
    }

    /// Writes both headers in front of the payload and sends the packet.
    #[inline]
    fn put_segment<A: Family>(
        &mut self,
        ip: &IpFields<A>,
        repr: &TcpRepr,
        mut packet: Chain,
        next_hop: &NextHop,
    ) {
        let header_len = repr.header_len();
        let payload_len = packet.len();
        let segment_len = header_len + payload_len;
        let mut offload = Offload::default();
        let is_loopback = matches!(next_hop, NextHop::Loopback);
        let plan = match is_loopback {
            true => ChecksumPlan::None,
            false => self.plan_checksum(A::pseudo(ip, segment_len as u32), &packet),
        };
        if payload_len > usize::from(ip.mss) && !is_loopback {
            offload.segment = Some(SegmentOffload {
                mss: ip.mss,
                header_len: (A::HEADER_BYTES + header_len) as u16,
                kind: A::CUT,
            });
        }
        let Some(space) = self.make_room(&mut packet, A::HEADER_BYTES + header_len) else {
            return;
        };
        let (ip_space, tcp_space) = space.split_at_mut(A::HEADER_BYTES);
        A::emit(ip, ip_space, segment_len);
        repr.emit(tcp_space);
        match plan {
            ChecksumPlan::None => {}
            ChecksumPlan::Device(partial) => {
                TcpRepr::set_checksum(tcp_space, partial);
                offload.checksum = Some(ChecksumOffload {
                    start: A::HEADER_BYTES as u16,
                    offset: TcpView::CHECKSUM_OFFSET,
                });
            }
            ChecksumPlan::Software(rest) => {
                // The header's length is even, so it may be summed after what follows it.
                let sum = rest.bytes(tcp_space);
                TcpRepr::set_checksum(tcp_space, sum.checksum());
            }
        }
        self.net.count(Count::SegmentsOut);
        A::count_out(self.net);
        match is_loopback {
            true => self.net.push_loopback(packet),
            false => self.send_packet(packet, next_hop, offload),
        }
    }

    #[inline(always)]
    fn plan_checksum(&self, pseudo: Sum, payload: &Chain) -> ChecksumPlan {
        if self.net.port.is_some_and(|port| port.offloads.checksum) {
            return ChecksumPlan::Device(pseudo.partial());
        }
        let mut sum = payload.slices().fold(pseudo, Sum::bytes);
        if payload.len() % 2 == 1 {
            sum = sum.bytes(&[0]);
        }
        ChecksumPlan::Software(sum)
    }

    /// Sends a segment without a connection.
    pub(super) fn send_bare(&mut self, tuple: &FourTuple, repr: &TcpRepr) {
        let manner = Manner {
            ttl: self.net.config.hops_to(tuple.remote.addr),
            tos: 0,
            mss: u16::MAX,
        };
        let mut route = CachedRoute::NONE;
        match self.next_hop(tuple, &mut route) {
            Ok(next_hop) => self.put_between(tuple, manner, repr, Chain::new(), next_hop),
            Err(_) => self.net.drop(DropReason::NoRoute),
        }
    }

    /// Payload bytes of a full segment on the way to `dst`, without options.
    pub(super) fn segment_to(&self, dst: IpAddr) -> u16 {
        let headers = ip_header_len(dst) + TCP_HEADER_BYTES;
        self.net.mtu_to(dst).saturating_sub(headers as u16)
    }
}

/// Who completes the checksum.
enum ChecksumPlan {
    /// Nobody: the packet never leaves our memory.
    None,
    /// The device, from the sum of the pseudo header.
    Device(u16),
    /// We, from the sum of all but the header.
    Software(Sum),
}
