//! Packet formats: bounds-checked views and their legal representations.
//!
//! Each protocol has one file with a *view* that reads a header in place and a *repr*
//! that can hold only what the RFC allows. `parse` checks once what later code relies on;
//! `emit` writes a repr into a buffer of at least the length that it names.
//! Nothing here panics whatever the bytes say, and nothing allocates.
//! Not here: state, policy, and payloads scattered over several buffers (the caller
//! sums those with [`Sum`]).
#![no_std]
#![forbid(unsafe_code)]

mod arp;
mod bytes;
mod checksum;
mod dhcp;
mod echo;
mod ethernet;
mod extension;
mod icmp;
mod icmpv6;
mod igmp;
mod ipv4;
mod ipv6;
mod membership;
mod mld;
mod ndp;
mod ndp_options;
mod tcp;
mod tcp_options;
mod udp;

pub use arp::{ArpOperation, ArpRepr};
pub use checksum::Sum;
pub use dhcp::{DhcpMessage, DhcpOptions, DhcpRepr, DhcpView};
pub use echo::{ECHO_HEADER_BYTES, EchoFamily};
pub use ethernet::{ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, MacAddr};
pub use extension::{
    EXTENSION_BYTES_MAX, ExtensionFault, Extensions, FRAGMENT_HEADER_BYTES, Ipv6Fragment,
};
pub use icmp::{ICMP_HEADER_BYTES, IcmpRepr, IcmpView, Unreachable};
pub use icmpv6::{
    ICMPV6_HEADER_BYTES, Icmpv6Repr, Icmpv6View, Problem, Unreachable6, fill_icmpv6_checksum,
};
pub use igmp::{ALL_ROUTERS_V4, IGMP_ROUTERS, IgmpReport, IgmpView, igmp_records};
pub use ipv4::{
    IPV4_HEADER_BYTES, IPV4_ROUTER_ALERT_BYTES, Ipv4Fragment, Ipv4Repr, Ipv4View, Protocol,
};
pub use ipv6::{IPV6_HEADER_BYTES, IPV6_MTU_MIN, Ipv6Repr, Ipv6View, next_header};
pub use membership::RecordKind;
pub use mld::{MLD_HOP_BY_HOP, MLD_ROUTERS, MldQuery, MldReport, is_mld_report, mld_records};
pub use ndp::{NdpRepr, RouterAdvert, RouterPreference};
pub use ndp_options::{NDP_OPTIONS_MAX, NdpOption, NdpOptions, PrefixInfo};
pub use tcp::{Seq, TCP_HEADER_BYTES, TCP_HEADER_BYTES_MAX, TcpFlags, TcpRepr, TcpView};
pub use tcp_options::{SackBlock, SackBlocks, TcpOptions, Timestamps};
pub use udp::{UDP_HEADER_BYTES, UdpRepr, UdpView};

/// Why bytes are not a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// They end before the header does.
    Truncated,
    /// A version or type that this format does not have.
    Version,
    /// A length field that contradicts another or the bytes.
    Length,
    /// The checksum does not match.
    Checksum,
    /// A combination of flags that no state machine sends.
    Flags,
}
