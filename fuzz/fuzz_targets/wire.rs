//! Any bytes are refused or read as a packet; what a view accepts its accessors can read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{
    ArpRepr, DhcpView, EthernetRepr, IcmpView, Ipv4View, Ipv6View, TcpOptions, TcpView, UdpView,
};

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
