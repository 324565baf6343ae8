//! Datagrams and streams over IPv6, whole and in pieces.

use base::Duration;
use inet::{Count, Endpoint, Error, Offloads, PathDiscovery, Snmp6, Transport};
use sim::{Host, Side, Transfer, Weather, for_each_seed};
use std::net::{IpAddr, Ipv6Addr};

use super::place::*;

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
        .configure(env, client, |options| {
            options.path_discovery = PathDiscovery::Always
        })
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
    let Host { stack, env } = world.host(Side::Right);
    let server = stack.accept(env, listener);
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
        let Host { stack: right, env } = world.host(Side::Right);
        let server = right.accept(env, listener).expect("a connection");
        assert_eq!(right.local(server), Ok(Endpoint::new(to, 80)));
    }
}
