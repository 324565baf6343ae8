//! IPv6 between two hosts, and what a router and a liar on the link can do to one.

use std::net::{IpAddr, Ipv6Addr};

use base::Duration;
use inet::{
    AddressState, Config, Count, DropReason, Endpoint, Error, InterfaceId, Ipv6Config, Offloads,
    Snmp6, SocketId, State, Transport,
};
use sim::{Host, Side, Transfer, Weather, World, for_each_seed};
use wire::{
    ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, ICMPV6_HEADER_BYTES, IPV6_HEADER_BYTES,
    Icmpv6Repr, Icmpv6View, Ipv6Repr, Ipv6View, MacAddr, NdpOption, NdpRepr, PrefixInfo,
    RouterAdvert, RouterPreference, fill_icmpv6_checksum, next_header,
};

const OFFLOADS: Offloads = Offloads {
    checksum: true,
    segment_v4: true,
    segment_v6: true,
};
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x99);
const ROUTER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 0, 0, 0, 0);
/// Longer than probes and solicitations take.
const SETTLED: Duration = Duration::from_secs(20);

fn link_local(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, side as u16 + 1)
}

fn start(world: &mut World, side: Side, config: Ipv6Config) {
    let Host { stack, env } = world.host(side);
    stack.start_ipv6(env, config);
}

fn world_with(seed: u64, weather: Weather, offloads: Offloads) -> World {
    let mut world = World::with_config(seed, weather, offloads, Config::default());
    for side in [Side::Left, Side::Right] {
        start(&mut world, side, Ipv6Config::default());
    }
    world.run_for(SETTLED);
    world
}

fn world() -> World {
    world_with(1, Weather::FAIR, OFFLOADS)
}

fn drops(host: &Host, reason: DropReason) -> u64 {
    host.stack.stats().drops.get(reason)
}

fn snmp6(host: &Host, what: Snmp6) -> u64 {
    host.stack.stats().snmp6.get(what)
}

fn udp(host: &mut Host, port: u16) -> SocketId {
    let socket = host.stack.open(Transport::Udp).expect("a socket");
    let local = Endpoint::v6(Ipv6Addr::UNSPECIFIED, port);
    host.stack.bind(socket, local).expect("a free port");
    socket
}

fn send_to(host: &mut Host, socket: SocketId, to: Endpoint, len: usize) -> Result<usize, Error> {
    let mut at = 0;
    host.stack
        .send_to(&mut host.env, socket, Some(to), len, &mut |space| {
            for byte in space.iter_mut() {
                *byte = at as u8;
                at += 1;
            }
            space.len()
        })
}

/// Frames to us carry packets made like this.
fn packet(src: Ipv6Addr, dst: Ipv6Addr, next: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES];
    let station = match dst.is_multicast() {
        true => MacAddr::of_group_v6(dst),
        false => MacAddr([2, 0, 0, 0, 0, 1]),
    };
    EthernetRepr {
        dst: station,
        src: ROUTER_MAC,
        ether_type: EtherType::Ipv6,
    }
    .emit(&mut bytes);
    Ipv6Repr {
        src,
        dst,
        next_header: next,
        payload_len: payload.len() as u16,
        hop_limit,
        traffic_class: 0,
        flow_label: 0,
    }
    .emit(&mut bytes[ETHERNET_HEADER_BYTES..]);
    bytes.extend_from_slice(payload);
    bytes
}

fn ndp(src: Ipv6Addr, dst: Ipv6Addr, repr: NdpRepr, options: &[NdpOption]) -> Vec<u8> {
    let mut message = vec![0; 512];
    let len = repr.emit(&mut message, options);
    fill_icmpv6_checksum(&mut message[..len], src, dst);
    packet(src, dst, next_header::ICMPV6, 255, &message[..len])
}

fn advert(lifetime_secs: u16) -> NdpRepr {
    NdpRepr::RouterAdvert(RouterAdvert {
        hop_limit: 64,
        is_managed: false,
        has_other: false,
        preference: RouterPreference::Medium,
        lifetime_secs,
        reachable_ms: 0,
        retrans_ms: 0,
    })
}

fn prefix(prefix: Ipv6Addr, valid_secs: u32, preferred_secs: u32) -> NdpOption {
    NdpOption::Prefix(PrefixInfo {
        prefix,
        prefix_len: 64,
        is_on_link: true,
        is_autonomous: true,
        valid_secs,
        preferred_secs,
    })
}

fn announce(world: &mut World, lifetime_secs: u16, options: &[NdpOption]) {
    let link = NdpOption::SourceLink(ROUTER_MAC);
    let options: Vec<_> = [link].into_iter().chain(options.iter().copied()).collect();
    let frame = ndp(ROUTER, ALL_NODES, advert(lifetime_secs), &options);
    world.host(Side::Left).receive(&frame);
}

fn own(world: &World, network: Ipv6Addr) -> Option<(Ipv6Addr, AddressState)> {
    let of_network = |addr: Ipv6Addr| addr.segments()[..4] == network.segments()[..4];
    let mut addresses = world.left.stack.addresses_v6();
    let found = addresses.find(|own| of_network(own.addr))?;
    Some((found.addr, found.state))
}

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
fn a_datagram_finds_its_neighbour_and_an_empty_port_is_reported() {
    let mut world = world();
    let server = udp(world.host(Side::Right), 53);
    let client = udp(world.host(Side::Left), 0);
    let to = |port| Endpoint::v6(link_local(Side::Right), port);
    assert_eq!(
        send_to(world.host(Side::Left), client, to(53), 1200),
        Ok(1200)
    );
    world.run_for(Duration::from_millis(5));
    let got = world
        .host(Side::Right)
        .stack
        .recv_from(server)
        .expect("one");
    assert_eq!(
        (got.payload.len(), got.from.addr),
        (1200, IpAddr::V6(link_local(Side::Left)))
    );
    let Host { stack, env } = world.host(Side::Left);
    stack.connect(env, client, to(54)).expect("a route");
    assert_eq!(send_to(world.host(Side::Left), client, to(54), 10), Ok(10));
    world.run_for(Duration::from_millis(5));
    let stack = &mut world.host(Side::Left).stack;
    assert_eq!(stack.take_error(client), Some(Error::ConnectionRefused));
    assert_eq!(snmp6(&world.right, Snmp6::UdpNoPorts), 1);
    assert_eq!(snmp6(&world.left, Snmp6::IcmpInDestUnreachs), 1);
}

#[test]
fn a_large_datagram_crosses_in_pieces_and_arrives_whole() {
    for offloads in [OFFLOADS, Offloads::default()] {
        let mut world = world_with(1, Weather::FAIR, offloads);
        let server = udp(world.host(Side::Right), 53);
        for (right, len) in [
            (IpAddr::V6(link_local(Side::Right)), 20_000),
            (IpAddr::V4(Host::address(2)), 20_001),
        ] {
            let host = world.host(Side::Left);
            let client = host.stack.open(Transport::Udp).expect("a socket");
            assert_eq!(
                send_to(host, client, Endpoint::new(right, 53), len),
                Ok(len)
            );
            world.run_for(Duration::from_millis(50));
            let got = world
                .host(Side::Right)
                .stack
                .recv_from(server)
                .expect("one");
            let bytes: Vec<u8> = got.payload.slices().flatten().copied().collect();
            assert_eq!(bytes.len(), len);
            assert!((0..len).all(|at| bytes[at] == at as u8));
        }
        let pieces = world.right.stack.stats().counts.get(Count::FragmentsIn);
        assert_eq!(pieces, 14 + 14);
        assert_eq!(snmp6(&world.left, Snmp6::FragOks), 1);
        assert_eq!(snmp6(&world.right, Snmp6::ReasmOks), 1);
        assert_eq!(world.right.env.pool.used(), 0);
    }
}

#[test]
fn a_datagram_that_must_not_be_cut_is_refused_if_it_is_too_large() {
    let mut world = world();
    let client = udp(world.host(Side::Left), 0);
    let Host { stack, env } = world.host(Side::Left);
    stack
        .configure(env, client, |options| options.dont_fragment = true)
        .expect("our socket");
    let to = Endpoint::v6(link_local(Side::Right), 53);
    let host = world.host(Side::Left);
    assert_eq!(send_to(host, client, to, 1453), Err(Error::MessageTooLong));
    assert_eq!(send_to(host, client, to, 1452), Ok(1452));
}

#[test]
fn streams_deliver_every_byte_in_fair_weather_and_foul() {
    let storm = Weather {
        loss: 15,
        duplication: 5,
        reordering: 15,
        corruption: 2,
        delay: Duration::from_millis(2),
        bandwidth: 12_500_000,
        queue: 150_000,
        ..Weather::FAIR
    };
    for_each_seed(30, |seed| {
        let weather = if seed % 3 == 0 { Weather::FAIR } else { storm };
        let offloads = if seed % 2 == 0 {
            OFFLOADS
        } else {
            Offloads::default()
        };
        let mut world = world_with(seed, Weather::FAIR, offloads);
        world.change_weather(weather);
        let bytes = 20_000 + world.random.below(80_000) as usize;
        let to = IpAddr::V6(link_local(Side::Right));
        Transfer::over(&mut world, to, bytes, bytes / 2).run(&mut world);
        world.run_for(Duration::from_secs(200));
        for host in [&world.left, &world.right] {
            assert_eq!(host.env.pool.used(), 0, "buffers are left");
        }
    });
}

#[test]
fn a_device_that_cuts_gets_large_segments() {
    let mut world = world();
    let stack = &mut world.host(Side::Right).stack;
    let listener = stack.open_v6(Transport::Tcp).expect("a socket");
    let any = Endpoint::v6(Ipv6Addr::UNSPECIFIED, 80);
    stack.bind(listener, any).expect("a free port");
    stack.listen(listener, 8).expect("a bound socket");
    let Host { stack, env } = world.host(Side::Left);
    let client = stack.open_v6(Transport::Tcp).expect("a socket");
    let to = Endpoint::v6(link_local(Side::Right), 80);
    stack.connect(env, client, to).expect("a route");
    world.run_for(Duration::from_millis(10));
    let server = world.host(Side::Right).stack.accept(listener);
    let server = server.expect("a connection");
    let (mut sent, mut got) = (0, 0);
    while got < 200_000 {
        let Host { stack, env } = world.host(Side::Left);
        sent += stack
            .send_with(env, client, 200_000 - sent, &mut |space| space.len())
            .unwrap_or(0);
        assert!(world.step());
        let Host { stack, env } = world.host(Side::Right);
        got += stack
            .recv_with(env, server, usize::MAX, &mut |bytes| bytes.len())
            .unwrap_or(0);
    }
    let segments = world.left.stack.stats().counts.get(Count::SegmentsOut);
    assert!(segments < 60, "{segments} large segments");
}

#[test]
fn a_socket_for_both_families_accepts_both() {
    let mut world = world();
    let stack = &mut world.host(Side::Right).stack;
    let listener = stack.open(Transport::Tcp).expect("a socket");
    let any = Endpoint::v6(Ipv6Addr::UNSPECIFIED, 80);
    stack.bind(listener, any).expect("a free port");
    stack.listen(listener, 8).expect("a bound socket");
    for to in [
        IpAddr::V6(link_local(Side::Right)),
        IpAddr::V4(Host::address(2)),
    ] {
        let Host { stack, env } = world.host(Side::Left);
        let client = stack.open(Transport::Tcp).expect("a socket");
        stack
            .connect(env, client, Endpoint::new(to, 80))
            .expect("a route");
        world.run_for(Duration::from_millis(10));
        let right = &mut world.host(Side::Right).stack;
        let server = right.accept(listener).expect("a connection");
        assert_eq!(right.local(server), Ok(Endpoint::new(to, 80)));
    }
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
    stack.accept(listener).expect("a connection");
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
fn a_ping_is_answered_and_pings_to_a_group_are_not() {
    let mut world = world();
    let here = link_local(Side::Left);
    for dst in [here, ALL_NODES] {
        let mut message = vec![7; ICMPV6_HEADER_BYTES + 1000];
        Icmpv6Repr::EchoRequest {
            ident: 1,
            sequence: 2,
        }
        .emit(&mut message);
        fill_icmpv6_checksum(&mut message, link_local(Side::Right), dst);
        let frame = packet(
            link_local(Side::Right),
            dst,
            next_header::ICMPV6,
            64,
            &message,
        );
        world.host(Side::Left).receive(&frame);
    }
    world.run_for(Duration::from_millis(10));
    assert_eq!(snmp6(&world.left, Snmp6::IcmpOutEchoReplies), 1);
    assert_eq!(snmp6(&world.right, Snmp6::IcmpInEchoReplies), 1);
}

#[test]
fn a_narrow_path_is_learned_from_what_we_sent_and_from_nothing_else() {
    let mut world = world();
    let right = link_local(Side::Right);
    let server = udp(world.host(Side::Right), 53);
    let client = udp(world.host(Side::Left), 4000);
    let mut quote = packet(link_local(Side::Left), right, 17, 64, &[0; 1408]);
    let at = ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES;
    let mut too_big = |world: &mut World, port: u16, mtu: u32| {
        quote[at..at + 2].copy_from_slice(&port.to_be_bytes());
        quote[at + 2..at + 4].copy_from_slice(&53_u16.to_be_bytes());
        let mut message = vec![0; ICMPV6_HEADER_BYTES];
        Icmpv6Repr::PacketTooBig(mtu).emit(&mut message);
        message.extend_from_slice(&quote[ETHERNET_HEADER_BYTES..][..1200]);
        fill_icmpv6_checksum(&mut message, ROUTER, link_local(Side::Left));
        let frame = packet(
            ROUTER,
            link_local(Side::Left),
            next_header::ICMPV6,
            64,
            &message,
        );
        world.host(Side::Left).receive(&frame);
        world.left.stack.path_mtu(IpAddr::V6(right))
    };
    assert_eq!(too_big(&mut world, 4001, 1300), 1500, "no such socket");
    assert_eq!(too_big(&mut world, 4000, 900), 1500, "no such link");
    assert_eq!(too_big(&mut world, 4000, 9000), 1500, "no narrower");
    assert_eq!(too_big(&mut world, 4000, 1300), 1300);
    let to = Endpoint::v6(right, 53);
    assert_eq!(send_to(world.host(Side::Left), client, to, 1400), Ok(1400));
    world.run_for(Duration::from_millis(10));
    let got = world
        .host(Side::Right)
        .stack
        .recv_from(server)
        .expect("one");
    assert_eq!(got.payload.len(), 1400);
    assert_eq!(snmp6(&world.left, Snmp6::FragCreates), 2);
    world.run_for(Duration::from_secs(601));
    assert_eq!(
        world.left.stack.path_mtu(IpAddr::V6(right)),
        1500,
        "tried anew"
    );
    let Host { stack, env } = world.host(Side::Left);
    stack.report_black_hole(env, IpAddr::V6(right));
    assert_eq!(stack.path_mtu(IpAddr::V6(right)), 1280);
}

#[test]
fn members_of_a_group_hear_what_is_sent_to_it_until_they_leave() {
    let mut world = world();
    for group in [
        IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb)),
        IpAddr::from([239, 1, 2, 3]),
    ] {
        let local = Endpoint {
            port: 5353,
            ..Endpoint::any_of(group)
        };
        let Host { stack, env } = world.host(Side::Right);
        let members = [(); 3].map(|()| {
            let socket = stack.open(Transport::Udp).expect("a socket");
            stack
                .configure(env, socket, |options| options.reuse_port = true)
                .expect("our socket");
            stack.bind(socket, local).expect("a shared port");
            socket
        });
        for member in &members[..2] {
            stack.join_group(env, *member, group).expect("room");
        }
        let again = stack.join_group(env, members[0], group);
        assert_eq!(again, Err(Error::AddressInUse));
        let client = {
            let stack = &mut world.host(Side::Left).stack;
            stack.open(Transport::Udp).expect("a socket")
        };
        let heard = |world: &mut World| {
            let to = Endpoint::new(group, 5353);
            assert_eq!(send_to(world.host(Side::Left), client, to, 9), Ok(9));
            world.run_for(Duration::from_millis(10));
            let stack = &mut world.host(Side::Right).stack;
            members.map(|member| stack.recv_from(member).is_ok())
        };
        assert_eq!(heard(&mut world), [true, true, false]);
        let Host { stack, env } = world.host(Side::Right);
        stack.leave_group(env, members[0], group).expect("a member");
        assert_eq!(heard(&mut world), [false, true, false]);
        let Host { stack, env } = world.host(Side::Right);
        stack.close(env, members[1]).expect("our socket");
        let before = drops(&world.right, DropReason::NotMember);
        assert_eq!(heard(&mut world), [false, false, false]);
        assert!(!world.right.stack.groups().any(|known| known == group));
        assert_eq!(drops(&world.right, DropReason::NotMember) - before, 1);
    }
    let reports = world
        .right
        .stack
        .stats()
        .counts
        .get(Count::MembershipReports);
    assert!(reports >= 4, "{reports} reports");
}

#[test]
fn a_router_that_asks_hears_of_our_groups() {
    let mut world = world();
    let before = snmp6(&world.left, Snmp6::IcmpOutMldV2Reports);
    let mut query = vec![0; 28];
    query[0] = 130;
    fill_icmpv6_checksum(&mut query, ROUTER, ALL_NODES);
    let plain = packet(ROUTER, ALL_NODES, next_header::ICMPV6, 1, &query);
    world.host(Side::Left).receive(&plain);
    assert_eq!(drops(&world.left, DropReason::BadMembership), 1, "no alert");
    let alerted = [&wire::MLD_HOP_BY_HOP[..], &query].concat();
    let frame = packet(ROUTER, ALL_NODES, next_header::HOP_BY_HOP, 1, &alerted);
    world.host(Side::Left).receive(&frame);
    world.run_for(SETTLED);
    assert_eq!(snmp6(&world.left, Snmp6::IcmpOutMldV2Reports) - before, 1);
}

#[test]
fn an_option_that_must_be_known_is_reported_with_its_place() {
    let mut world = world();
    let options = [17, 0, 0x9e, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0];
    let dst = link_local(Side::Left);
    let frame = packet(
        link_local(Side::Right),
        dst,
        next_header::DESTINATION,
        64,
        &options,
    );
    world.host(Side::Left).receive(&frame);
    assert_eq!(drops(&world.left, DropReason::BadExtension), 1);
    world.carry();
    // The report waits for the neighbour's station; look at it when it comes out.
    world.run_for(Duration::from_millis(10));
    assert_eq!(snmp6(&world.right, Snmp6::IcmpInParmProblems), 1);
}

#[test]
fn what_strangers_provoke_is_limited() {
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
    assert_eq!(
        world.left.stack.stats().counts.get(Count::IcmpErrorsOut),
        50
    );
    assert_eq!(drops(&world.left, DropReason::IcmpLimited), 950);
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
