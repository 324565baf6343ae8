//! Packets whose transport is a program's own, to ourselves and over a link.

use std::net::Ipv4Addr;

use base::{Duration, Instant};
use inet::{
    Cidr, Config, Count, DropReason, Endpoint, Env, Error, Events, Offloads, Port, RawHeader,
    RawPacket, SocketId, Stack, Transport,
};
use mbuf::{Chain, Checksum, HeapPool, Mbuf, Pool, RxFrame, TxFrame};
use wire::{IcmpRepr, MacAddr, Protocol, Sum, UDP_HEADER_BYTES, UdpRepr};

/// A world that writes down what raw sockets would see.
struct World {
    pool: HeapPool,
    takes: bool,
    /// Protocol, bytes of the header, payload.
    seen: Vec<(u8, usize, Vec<u8>)>,
}

impl Env for World {
    fn now(&self) -> Instant {
        Instant::START
    }

    fn random(&mut self) -> u64 {
        4
    }

    fn alloc(&mut self) -> Option<Mbuf> {
        self.pool.alloc()
    }

    fn transmit(&mut self, _frame: TxFrame) {}

    fn raw(&mut self, packet: &RawPacket<'_>) -> bool {
        let payload = packet.payload.slices().flatten().copied().collect();
        self.seen
            .push((packet.protocol, packet.header.len(), payload));
        self.takes
    }

    fn wake(&mut self, _socket: SocketId, _events: Events) {}
}

fn world(takes: bool) -> (Stack, World) {
    let mut stack = Stack::new(Config::default(), [1, 2]).unwrap();
    stack.set_address(Cidr::new(Ipv4Addr::new(10, 0, 0, 1), 24));
    let world = World {
        pool: HeapPool::new(64),
        takes,
        seen: Vec::new(),
    };
    (stack, world)
}

fn header(dst: Ipv4Addr, protocol: u8) -> RawHeader {
    RawHeader {
        src: None,
        dst: dst.into(),
        protocol,
        ttl: 64,
        tos: 0,
        may_broadcast: false,
    }
}

fn payload(world: &mut World, bytes: &[u8]) -> Chain {
    let mut buffer = world.alloc().expect("a buffer");
    buffer.reserve(128);
    buffer.append(bytes);
    Chain::from(buffer)
}

/// An echo request, identity 7, number 1, without data.
const ECHO: [u8; 8] = [8, 0, 0xf7, 0xf7, 0, 7, 0, 1];

#[test]
fn raw_sockets_see_the_question_and_the_answer() {
    let (mut stack, mut world) = world(true);
    let echo = payload(&mut world, &ECHO);
    let sent = stack.send_raw(&mut world, &header(Ipv4Addr::LOCALHOST, 1), echo);
    assert_eq!(sent, Ok(()));
    let answer = vec![0, 0, 0xff, 0xf7, 0, 7, 0, 1];
    assert_eq!(world.seen, [(1, 20, ECHO.to_vec()), (1, 20, answer)]);
}

/// A request with `bytes` of data in several buffers.
fn large_echo(alloc: &mut dyn FnMut() -> Mbuf, bytes: usize) -> Chain {
    let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let mut message = [&[0; 8][..], &data].concat();
    let request = IcmpRepr::EchoRequest {
        ident: 7,
        sequence: 1,
    };
    request.emit(&mut message);
    let mut chain = Chain::new();
    for part in message.chunks(1001) {
        let mut buffer = alloc();
        buffer.reserve(128);
        buffer.append(part);
        chain.push_back(buffer);
    }
    chain
}

#[test]
fn a_large_ping_is_answered_with_all_its_data() {
    let (mut stack, mut world) = world(true);
    let echo = large_echo(&mut || world.alloc().expect("a buffer"), 39_999);
    let sent = stack.send_raw(&mut world, &header(Ipv4Addr::LOCALHOST, 1), echo);
    assert_eq!(sent, Ok(()));
    let [(_, _, question), (_, _, answer)] = &world.seen[..] else {
        panic!("{} messages", world.seen.len());
    };
    assert_eq!((question[0], answer[0]), (8, 0));
    assert!(question[8..] == answer[8..]);
    assert!(Sum::new().bytes(answer).is_valid());
}

#[test]
fn a_large_ping_comes_back_over_a_link_in_pieces() {
    let mut world = sim::World::new(1, sim::Weather::FAIR, inet::Offloads::default());
    let sim::Host { stack, env } = world.host(sim::Side::Left);
    let echo = large_echo(&mut || env.alloc().expect("a buffer"), 4000);
    let peer = Ipv4Addr::new(10, 0, 0, 2);
    assert_eq!(stack.send_raw(env, &header(peer, 1), echo), Ok(()));
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.right.stack.stats().counts.get(Count::EchoReplies), 1);
    assert_eq!(world.left.stack.stats().counts.get(Count::Reassembled), 1);
}

#[test]
fn a_protocol_that_somebody_takes_is_not_refused() {
    for takes in [true, false] {
        let (mut stack, mut world) = world(takes);
        let bytes = payload(&mut world, b"routes");
        let ospf = header(Ipv4Addr::new(10, 0, 0, 1), 89);
        stack.send_raw(&mut world, &ospf, bytes).expect("a way");
        assert_eq!(world.seen.first(), Some(&(89, 20, b"routes".to_vec())));
        let refused = stack.stats().drops.get(DropReason::UnknownProtocol);
        assert_eq!(refused, u64::from(!takes));
    }
}

/// A datagram from a peer to port 4433, as a card hands it over.
fn datagram() -> RxFrame {
    let header = UdpRepr {
        src_port: 50_000,
        dst_port: 4433,
        payload_len: 0,
    };
    let mut bytes = [0; UDP_HEADER_BYTES];
    // One without a sum is not remembered. The card has looked at it.
    header.emit(&mut bytes, 1);
    let frame = sim::frame::between(2, 1, Protocol::Udp, &bytes);
    let mut buffer = HeapPool::new(1).alloc().expect("a buffer");
    assert_eq!(buffer.append(&frame), frame.len());
    RxFrame {
        chain: Chain::from(buffer),
        checksum: Checksum::Verified,
        ..RxFrame::default()
    }
}

#[test]
fn a_raw_socket_sees_datagrams_of_a_flow_that_is_known_already() {
    let (mut stack, mut world) = world(false);
    stack.attach(Port {
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        offloads: Offloads::default(),
    });
    let socket = stack.open(Transport::Udp).expect("a socket");
    let bound = stack.bind(socket, Endpoint::v4(Ipv4Addr::UNSPECIFIED, 4433));
    assert_eq!(bound, Ok(()));
    for _ in 0..4 {
        stack.receive(&mut world, datagram());
    }
    assert_eq!(world.seen, []);
    stack.show_transports();
    stack.receive(&mut world, datagram());
    assert_eq!(world.seen.len(), 1);
    let arrived = (0..).take_while(|_| stack.recv_from(socket).is_ok());
    assert_eq!(arrived.count(), 5);
}

#[test]
fn what_cannot_go_is_refused() {
    let (mut stack, mut world) = world(true);
    let bytes = payload(&mut world, b"x");
    let far = header(Ipv4Addr::new(192, 0, 2, 1), 1);
    let sent = stack.send_raw(&mut world, &far, bytes.clone());
    assert_eq!(sent, Err(Error::NetworkUnreachable));
    let mut long = Chain::new();
    while long.len() <= usize::from(u16::MAX) {
        let mut part = world.alloc().expect("a buffer");
        part.extend(part.tailroom());
        long.push_back(part);
    }
    let sent = stack.send_raw(&mut world, &header(Ipv4Addr::LOCALHOST, 1), long);
    assert_eq!(sent, Err(Error::MessageTooLong));
}
