//! Any bytes are refused or read as a packet; what a view accepts its accessors can read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::Ipv6Addr;

use wire::{
    ArpRepr, DhcpView, EXTENSION_BYTES_MAX, EthernetRepr, Extensions, FRAGMENT_HEADER_BYTES,
    ICMPV6_HEADER_BYTES, IcmpView, Icmpv6Repr, Icmpv6View, IgmpView, Ipv4View, Ipv6Fragment,
    Ipv6View, MldQuery, NDP_OPTIONS_MAX, NdpOptions, NdpRepr, TcpOptions, TcpView, UdpView,
    fill_icmpv6_checksum, igmp_records, mld_records,
};

/// Numbers of next headers (RFC 8200).
const FRAGMENT: u8 = 44;
const NO_NEXT_HEADER: u8 = 59;

/// Walks a chain of extension headers; the first byte names the first header.
fn extensions(bytes: &[u8]) {
    let Some((first, chain)) = bytes.split_first() else {
        return;
    };
    let Ok(found) = Extensions::parse(chain, *first) else {
        return;
    };
    assert!(found.len <= chain.len().min(EXTENSION_BYTES_MAX));
    if let Some(fragment) = found.fragment {
        // What follows a first fragment's header may be headers, which the copy does not have.
        let alone = Ipv6Fragment {
            next_header: NO_NEXT_HEADER,
            ..fragment
        };
        let mut copy = [0; FRAGMENT_HEADER_BYTES];
        alone.emit(&mut copy);
        let reread = Extensions::parse(&copy, FRAGMENT).expect("our own header");
        assert_eq!(reread.fragment, Some(alone));
    }
}

/// Reads a message whose checksum is made to match, so that it is no obstacle.
fn icmpv6(bytes: &[u8]) {
    let (src, dst) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
    let mut message = bytes.to_vec();
    if let Some(field) = message.get_mut(2..4) {
        field.fill(0);
        fill_icmpv6_checksum(&mut message, src, dst);
    }
    let Ok(view) = Icmpv6View::parse(&message, src, dst) else {
        return;
    };
    if let Some(repr) = view.repr() {
        let mut copy = [0; ICMPV6_HEADER_BYTES];
        repr.emit(&mut copy);
        fill_icmpv6_checksum(&mut copy, src, dst);
        let reread = Icmpv6View::parse(&copy, src, dst).expect("our own message");
        assert_eq!(reread.repr(), Some(repr));
        let is_echo = matches!(
            repr,
            Icmpv6Repr::EchoRequest { .. } | Icmpv6Repr::EchoReply { .. }
        );
        assert!(is_echo || view.is_error());
    }
    if let Ok(Some((repr, options))) = NdpRepr::parse(&view) {
        let options: Vec<_> = options.iter().collect();
        assert!(options.len() <= NDP_OPTIONS_MAX);
        let mut copy = vec![0; repr.len() + 32 * NDP_OPTIONS_MAX];
        let len = repr.emit(&mut copy, &options);
        let reread = NdpOptions::parse(&copy[repr.len()..len]).expect("our own options");
        assert!(reread.iter().eq(options));
    }
    let _ = MldQuery::parse(&view);
    assert!(mld_records(&view).count() <= message.len());
}

fuzz_target!(|bytes: &[u8]| {
    let _ = EthernetRepr::parse(bytes);
    if let Ok(arp) = ArpRepr::parse(bytes) {
        let mut copy = [0; ArpRepr::BYTES];
        arp.emit(&mut copy);
        assert_eq!(ArpRepr::parse(&copy), Ok(arp));
    }
    if let Ok(ip) = Ipv4View::parse(bytes, bytes.len()) {
        assert!(ip.header().len() <= ip.total_len() && ip.total_len() <= bytes.len());
        let _ = (ip.src(), ip.dst(), ip.protocol(), ip.fragment_offset());
    }
    if let Ok(ip) = Ipv6View::parse(bytes, bytes.len()) {
        let _ = (ip.src(), ip.dst(), ip.next_header());
    }
    extensions(bytes);
    icmpv6(bytes);
    if IgmpView::parse(bytes).is_ok() {
        assert!(igmp_records(bytes).count() <= bytes.len());
    }
    if let Ok(icmp) = IcmpView::parse(bytes) {
        let _ = (icmp.repr(), icmp.payload());
    }
    if let Ok(udp) = UdpView::parse(bytes, bytes.len()) {
        assert!(udp.len() <= bytes.len());
    }
    if let Ok(tcp) = TcpView::parse(bytes) {
        let options = tcp.options();
        let mut copy = [0; 40];
        options.emit(&mut copy[..options.len()]);
        let mut reread = TcpOptions::parse(&copy[..options.len()]);
        // At most three blocks fit beside timestamps.
        reread.sack = options.sack;
        assert_eq!(reread, options);
    }
    if let Ok(dhcp) = DhcpView::parse(bytes) {
        let _ = (dhcp.options(), dhcp.your_ip());
    }
});
