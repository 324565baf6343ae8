//! Neighbours and routers, true ones and liars.

use base::Duration;
use inet::{Count, DropReason, Endpoint};
use sim::Side;
use std::net::Ipv6Addr;
use wire::{
    ETHERNET_HEADER_BYTES, IPV6_HEADER_BYTES, Icmpv6View, Ipv6View, MacAddr, NdpOption, NdpRepr,
};

use super::place::*;

#[test]
fn discovery_from_beyond_a_router_is_not_believed() {
    let mut world = world();
    let link = NdpOption::SourceLink(ROUTER_MAC);
    let mut frame = ndp(
        ROUTER,
        ALL_NODES,
        advert(1800),
        &[link, prefix(PREFIX, 9999, 9999)],
    );
    frame[ETHERNET_HEADER_BYTES + 7] = 254;
    world.host(Side::Left).receive(&frame);
    let global = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let frame = ndp(global, ALL_NODES, advert(1800), &[]);
    world.host(Side::Left).receive(&frame);
    assert_eq!(drops(&world.left, DropReason::BadDiscovery), 2);
    world.run_for(SETTLED);
    assert_eq!(own(&world, PREFIX), None);
}

#[test]
fn a_redirect_is_counted_and_not_followed() {
    let mut world = world();
    let redirect = NdpRepr::Redirect {
        target: ROUTER,
        destination: PREFIX,
    };
    let frame = ndp(ROUTER, link_local(Side::Left), redirect, &[]);
    world.host(Side::Left).receive(&frame);
    assert_eq!(drops(&world.left, DropReason::RedirectIgnored), 1);
}

#[test]
fn a_lost_router_is_replaced_by_another() {
    let mut world = world();
    announce(&mut world, 1800, &[prefix(PREFIX, 5000, 5000)]);
    let second = link_local(Side::Right);
    let frame = ndp(
        second,
        ALL_NODES,
        advert(1800),
        &[NdpOption::SourceLink(MacAddr([2, 0, 0, 0, 0, 2]))],
    );
    world.host(Side::Left).receive(&frame);
    world.run_for(SETTLED);
    let client = udp(world.host(Side::Left), 0);
    let far = Endpoint::v6(Ipv6Addr::new(0x2001, 0xdb8, 9, 9, 0, 0, 0, 1), 53);
    for _ in 0..20 {
        assert_eq!(send_to(world.host(Side::Left), client, far, 9), Ok(9));
        world.run_for(Duration::from_secs(1));
    }
    // The first router never answered; the second one is there, though it forwards nothing.
    let received = drops(&world.right, DropReason::WrongAddress);
    assert!(received >= 5, "{received} datagrams");
}

#[test]
fn what_others_provoke_is_limited() {
    let mut world = world();
    let dst = link_local(Side::Left);
    for _ in 0..1000 {
        let frame = packet(
            link_local(Side::Right),
            dst,
            17,
            64,
            &[0, 1, 0, 2, 0, 8, 0, 0],
        );
        let mut frame = frame;
        let at = frame.len() - 8;
        let sum = wire::Sum::pseudo_v6(link_local(Side::Right), dst, 17, 8);
        let sum = sum.bytes(&frame[at..]).checksum();
        frame[at + 6..].copy_from_slice(&sum.to_be_bytes());
        world.host(Side::Left).receive(&frame);
    }
    let told = world.left.stack.stats().counts.get(Count::IcmpErrorsOut);
    assert!((50..=100).contains(&told), "{told}");
    assert_eq!(drops(&world.left, DropReason::IcmpLimited), 1000 - told);
}

#[test]
fn a_host_that_asks_is_told_and_remembered() {
    let mut world = world();
    let target = link_local(Side::Left);
    let asker = link_local(Side::Right);
    let link = NdpOption::SourceLink(MacAddr([2, 0, 0, 0, 0, 2]));
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1);
    let frame = ndp(asker, group, NdpRepr::NeighborSolicit { target }, &[link]);
    let host = world.host(Side::Left);
    host.env.sent.clear();
    host.receive(&frame);
    let sent: Vec<u8> = host.env.sent[0].chain.slices().flatten().copied().collect();
    let ip = Ipv6View::parse(&sent[ETHERNET_HEADER_BYTES..], sent.len()).expect("a packet");
    assert_eq!((ip.src(), ip.dst(), ip.hop_limit()), (target, asker, 255));
    let message = &sent[ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES..];
    let view = Icmpv6View::parse(message, target, asker).expect("a message");
    let (repr, options) = NdpRepr::parse(&view).expect("whole").expect("discovery");
    let expected = NdpRepr::NeighborAdvert {
        target,
        is_router: false,
        is_solicited: true,
        is_override: true,
    };
    assert_eq!(repr, expected);
    assert_eq!(options.target_link(), Some(MacAddr([2, 0, 0, 0, 0, 1])));
    assert!(host.stack.neighbors_v6().any(|known| known.0 == asker));
}
