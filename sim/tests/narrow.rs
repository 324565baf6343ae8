//! Streams and datagrams over a path that is narrower than the link, whose router says so.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Duration;
use inet::{Config, Count, Endpoint, Ipv6Config, Offloads, Transport};
use sim::lan::station;
use sim::{Host, cut, frame};
use wire::{
    ETHERNET_HEADER_BYTES, ICMP_HEADER_BYTES, IcmpRepr, Icmpv6Repr, Protocol, Unreachable,
    fill_icmpv6_checksum, next_header,
};

const PATH_MTU: usize = 1300;
const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);
const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x99);

/// Two hosts with a router between them that passes on what fits.
struct Path {
    hosts: [Host; 2],
    /// Packets that did not fit.
    refused: usize,
    /// Whether the router says so.
    is_honest: bool,
}

impl Path {
    fn new(offloads: Offloads, is_honest: bool) -> Self {
        let host = |number| {
            let mut host = Host::new(number, 1, offloads, Config::default(), 2048);
            host.stack.start_ipv6(&mut host.env, Ipv6Config::default());
            host
        };
        let mut path = Self {
            hosts: [host(1), host(2)],
            refused: 0,
            is_honest,
        };
        path.run(Duration::from_secs(20));
        path
    }

    fn run(&mut self, time: Duration) {
        let end = self.hosts[0].env.now + time;
        while self.hosts[0].env.now < end {
            for side in 0..2 {
                let host = &mut self.hosts[side];
                host.env.now += Duration::from_millis(1);
                host.stack.expire(&mut host.env);
                let sent = std::mem::take(&mut host.env.sent);
                for frame in sent.iter().flat_map(cut) {
                    self.pass(side, &frame);
                }
                let peer = &mut self.hosts[1 - side];
                peer.stack.flush(&mut peer.env);
            }
        }
    }

    fn pass(&mut self, side: usize, frame: &[u8]) {
        if frame.len() - ETHERNET_HEADER_BYTES <= PATH_MTU {
            return self.hosts[1 - side].receive(frame);
        }
        self.refused += 1;
        if self.is_honest {
            let report = too_big(side as u8 + 1, &frame[ETHERNET_HEADER_BYTES..]);
            self.hosts[side].receive(&report);
        }
    }
}

/// The router's report of a packet of host `number`.
fn too_big(number: u8, packet: &[u8]) -> Vec<u8> {
    let is_v6 = packet[0] >> 4 == 6;
    let quote = &packet[..500];
    let (dst, src) = (station(number), station(0x99));
    let mut message = vec![0; ICMP_HEADER_BYTES];
    message.extend_from_slice(quote);
    if is_v6 {
        let host = link_local(number);
        Icmpv6Repr::PacketTooBig(PATH_MTU as u32).emit(&mut message);
        fill_icmpv6_checksum(&mut message, ROUTER_V6, host);
        let header = frame::header_v6(ROUTER_V6, host, next_header::ICMPV6);
        frame::ipv6(dst, src, header, &message)
    } else {
        let reason = Unreachable::TooBig(PATH_MTU as u16);
        IcmpRepr::Unreachable(reason).emit(&mut message);
        let header = frame::header(ROUTER_V4, Host::address(number), Protocol::Icmp);
        frame::ipv4(dst, src, header, &message)
    }
}

fn link_local(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, u16::from(number))
}

fn destinations() -> [IpAddr; 2] {
    [IpAddr::V4(Host::address(2)), IpAddr::V6(link_local(2))]
}

#[test]
fn streams_shrink_to_the_path_and_later_ones_begin_so() {
    for offloads in [
        Offloads::default(),
        Offloads {
            checksum: true,
            segment_v4: true,
            segment_v6: true,
        },
    ] {
        for to in destinations() {
            let mut path = Path::new(offloads, true);
            let listener = path.hosts[1].stack.open(Transport::Tcp).expect("a socket");
            let local = Endpoint {
                port: 80,
                ..Endpoint::any_of(to)
            };
            path.hosts[1].stack.bind(listener, local).expect("free");
            path.hosts[1].stack.listen(listener, 8).expect("bound");
            // Both open before anybody knows; the third one opens after.
            let clients = [(); 2].map(|()| connect(&mut path, to));
            for client in clients {
                assert_eq!(transfer(&mut path, listener, client), 100_000);
            }
            assert!(path.refused > 0, "the link is wider");
            let refused = path.refused;
            let third = connect(&mut path, to);
            assert_eq!(transfer(&mut path, listener, third), 100_000);
            assert_eq!(path.refused, refused, "it is known by now");
            assert_eq!(path.hosts[0].stack.path_mtu(to), PATH_MTU as u32);
        }
    }
}

fn connect(path: &mut Path, to: IpAddr) -> inet::SocketId {
    let Host { stack, env } = &mut path.hosts[0];
    let client = stack.open(Transport::Tcp).expect("a socket");
    let to = Endpoint::new(to, 80);
    stack.connect(env, client, to).expect("a route");
    path.run(Duration::from_millis(20));
    client
}

/// Sends 100 kB; returns how many arrived in ten seconds.
fn transfer(path: &mut Path, listener: inet::SocketId, client: inet::SocketId) -> usize {
    let Host { stack, env } = &mut path.hosts[0];
    let sent = stack.send_with(env, client, 100_000, &mut |space| space.len());
    assert_eq!(sent, Ok(100_000));
    let Host { stack, env } = &mut path.hosts[1];
    let server = stack.accept(env, listener).expect("a connection");
    let mut got = 0;
    for _ in 0..100 {
        path.run(Duration::from_millis(100));
        let Host { stack, env } = &mut path.hosts[1];
        let read = stack.recv_with(env, server, usize::MAX, &mut |bytes| bytes.len());
        got += read.unwrap_or(0);
    }
    got
}

#[test]
fn datagrams_are_cut_once_the_path_is_known_and_around_a_black_hole_when_told() {
    for is_honest in [true, false] {
        for to in destinations() {
            let mut path = Path::new(Offloads::default(), is_honest);
            let server = path.hosts[1].stack.open(Transport::Udp).expect("a socket");
            let local = Endpoint {
                port: 53,
                ..Endpoint::any_of(to)
            };
            path.hosts[1].stack.bind(server, local).expect("free");
            let client = path.hosts[0].stack.open(Transport::Udp).expect("a socket");
            let arrives = |path: &mut Path| {
                let Host { stack, env } = &mut path.hosts[0];
                let to = Some(Endpoint::new(to, 53));
                let sent = stack.send_to(env, client, to, 1400, &mut |space| space.len());
                assert_eq!(sent, Ok(1400));
                path.run(Duration::from_millis(20));
                path.hosts[1].stack.recv_from(server).is_ok()
            };
            assert!(!arrives(&mut path), "it does not fit");
            if !is_honest {
                assert!(!arrives(&mut path), "and nobody says so");
                let Host { stack, env } = &mut path.hosts[0];
                stack.report_black_hole(env, to);
            }
            assert!(arrives(&mut path));
            let counts = &path.hosts[0].stack.stats().counts;
            assert_eq!(counts.get(Count::Fragmented), 1);
        }
    }
}
