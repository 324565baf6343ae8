//! What changes while a stack runs when an administrator changes its configuration.

use std::net::Ipv4Addr;

use base::Duration;
use inet::{
    Algorithm, Config, Count, Endpoint, Error, Offers, Offloads, PortRange, SocketId, State,
    Transport,
};
use sim::{Closer, Crowd, Host, Side, Weather, World};
use wire::{ETHERNET_HEADER_BYTES, Ipv4View, TcpView};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn world() -> World {
    World::new(1, Weather::FAIR, Offloads::default())
}

fn change(host: &mut Host, change: impl FnOnce(&mut Config)) {
    let mut config = *host.stack.config();
    change(&mut config);
    host.stack.reconfigure(config);
}

fn listen(host: &mut Host) {
    let socket = host.stack.open(Transport::Tcp).expect("a socket");
    let local = Endpoint {
        port: 80,
        ..Endpoint::ANY
    };
    host.stack.bind(socket, local).expect("a free port");
    host.stack.listen(socket, 100).expect("a bound socket");
}

fn connect(host: &mut Host, to: Ipv4Addr) -> Result<SocketId, Error> {
    let socket = host.stack.open(Transport::Tcp)?;
    let Host { stack, env } = host;
    stack.connect(env, socket, Endpoint::v4(to, 80))?;
    Ok(socket)
}

/// The first segment that connecting sends.
fn syn(host: &mut Host) -> (u8, wire::TcpOptions) {
    // The station is known, so that nothing waits for an answer.
    let station = wire::MacAddr([2, 0, 0, 0, 0, 2]);
    let set = host
        .stack
        .set_neighbor(&mut host.env, SERVER.into(), station);
    set.expect("room");
    host.env.sent.clear();
    connect(host, SERVER).expect("a route");
    let frame = sim::cut(&host.env.sent.remove(0)).remove(0);
    let packet = &frame[ETHERNET_HEADER_BYTES..];
    let ip = Ipv4View::parse(packet, packet.len()).expect("a packet");
    let tcp = TcpView::parse(&packet[20..]).expect("a segment");
    (ip.ttl(), tcp.options())
}

#[test]
fn a_narrower_range_of_ports_and_those_reserved_in_it_bound_what_connects() {
    let mut world = world();
    listen(world.host(Side::Right));
    let left = world.host(Side::Left);
    let range = |first, last| PortRange::new(first, last).expect("some ports");
    change(left, |config| config.ports = range(5000, 5009));
    let reserved = vec![range(5003, 5004), range(5004, 5005), range(4000, 5000)];
    left.stack.reserve_ports(reserved);
    let united = [range(4000, 5000), range(5003, 5005)];
    assert_eq!(left.stack.reserved_ports(), united);
    let mut ports: Vec<u16> = (0..6)
        .map(|_| {
            let socket = connect(left, SERVER).expect("a port");
            left.stack.local(socket).expect("our socket").port
        })
        .collect();
    ports.sort_unstable();
    assert_eq!(ports, [5001, 5002, 5006, 5007, 5008, 5009]);
    assert_eq!(connect(left, SERVER), Err(Error::AddressNotAvailable));
    // Who asks for one by number gets it.
    let socket = left.stack.open(Transport::Tcp).expect("a socket");
    let asked = Endpoint::v4(Ipv4Addr::UNSPECIFIED, 5004);
    assert_eq!(left.stack.bind(socket, asked), Ok(()));
    left.stack.reserve_ports(Vec::new());
    assert!(connect(left, SERVER).is_ok());
}

#[test]
fn fewer_finished_connections_are_kept_at_once_and_none_if_none_may_be() {
    let mut world = world();
    let mut crowd = Crowd::new(&mut world, 10, Host::address(2), Closer::Server);
    crowd.run(&mut world, 1, Duration::from_millis(10));
    let right = world.host(Side::Right);
    let before = right.stack.time_waits();
    assert!(before > 50, "{before}");
    change(right, |config| config.time_waits_max = 7);
    assert_eq!(right.stack.time_waits(), 7);
    let evicted = |host: &Host| host.stack.stats().counts.get(Count::TimeWaitsEvicted);
    assert_eq!(evicted(right), before as u64 - 7);
    change(right, |config| config.time_waits_max = 0);
    assert_eq!(right.stack.time_waits(), 0);
    let ended = evicted(right);
    crowd.run(&mut world, 1, Duration::from_millis(10));
    let right = world.host(Side::Right);
    assert_eq!(right.stack.time_waits(), 0);
    assert!(evicted(right) > ended, "each is counted");
}

#[test]
fn a_shorter_wait_holds_for_those_that_wait_already() {
    let mut world = world();
    let mut crowd = Crowd::new(&mut world, 10, Host::address(2), Closer::Server);
    crowd.run(&mut world, 1, Duration::from_millis(10));
    change(world.host(Side::Right), |config| config.time_wait.secs = 2);
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.host(Side::Right).stack.time_waits(), 0);
}

const NOTHING: Offers = Offers {
    sack: false,
    timestamps: false,
    window_scaling: false,
};

#[test]
fn what_is_not_offered_is_not_asked_for() {
    let mut world = world();
    let left = world.host(Side::Left);
    let (_, asked) = syn(left);
    assert!(asked.sack_permitted && asked.timestamps.is_some() && asked.window_scale.is_some());
    change(left, |config| config.offers = NOTHING);
    let (_, asked) = syn(left);
    assert!(!asked.sack_permitted && asked.timestamps.is_none() && asked.window_scale.is_none());
    assert!(asked.mss.is_some());
}

#[test]
fn what_is_not_offered_is_not_taken_with_cookies_or_without() {
    for half_open_max in [512, 0] {
        let mut world = world();
        let right = world.host(Side::Right);
        listen(right);
        change(right, |config| {
            (config.half_open_max, config.offers) = (half_open_max, NOTHING);
        });
        let client = connect(world.host(Side::Left), SERVER).expect("a route");
        world.run_for(Duration::from_millis(50));
        let stack = &world.host(Side::Left).stack;
        assert_eq!(stack.state(client), Ok(State::Established));
        let info = stack.info(client).expect("our socket");
        assert_eq!(info.mss, 1460, "timestamps would take 12");
        assert!(info.peer_window <= u16::MAX.into(), "{}", info.peer_window);
    }
}

#[test]
fn fewer_timeouts_give_up_sooner() {
    let silent = Host::address(77);
    let mut world = world();
    let left = world.host(Side::Left);
    let station = wire::MacAddr([2, 0, 0, 0, 0, 77]);
    let set = left
        .stack
        .set_neighbor(&mut left.env, silent.into(), station);
    set.expect("room");
    change(left, |config| config.retry_limits.syn_timeouts = 2);
    let client = connect(left, silent).expect("a route");
    // After one second, two more, and four more that nobody answers.
    world.run_for(Duration::from_millis(6_500));
    let stack = &mut world.host(Side::Left).stack;
    assert_eq!(stack.take_error(client), None);
    world.run_for(Duration::from_millis(1_000));
    let stack = &mut world.host(Side::Left).stack;
    assert_eq!(stack.take_error(client), Some(Error::TimedOut));
}

#[test]
fn sockets_begin_with_what_was_chosen_and_those_that_are_open_keep_what_they_have() {
    let mut world = world();
    let left = world.host(Side::Left);
    let old = left.stack.open(Transport::Tcp).expect("a socket");
    change(left, |config| {
        config.stream.keep_idle_secs = 60;
        config.stream.congestion = Algorithm::Reno;
        config.datagram.recv_buffer = 9_000;
        (config.hop_limit, config.hop_limit_v6) = (7, 8);
    });
    let stack = &mut left.stack;
    let new = stack.open(Transport::Tcp).expect("a socket");
    let datagram = stack.open(Transport::Udp).expect("a socket");
    let v6 = stack.open_v6(Transport::Udp).expect("a socket");
    let options = |id| stack.options(id).expect("our socket");
    assert_eq!((options(old).keep_idle_secs, options(old).ttl), (7200, 64));
    assert_eq!((options(new).keep_idle_secs, options(new).ttl), (60, 7));
    assert_eq!(options(new).congestion, Algorithm::Reno);
    assert_eq!(
        (options(datagram).recv_buffer, options(datagram).ttl),
        (9_000, 7)
    );
    assert_eq!((options(v6).recv_buffer, options(v6).ttl), (9_000, 8));
    let (hops, _) = syn(left);
    assert_eq!(hops, 7, "on the wire");
}
