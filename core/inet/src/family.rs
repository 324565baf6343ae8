//! What differs between the families on a connection's way out, for code that is compiled
//! once for each.
//!
//! A connection's family never changes. It is looked at once per segment, in
//! `tcp/transmit`; all behind that knows it.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mbuf::SegmentKind;
use wire::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Ipv4Repr, Ipv6Repr, Protocol, Sum};

use crate::counters6::Snmp6;
use crate::net::Net;

/// An address of one family.
pub(crate) trait Family: Copy {
    /// Bytes of an IP header without options or extensions.
    const HEADER_BYTES: usize;
    /// How a device is to cut segments.
    const CUT: SegmentKind;

    /// Writes the header of `payload_len` bytes of TCP.
    fn emit(ip: &IpFields<Self>, bytes: &mut [u8], payload_len: usize);

    /// The sum of TCP's pseudo header; `bytes` is the length of all behind the IP header.
    fn pseudo(ip: &IpFields<Self>, bytes: u32) -> Sum;

    /// A packet was made.
    fn count_out(net: &mut Net);
}

/// What the headers of a segment need besides TCP's own.
#[derive(Clone, Copy)]
pub(crate) struct IpFields<A> {
    pub src: A,
    pub dst: A,
    pub ttl: u8,
    pub tos: u8,
    /// Payload bytes of each segment that a device cuts.
    pub mss: u16,
}

impl Family for Ipv4Addr {
    const HEADER_BYTES: usize = IPV4_HEADER_BYTES;
    const CUT: SegmentKind = SegmentKind::Tcp4;

    #[inline]
    fn emit(ip: &IpFields<Self>, bytes: &mut [u8], payload_len: usize) {
        let repr = Ipv4Repr {
            src: ip.src,
            dst: ip.dst,
            protocol: Protocol::Tcp,
            payload_len: payload_len as u16,
            ttl: ip.ttl,
            tos: ip.tos,
        };
        repr.emit(bytes);
    }

    fn pseudo(ip: &IpFields<Self>, bytes: u32) -> Sum {
        Sum::pseudo_v4(ip.src, ip.dst, Protocol::Tcp, bytes)
    }

    #[inline]
    fn count_out(_net: &mut Net) {}
}

impl Family for Ipv6Addr {
    const HEADER_BYTES: usize = IPV6_HEADER_BYTES;
    const CUT: SegmentKind = SegmentKind::Tcp6;

    #[inline]
    fn emit(ip: &IpFields<Self>, bytes: &mut [u8], payload_len: usize) {
        let repr = Ipv6Repr {
            src: ip.src,
            dst: ip.dst,
            next_header: Protocol::Tcp.number(),
            payload_len: payload_len as u16,
            hop_limit: ip.ttl,
            traffic_class: ip.tos,
            flow_label: 0,
        };
        repr.emit(bytes);
    }

    fn pseudo(ip: &IpFields<Self>, bytes: u32) -> Sum {
        Sum::pseudo_v6(ip.src, ip.dst, Protocol::Tcp.number(), bytes)
    }

    #[inline]
    fn count_out(net: &mut Net) {
        net.count6(Snmp6::OutRequests);
    }
}

/// Bytes of the IP header of packets to `dst`.
pub(crate) const fn ip_header_len(dst: IpAddr) -> usize {
    match dst {
        IpAddr::V4(_) => IPV4_HEADER_BYTES,
        IpAddr::V6(_) => IPV6_HEADER_BYTES,
    }
}
