//! Packets whose transport is a program's own, to ourselves and over a link.

use std::net::Ipv4Addr;

use base::Instant;
use inet::{Cidr, Config, DropReason, Env, Error, Events, RawHeader, RawPacket, SocketId, Stack};
use mbuf::{Chain, HeapPool, Mbuf, Pool, TxFrame};

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
    let mut stack = Stack::new(Config::default(), [1, 2]);
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
        dst,
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
