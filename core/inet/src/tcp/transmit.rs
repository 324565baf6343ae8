//! One segment onto the wire.

use core::net::{IpAddr, Ipv4Addr};

use mbuf::{Chain, ChecksumOffload, SegmentKind, SegmentOffload};
use wire::{
    IPV4_HEADER_BYTES, Ipv4Repr, Protocol, Seq, Sum, TCP_HEADER_BYTES, TcpFlags, TcpOptions,
    TcpRepr, TcpView, Timestamps,
};

use super::ecn;
use super::tcb::{AckDue, Tcb};
use crate::addr::FourTuple;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::output::{CachedRoute, NextHop, Offload};

/// Shift of all windows that we offer: 8 MiB at most, in steps of 128 bytes.
pub(super) const WINDOW_SCALE: u8 = 7;

/// What an IP header needs besides addresses.
#[derive(Clone, Copy)]
pub(super) struct Envelope {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub ttl: u8,
    pub tos: u8,
    /// Payload bytes of each segment that a device cuts.
    pub mss: u16,
}

impl Tcb {
    fn envelope(&self) -> Option<Envelope> {
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (self.tuple.local.addr, self.tuple.remote.addr)
        else {
            return None;
        };
        let Self {
            options, sender, ..
        } = self;
        Some(Envelope {
            src,
            dst,
            ttl: options.ttl,
            tos: options.tos,
            mss: sender.mss,
        })
    }

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
    fn header<E: Env>(&mut self, cx: &Context<'_, E>, seq: Seq, flags: TcpFlags) -> TcpRepr {
        let mut options = TcpOptions::default();
        if let Some(clocks) = self.clocks {
            options.timestamps = Some(Timestamps {
                value: self.clock(cx.now),
                echo: clocks.recent,
            });
        }
        options.sack = self.sack_blocks();
        let repr = TcpRepr {
            src_port: self.tuple.local.port,
            dst_port: self.tuple.remote.port,
            seq,
            ack: self.receiver.nxt,
            flags: flags.with(TcpFlags::ACK).with(self.notification()),
            window: self.offer_window(),
            options,
        };
        self.receiver.ack = AckDue::No;
        self.receiver.unacked = 0;
        self.receiver.acked = self.receiver.nxt;
        self.timers.disarm_delayed_ack();
        repr
    }

    /// Hands a header and its payload to IP, with an ECN code.
    pub(super) fn put<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        repr: &TcpRepr,
        payload: Chain,
        code: u8,
    ) {
        let Some(mut envelope) = self.envelope() else {
            return;
        };
        envelope.tos = envelope.tos & !ecn::BITS | code;
        match cx.net.cached_route(envelope.dst, &mut self.route, cx.now) {
            Ok(next_hop) => cx.put_segment(&envelope, repr, payload, next_hop),
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
    /// Writes both headers in front of the payload and sends the packet.
    pub(super) fn put_segment(
        &mut self,
        envelope: &Envelope,
        repr: &TcpRepr,
        mut packet: Chain,
        next_hop: NextHop,
    ) {
        let header_len = repr.header_len();
        let payload_len = packet.len();
        let mut offload = Offload::default();
        let plan = self.plan_checksum(envelope, repr, &packet, next_hop);
        if payload_len > usize::from(envelope.mss) && next_hop != NextHop::Loopback {
            offload.segment = Some(SegmentOffload {
                mss: envelope.mss,
                header_len: (IPV4_HEADER_BYTES + header_len) as u16,
                kind: SegmentKind::Tcp4,
            });
        }
        let Some(space) = self.make_room(&mut packet, IPV4_HEADER_BYTES + header_len) else {
            return;
        };
        let (ip_space, tcp_space) = space.split_at_mut(IPV4_HEADER_BYTES);
        let ip = Ipv4Repr {
            src: envelope.src,
            dst: envelope.dst,
            protocol: Protocol::Tcp,
            payload_len: (header_len + payload_len) as u16,
            ttl: envelope.ttl,
            tos: envelope.tos,
        };
        ip.emit(ip_space);
        repr.emit(tcp_space);
        match plan {
            ChecksumPlan::None => {}
            ChecksumPlan::Device(partial) => {
                TcpRepr::set_checksum(tcp_space, partial);
                offload.checksum = Some(ChecksumOffload {
                    start: IPV4_HEADER_BYTES as u16,
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
        self.send_packet(packet, next_hop, offload);
    }

    fn plan_checksum(
        &self,
        envelope: &Envelope,
        repr: &TcpRepr,
        payload: &Chain,
        next_hop: NextHop,
    ) -> ChecksumPlan {
        if next_hop == NextHop::Loopback {
            return ChecksumPlan::None;
        }
        let bytes = (repr.header_len() + payload.len()) as u32;
        let pseudo = Sum::pseudo_v4(envelope.src, envelope.dst, Protocol::Tcp, bytes);
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
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (tuple.local.addr, tuple.remote.addr) else {
            return;
        };
        let envelope = Envelope {
            src,
            dst,
            ttl: 64,
            tos: 0,
            mss: u16::MAX,
        };
        let mut route = CachedRoute::NONE;
        match self.net.cached_route(dst, &mut route, self.now) {
            Ok(next_hop) => self.put_segment(&envelope, repr, Chain::new(), next_hop),
            Err(_) => self.net.drop(DropReason::NoRoute),
        }
    }

    /// Payload bytes of a full segment on the way to `dst`, without options.
    pub(super) fn segment_to(&self, dst: IpAddr) -> u16 {
        let IpAddr::V4(dst) = dst else {
            return super::tcb::MSS_DEFAULT;
        };
        self.net
            .mtu_to(dst)
            .saturating_sub((IPV4_HEADER_BYTES + TCP_HEADER_BYTES) as u16)
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
