//! Which addresses a port makes itself, from the link and from what routers announce.

use base::Duration;
use inet::{
    AddressState, DropReason, Endpoint, Error, InterfaceId, Ipv6Config, Snmp6, State, Transport,
};
use sim::{Host, Side, Weather, World, for_each_seed};
use std::net::Ipv6Addr;
use wire::{NdpOption, NdpRepr};

use super::place::*;

#[test]
fn a_port_makes_itself_an_address_of_the_link() {
    let world = world();
    let state = world
        .left
        .stack
        .addresses_v6()
        .map(|own| (own.addr, own.state));
    let expected = (link_local(Side::Left), AddressState::Preferred);
    assert_eq!(state.collect::<Vec<_>>(), [expected]);
    assert_eq!(snmp6(&world.left, Snmp6::IcmpOutRouterSolicits), 3);
    assert_eq!(drops(&world.left, DropReason::DuplicateAddress), 0);
}

#[test]
fn two_hosts_that_want_one_address_do_not_both_get_it() {
    for_each_seed(20, |seed| {
        let mut world = world_with(seed, Weather::FAIR, OFFLOADS);
        let wanted = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 5);
        for side in [Side::Left, Side::Right] {
            let Host { stack, env } = world.host(side);
            stack.add_address_v6(env, wanted, 64).expect("room");
            if seed % 2 == 0 {
                world.run_for(SETTLED);
            }
        }
        world.run_for(SETTLED);
        let preferred = [&world.left, &world.right]
            .into_iter()
            .flat_map(|host| host.stack.addresses_v6())
            .filter(|own| own.addr == wanted && own.state == AddressState::Preferred);
        let expected = if seed % 2 == 0 { 1 } else { 0 };
        assert_eq!(preferred.count(), expected);
    });
}

#[test]
fn a_stable_address_that_is_taken_is_replaced_by_another() {
    let mut world = World::new(1, Weather::FAIR, OFFLOADS);
    let config = Ipv6Config {
        interface_id: InterfaceId::Stable([3, 4]),
        ..Ipv6Config::default()
    };
    start(&mut world, Side::Left, config);
    let first = world.left.stack.addresses_v6().next().expect("one").addr;
    let claim = NdpRepr::NeighborAdvert {
        target: first,
        is_router: false,
        is_solicited: false,
        is_override: true,
    };
    let link = NdpOption::TargetLink(ROUTER_MAC);
    let frame = ndp(first, ALL_NODES, claim, &[link]);
    world.host(Side::Left).receive(&frame);
    world.run_for(SETTLED);
    let second = world.left.stack.addresses_v6().next().expect("one");
    assert_ne!(second.addr, first);
    assert_eq!(second.state, AddressState::Preferred);
    assert_eq!(drops(&world.left, DropReason::DuplicateAddress), 1);
}

#[test]
fn the_loopback_address_works_without_a_link() {
    let mut world = World::new(1, Weather::FAIR, OFFLOADS);
    let host = world.host(Side::Left);
    let Host { stack, env } = host;
    let listener = stack.open(Transport::Tcp).expect("a socket");
    let here = Endpoint::v6(Ipv6Addr::LOCALHOST, 80);
    stack.bind(listener, here).expect("a free port");
    stack.listen(listener, 8).expect("a bound socket");
    let client = stack.open(Transport::Tcp).expect("a socket");
    stack.connect(env, client, here).expect("a route");
    assert_eq!(stack.state(client), Ok(State::Established));
    stack.accept(env, listener).expect("a connection");
    let outside = Endpoint::v6(ROUTER, 80);
    let other = stack.open(Transport::Tcp).expect("a socket");
    let refused = stack.connect(env, other, outside);
    assert_eq!(refused, Err(Error::NetworkUnreachable));
}

#[test]
fn an_announced_prefix_becomes_an_address_and_a_route_and_ends() {
    let mut world = world();
    announce(&mut world, 1800, &[prefix(PREFIX, 10_000, 60)]);
    world.run_for(SETTLED);
    let (addr, state) = own(&world, PREFIX).expect("an address");
    assert_eq!(state, AddressState::Preferred);
    assert_eq!(addr.segments()[4..], link_local(Side::Left).segments()[4..]);
    let stack = &world.left.stack;
    assert_eq!(
        stack
            .routes()
            .filter(|route| route.destination.contains(addr.into()))
            .count(),
        2
    );
    world.run_for(Duration::from_secs(60));
    assert_eq!(own(&world, PREFIX), Some((addr, AddressState::Deprecated)));
    world.run_for(Duration::from_secs(10_000));
    assert_eq!(own(&world, PREFIX), None);
    assert_eq!(
        world
            .left
            .stack
            .routes()
            .filter(|route| route.expires < base::Instant::NEVER)
            .count(),
        0
    );
}

#[test]
fn an_announcement_cannot_end_an_address_at_once() {
    let mut world = world();
    announce(&mut world, 1800, &[prefix(PREFIX, 100_000, 50_000)]);
    world.run_for(SETTLED);
    announce(&mut world, 0, &[prefix(PREFIX, 0, 0)]);
    world.run_for(Duration::from_secs(7000));
    assert_eq!(
        own(&world, PREFIX).map(|own| own.1),
        Some(AddressState::Deprecated)
    );
    world.run_for(Duration::from_secs(300));
    assert_eq!(own(&world, PREFIX), None);
}

#[test]
fn a_flood_of_announcements_makes_no_more_than_a_few_addresses() {
    let mut world = world();
    for network in 0..2000_u16 {
        let mut network_of = PREFIX.segments();
        network_of[3] = network;
        let option = prefix(Ipv6Addr::from(network_of), 5000, 5000);
        announce(&mut world, 1800, &[option]);
    }
    world.run_for(SETTLED);
    let stack = &world.left.stack;
    assert_eq!(stack.addresses_v6().count(), 1 + 8);
    assert!(stack.routes().count() < 40);
    assert!(drops(&world.left, DropReason::AdvertLimit) > 3900);
}
