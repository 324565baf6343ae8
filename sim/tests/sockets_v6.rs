//! What a program can ask of a socket of IPv6, and of groups.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Duration;
use inet::{
    Datagram, Endpoint, Error, Ipv6Config, Offloads, Options, SendOptions, SocketId, Transport,
};
use sim::{Host, Side, Weather, World};

const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x51e7);
const PORT: u16 = 5353;
/// Longer than a link-local address takes.
const SETTLED: Duration = Duration::from_secs(5);

fn world() -> World {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    for side in [Side::Left, Side::Right] {
        let Host { stack, env } = world.host(side);
        stack.start_ipv6(env, Ipv6Config::default());
    }
    world.run_for(SETTLED);
    world
}

fn bound(world: &mut World, side: Side, change: impl FnOnce(&mut Options)) -> SocketId {
    let Host { stack, env } = world.host(side);
    let socket = stack.open_v6(Transport::Udp).expect("a socket");
    stack.configure(env, socket, change).expect("our socket");
    let any = Endpoint::v6(Ipv6Addr::UNSPECIFIED, PORT);
    stack.bind(socket, any).expect("a free port");
    socket
}

fn send(
    world: &mut World,
    side: Side,
    socket: SocketId,
    options: SendOptions,
) -> Result<usize, Error> {
    let Host { stack, env } = world.host(side);
    let sent = stack.send_to(env, socket, options, 4, &mut |space| space.len());
    world.run_for(Duration::from_millis(50));
    sent
}

fn to(addr: impl Into<IpAddr>) -> SendOptions {
    Some(Endpoint::new(addr.into(), PORT)).into()
}

fn heard(world: &mut World, side: Side, socket: SocketId) -> Option<Datagram> {
    world.host(side).stack.recv_from(socket).ok()
}

fn link_local(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, side as u16 + 1)
}

#[test]
fn a_socket_of_ipv6_hears_both_families_unless_it_is_for_one() {
    for v6_only in [false, true] {
        let mut world = world();
        let server = bound(&mut world, Side::Right, |options| options.v6_only = v6_only);
        let client = bound(&mut world, Side::Left, |_| {});
        for (addr, is_heard) in [
            (IpAddr::V6(link_local(Side::Right)), true),
            (IpAddr::V4(Host::address(2)), !v6_only),
        ] {
            assert_eq!(send(&mut world, Side::Left, client, to(addr)), Ok(4));
            let datagram = heard(&mut world, Side::Right, server);
            assert_eq!(datagram.map(|got| got.to.addr), is_heard.then_some(addr));
        }
    }
}

#[test]
fn a_datagram_to_a_group_stays_on_the_link_unless_it_is_told_otherwise() {
    let mut world = world();
    let member = bound(&mut world, Side::Right, |_| {});
    let sender = bound(&mut world, Side::Left, |options| options.tos = 0x20);
    let Host { stack, env } = world.host(Side::Right);
    stack.join_group(env, member, GROUP.into()).expect("room");
    for (wish, hops) in [(None, 1), (Some(9), 9)] {
        let options = SendOptions {
            hop_limit: wish,
            ..to(GROUP)
        };
        assert_eq!(send(&mut world, Side::Left, sender, options), Ok(4));
        let got = heard(&mut world, Side::Right, member).expect("a datagram");
        assert_eq!((got.hop_limit, got.tos), (hops, 0x20));
    }
}

#[test]
fn members_on_the_same_host_hear_a_group_unless_the_sender_is_told_otherwise() {
    for is_looped in [true, false] {
        let mut world = world();
        let own = bound(&mut world, Side::Left, |options| {
            options.multicast_loop = is_looped
        });
        let Host { stack, env } = world.host(Side::Left);
        stack.join_group(env, own, GROUP.into()).expect("room");
        assert_eq!(send(&mut world, Side::Left, own, to(GROUP)), Ok(4));
        assert_eq!(heard(&mut world, Side::Left, own).is_some(), is_looped);
    }
}

#[test]
fn a_datagram_comes_from_the_address_it_was_told_to_if_that_is_ours() {
    let mut world = world();
    let server = bound(&mut world, Side::Right, |_| {});
    let client = bound(&mut world, Side::Left, |_| {});
    let from = |addr| SendOptions {
        from: Some(addr),
        ..to(link_local(Side::Right))
    };
    let own = IpAddr::V6(link_local(Side::Left));
    assert_eq!(send(&mut world, Side::Left, client, from(own)), Ok(4));
    let got = heard(&mut world, Side::Right, server).expect("a datagram");
    assert_eq!(got.from.addr, own);
    let theirs = IpAddr::V6(link_local(Side::Right));
    let refused = send(&mut world, Side::Left, client, from(theirs));
    assert_eq!(refused, Err(Error::InvalidState));
    let other_family = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let refused = send(&mut world, Side::Left, client, from(other_family));
    assert_eq!(refused, Err(Error::AddressNotAvailable));
}

#[test]
fn a_peer_taken_away_takes_the_chosen_address_with_it() {
    let mut world = world();
    let Host { stack, env } = world.host(Side::Left);
    let socket = stack.open_v6(Transport::Udp).expect("a socket");
    for addr in [
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V4(Ipv4Addr::LOCALHOST),
    ] {
        let peer = Endpoint::new(addr, 9);
        stack.connect(env, socket, peer).expect("a way");
        assert_eq!(stack.local(socket).map(|own| own.addr), Ok(addr));
        stack.disconnect(socket).expect("our socket");
        let local = stack.local(socket).map(|own| own.addr);
        assert_eq!(local, Ok(Ipv6Addr::UNSPECIFIED.into()));
    }
}
