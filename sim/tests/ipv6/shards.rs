//! A host of two stacks on one port: the first runs IPv6, the second follows it, and each has its
//! part of the connections.

use base::{Duration, Instant};
use inet::{
    AddressState, Config, Count, DropReason, Endpoint, Offloads, Share, Snmp6, SocketId, State,
    Transport,
};
use link::dispatch::{self, Dispatch};
use link::rss::{Hasher, Indirection, PortFields, Rss, Scope, bucket_of};
use link::toeplitz::{KEY_BYTES, Key};
use link::{Header, Packet, Piece};
use mbuf::{Chain, Pool};
use sim::Host;
use std::net::{IpAddr, Ipv6Addr};
use wire::{Icmpv6Repr, MacAddr, NdpOption, NdpRepr, fill_icmpv6_checksum, next_header};

use super::place::*;

const PORT: u16 = 6379;
const STEP: Duration = Duration::from_millis(50);
const TCP: u8 = 6;

fn peer_address() -> Ipv6Addr {
    link_local(sim::Side::Right)
}

fn our_address() -> Ipv6Addr {
    link_local(sim::Side::Left)
}

fn hasher() -> Hasher {
    Hasher::new(&Rss {
        key: Key([0x6d, 0x5a].repeat(KEY_BYTES / 2).try_into().expect("even")),
        ports: PortFields::default(),
        scope: Scope::Unicast,
    })
}

fn owner(packet: Option<&Packet>) -> u16 {
    Indirection::even(2).target(bucket_of(hasher().hash(packet)))
}

fn owner_of(local: Endpoint, remote: Endpoint) -> u16 {
    owner(Some(&Packet {
        src: remote.addr,
        dst: local.addr,
        protocol: TCP,
        piece: Piece::Whole,
        ports: Some((remote.port, local.port)),
        dsfield: 0,
        transport_at: 0,
    }))
}

/// A machine with two shards, as its shell runs them, and a peer on its link.
struct Link {
    shards: [Host; 2],
    peer: Host,
    now: Instant,
    /// Of the first shard, as the second one knows it.
    version: u32,
    /// What the second shard has sent.
    sent_by_second: Vec<Vec<u8>>,
}

impl Link {
    fn new() -> Self {
        let host =
            |number, seed| Host::new(number, seed, Offloads::default(), Config::default(), 2048);
        let mut shards = [host(1, 1), host(1, 2)];
        for (number, shard) in (0..).zip(&mut shards) {
            let owner_of = owner_of;
            shard.stack.set_share(Share { number, owner_of });
        }
        let mut link = Self {
            shards,
            peer: host(2, 3),
            now: Instant::from_millis(5),
            version: 0,
            sent_by_second: Vec::new(),
        };
        link.set_clocks();
        let Host { stack, env } = &mut link.shards[0];
        stack.start_ipv6(env, inet::Ipv6Config::default());
        let Host { stack, env } = &mut link.peer;
        stack.start_ipv6(env, inet::Ipv6Config::default());
        link.run_for(SETTLED);
        link
    }

    fn set_clocks(&mut self) {
        for host in self.shards.iter_mut().chain([&mut self.peer]) {
            host.env.now = self.now;
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            self.set_clocks();
            self.carry();
            for host in self.shards.iter_mut().chain([&mut self.peer]) {
                host.stack.expire(&mut host.env);
            }
            self.follow();
            self.carry();
        }
    }

    fn follow(&mut self) {
        let [first, second] = &mut self.shards;
        if self.version != first.stack.routes_version() {
            self.version = first.stack.routes_version();
            let shown = first.stack.ipv6_snapshot();
            second.stack.follow_ipv6(shown.as_ref());
        }
    }

    /// Until nobody has anything to say.
    fn carry(&mut self) {
        loop {
            let mut is_quiet = true;
            for number in 0..self.shards.len() {
                for bytes in sent(&mut self.shards[number]) {
                    is_quiet = false;
                    self.peer.receive(&bytes);
                    if number == 1 {
                        self.sent_by_second.push(bytes);
                    }
                }
            }
            for bytes in sent(&mut self.peer) {
                is_quiet = false;
                self.arrive(&bytes);
            }
            for host in self.shards.iter_mut().chain([&mut self.peer]) {
                host.stack.flush(&mut host.env);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// A frame comes by the port; the shell leads it to its shard.
    fn arrive(&mut self, bytes: &[u8]) {
        let mut buffer = self.peer.env.pool.alloc().expect("a buffer");
        buffer.append(bytes);
        let frame = Chain::from(buffer);
        let header = Header::of(&frame);
        let packet = header.and_then(|header| Packet::of(&header, &frame));
        let shown = self.shards[0].stack.ipv6_snapshot();
        let is_ours = |addr| matches!(addr, IpAddr::V6(addr) if shown.as_ref().is_some_and(|v6| v6.has(addr)));
        match dispatch::dispatch_of(&frame, is_ours) {
            Dispatch::IcmpError(quoted) => self.receive(owner(Some(&quoted)), bytes),
            Dispatch::Neighbor => {
                let mut copy = self.peer.env.pool.alloc().expect("a buffer");
                assert!(dispatch::announcement_of(&frame, &mut copy));
                self.receive(owner(packet.as_ref()), bytes);
                self.receive(1, copy.bytes());
            }
            Dispatch::TcpFragment => {}
            Dispatch::Flow | Dispatch::Dhcp => self.receive(owner(packet.as_ref()), bytes),
        }
    }

    fn receive(&mut self, shard: u16, bytes: &[u8]) {
        self.shards[usize::from(shard)].receive(bytes);
    }

    /// A router speaks.
    fn announce(&mut self, options: &[NdpOption]) {
        let link = NdpOption::SourceLink(ROUTER_MAC);
        let options: Vec<_> = [link].into_iter().chain(options.iter().copied()).collect();
        self.arrive(&ndp(ROUTER, ALL_NODES, advert(1800), &options));
        self.run_for(SETTLED);
    }

    /// Each shard waits for connections, as the members of one socket do.
    fn listen(&mut self) -> [SocketId; 2] {
        let name = Endpoint::v6(Ipv6Addr::UNSPECIFIED, PORT);
        [0, 1].map(|number| {
            let stack = &mut self.shards[number].stack;
            let socket = stack.open_v6(Transport::Tcp).expect("a socket");
            stack.bind_elsewhere(socket, name).expect("a free port");
            stack.listen(socket, 64).expect("a bound socket");
            socket
        })
    }
}

fn sent(host: &mut Host) -> Vec<Vec<u8>> {
    let frames = std::mem::take(&mut host.env.sent);
    let bytes = |frame: &mbuf::TxFrame| frame.chain.slices().flatten().copied().collect();
    frames.iter().map(bytes).collect()
}

fn connect(host: &mut Host, to: Ipv6Addr) -> SocketId {
    let socket = host.stack.open_v6(Transport::Tcp).expect("a socket");
    let to = Endpoint::v6(to, PORT);
    host.stack
        .connect(&mut host.env, socket, to)
        .expect("a way");
    socket
}

fn states(host: &Host, sockets: &[SocketId]) -> Vec<Option<State>> {
    let state = |socket: &SocketId| host.stack.state(*socket).ok();
    sockets.iter().map(state).collect()
}

#[test]
fn connections_that_a_peer_opens_are_accepted_in_both_shards() {
    let mut link = Link::new();
    let listeners = link.listen();
    let clients: Vec<_> = (0..40)
        .map(|_| connect(&mut link.peer, our_address()))
        .collect();
    link.run_for(Duration::from_secs(3));
    let all = vec![Some(State::Established); clients.len()];
    assert_eq!(states(&link.peer, &clients), all);
    let accepted = [0, 1].map(|number| {
        let Host { stack, env } = &mut link.shards[number];
        std::iter::from_fn(|| stack.accept(env, listeners[number]).ok()).count()
    });
    assert!(accepted.iter().all(|count| *count > 5), "{accepted:?}");
    assert_eq!(accepted.iter().sum::<usize>(), clients.len());
    let resets = link.shards.each_ref().map(|shard| {
        let counts = &shard.stack.stats().counts;
        counts.get(Count::ResetsOut)
    });
    assert_eq!(resets, [0, 0]);
}

#[test]
fn each_shard_opens_connections_that_come_back_to_it() {
    let mut link = Link::new();
    let Host { stack, .. } = &mut link.peer;
    let listener = stack.open_v6(Transport::Tcp).expect("a socket");
    let name = Endpoint::v6(Ipv6Addr::UNSPECIFIED, PORT);
    stack.bind(listener, name).expect("a free port");
    stack.listen(listener, 64).expect("a bound socket");
    for number in 0..2 {
        let shard = &mut link.shards[number];
        let sockets: Vec<_> = (0..8).map(|_| connect(shard, peer_address())).collect();
        link.run_for(Duration::from_secs(2));
        let all = vec![Some(State::Established); sockets.len()];
        assert_eq!(states(&link.shards[number], &sockets), all, "{number}");
    }
}

#[test]
fn the_second_shard_says_nothing_of_addresses_routers_and_groups() {
    let mut link = Link::new();
    link.announce(&[prefix(PREFIX, 9999, 9999)]);
    assert_eq!(link.sent_by_second.len(), 0);
    let solicit = NdpRepr::NeighborSolicit {
        target: our_address(),
    };
    let asker = NdpOption::SourceLink(ROUTER_MAC);
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1);
    link.arrive(&ndp(ROUTER, group, solicit, &[asker]));
    link.carry();
    assert_eq!(link.sent_by_second.len(), 0, "one answer is enough");
    connect(&mut link.shards[1], peer_address());
    link.run_for(Duration::from_secs(1));
    let asked = &link.shards[1].stack.stats().counts;
    assert_eq!(asked.get(Count::NeighborSolicits), 1, "it asks for itself");
    for shard in &link.shards {
        let known: Vec<_> = shard.stack.neighbors_v6().collect();
        assert!(known.contains(&(ROUTER, ROUTER_MAC)), "who asked is known");
    }
}

fn own_in(shard: &Host, network: Ipv6Addr) -> Option<(Ipv6Addr, AddressState)> {
    let of_network = |addr: Ipv6Addr| addr.segments()[..4] == network.segments()[..4];
    let mut addresses = shard.stack.addresses_v6();
    let found = addresses.find(|own| of_network(own.addr))?;
    Some((found.addr, found.state))
}

#[test]
fn addresses_come_grow_old_and_go_in_both_shards() {
    let mut link = Link::new();
    link.announce(&[prefix(PREFIX, 300, 100), NdpOption::Mtu(1400)]);
    let far = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 9, 0, 0, 0, 1));
    let is_state = |link: &Link, state: Option<AddressState>| {
        let [first, second] = link.shards.each_ref().map(|shard| own_in(shard, PREFIX));
        assert_eq!(first, second);
        assert_eq!(second.map(|own| own.1), state);
        let routes = link.shards.each_ref().map(|shard| {
            let lines = shard
                .stack
                .routes()
                .filter(|r| r.destination.network().is_ipv6());
            lines
                .map(|line| (line.destination, line.via))
                .collect::<Vec<_>>()
        });
        assert_eq!(routes[0], routes[1]);
    };
    is_state(&link, Some(AddressState::Preferred));
    let source = link.shards[1].stack.source_for(far);
    let (global, _) = own_in(&link.shards[0], PREFIX).expect("an address");
    assert_eq!(source, Ok(global.into()));
    assert_eq!(link.shards[1].stack.path_mtu(far), 1400);
    let shown = link.shards[0].stack.ipv6_snapshot().expect("it runs");
    assert_eq!(shown.only_source(false), Some(global));
    assert_eq!(shown.only_source(true), Some(our_address()));
    assert_eq!(shown.source_for(global), Some(global));

    link.run_for(Duration::from_secs(100));
    is_state(&link, Some(AddressState::Deprecated));
    link.announce(&[prefix(PREFIX, 400, 399)]);
    is_state(&link, Some(AddressState::Preferred));
    // The second shard is not told of a renewal, so that it must not count time itself.
    link.announce(&[prefix(PREFIX, 9000, 3000)]);
    link.run_for(Duration::from_secs(450));
    is_state(&link, Some(AddressState::Preferred));

    let Host { stack, env } = &mut link.shards[0];
    stack.remove_address_v6(env, global).expect("ours");
    link.run_for(STEP);
    is_state(&link, None);
    let Host { stack, env } = &mut link.shards[0];
    stack.stop_ipv6(env);
    link.run_for(STEP);
    assert!(!link.shards[1].stack.has_ipv6());
    is_state(&link, None);
}

#[test]
fn a_neighbour_that_moves_is_found_at_its_new_station_by_both_shards() {
    let mut link = Link::new();
    let clients = link.shards.each_mut().map(|shard| udp(shard, 0));
    let to = Endpoint::v6(peer_address(), 53);
    let send = |link: &mut Link, station: MacAddr| {
        for (shard, client) in link.shards.iter_mut().zip(clients) {
            assert_eq!(send_to(shard, client, to, 9), Ok(9));
            let sent = sent(shard);
            let stations: Vec<_> = sent.iter().map(|frame| &frame[..6]).collect();
            assert_eq!(stations, [station.0]);
        }
    };
    for (shard, client) in link.shards.iter_mut().zip(clients) {
        send_to(shard, client, to, 9).expect("a way");
    }
    link.run_for(STEP);
    send(&mut link, MacAddr([2, 0, 0, 0, 0, 2]));
    let moved = MacAddr([2, 0, 0, 0, 0, 0x77]);
    let advert = NdpRepr::NeighborAdvert {
        target: peer_address(),
        is_router: false,
        is_solicited: false,
        is_override: true,
    };
    let options = [NdpOption::TargetLink(moved)];
    link.arrive(&ndp(peer_address(), ALL_NODES, advert, &options));
    send(&mut link, moved);
}

#[test]
fn a_path_that_turns_out_narrow_is_learned_where_the_connection_is() {
    let mut link = Link::new();
    for number in 0..2 {
        let Host { stack, .. } = &mut link.peer;
        if number == 0 {
            let listener = stack.open_v6(Transport::Tcp).expect("a socket");
            let name = Endpoint::v6(Ipv6Addr::UNSPECIFIED, PORT);
            stack.bind(listener, name).expect("a free port");
            stack.listen(listener, 64).expect("a bound socket");
        }
        let socket = connect(&mut link.shards[number], peer_address());
        link.run_for(Duration::from_secs(1));
        let Host { stack, env } = &mut link.shards[number];
        let fill = &mut |space: &mut [u8]| space.len();
        stack.send_with(env, socket, 1000, fill).expect("room");
        let frames = sent(&mut link.shards[number]);
        let quoted = &frames[0][wire::ETHERNET_HEADER_BYTES..];
        let mut message = vec![0; wire::ICMPV6_HEADER_BYTES];
        message.extend(quoted);
        Icmpv6Repr::PacketTooBig(1280).emit(&mut message);
        fill_icmpv6_checksum(&mut message, ROUTER, our_address());
        link.arrive(&packet(
            ROUTER,
            our_address(),
            next_header::ICMPV6,
            64,
            &message,
        ));
        let shard = &link.shards[number];
        let mtu = shard.stack.path_mtu(peer_address().into());
        assert_eq!(mtu, 1280, "{number}");
        assert_eq!(snmp6(shard, Snmp6::IcmpInErrors), 0);
        assert_eq!(drops(shard, DropReason::Unexpected), 0);
    }
}

#[test]
fn a_station_whose_address_is_somebody_elses_hears_nothing_in_either_shard() {
    let mut link = Link::new();
    let Host { stack, env } = &mut link.shards[0];
    stack.start_ipv6(env, inet::Ipv6Config::default());
    let taken = NdpRepr::NeighborAdvert {
        target: our_address(),
        is_router: false,
        is_solicited: false,
        is_override: true,
    };
    let options = [NdpOption::TargetLink(ROUTER_MAC)];
    link.arrive(&ndp(our_address(), ALL_NODES, taken, &options));
    link.run_for(SETTLED);
    let datagram = packet(peer_address(), our_address(), 17, 64, &[0; 8]);
    for number in 0..2 {
        let before = drops(&link.shards[usize::from(number)], DropReason::Ipv6Off);
        link.receive(number, &datagram);
        let after = drops(&link.shards[usize::from(number)], DropReason::Ipv6Off);
        assert_eq!(after, before + 1, "{number}");
    }
}
