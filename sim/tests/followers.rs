//! Datagrams that follow one another to one peer go by the headers of the last ones
//! (`core/inet/src/udp/template.rs`). Debug builds compare those with what a plan says each time; here
//! whatever may change between two datagrams does, and the peer must see it.

use base::Duration;
use inet::{
    Cidr, Count, Datagram, Endpoint, Error, Offloads, Options, SendOptions, SocketId, Transport,
};
use sim::{Host, Side, Weather, World};

const PORT: u16 = 4433;
/// Of datagrams after which the headers are surely kept.
const LENGTHS: [usize; 5] = [64, 1, 64, 777, 1472];

struct Pair {
    world: World,
    left: SocketId,
    right: SocketId,
}

fn offloads() -> [Offloads; 2] {
    let checksum = Offloads {
        checksum: true,
        ..Offloads::default()
    };
    [Offloads::default(), checksum]
}

fn peer() -> Endpoint {
    Endpoint::new(Host::address(2).into(), PORT)
}

fn to_peer() -> SendOptions {
    SendOptions::from(Some(peer()))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len) as u8).collect()
}

impl Pair {
    fn new(offloads: Offloads) -> Self {
        let mut world = World::new(1, Weather::FAIR, offloads);
        let [left, right] = [Side::Left, Side::Right].map(|side| {
            let stack = &mut world.host(side).stack;
            let socket = stack.open(Transport::Udp).expect("a socket");
            let any = Endpoint::any_of(Host::address(1).into());
            stack
                .bind(socket, Endpoint { port: PORT, ..any })
                .expect("a free port");
            socket
        });
        let mut pair = Self { world, left, right };
        for len in LENGTHS {
            pair.exchange(to_peer(), len);
        }
        pair
    }

    fn configure(&mut self, change: impl FnOnce(&mut Options)) {
        let Host { stack, env } = self.world.host(Side::Left);
        stack.configure(env, self.left, change).expect("our socket");
    }

    fn send(&mut self, options: SendOptions, len: usize) -> Result<usize, Error> {
        let Host { stack, env } = self.world.host(Side::Left);
        let (whole, mut at) = (bytes(len), 0);
        let sent = stack.send_to(env, self.left, options, len, &mut |space| {
            space.copy_from_slice(&whole[at..at + space.len()]);
            at += space.len();
            space.len()
        });
        self.world.run_for(Duration::from_millis(50));
        sent
    }

    /// A datagram comes as it was sent.
    fn exchange(&mut self, options: SendOptions, len: usize) -> Datagram {
        assert_eq!(self.send(options, len), Ok(len));
        let stack = &mut self.world.host(Side::Right).stack;
        let datagram = stack.recv_from(self.right).expect("a datagram");
        let whole: Vec<u8> = datagram.payload.slices().flatten().copied().collect();
        assert_eq!(whole, bytes(len));
        datagram
    }
}

#[test]
fn datagrams_of_all_lengths_follow_one_another() {
    for offloads in offloads() {
        let mut pair = Pair::new(offloads);
        for len in [0, 1, 2, 1471, 1472, 1473, 3000, 64, 65] {
            pair.exchange(to_peer(), len);
        }
        let counts = &pair.world.host(Side::Left).stack.stats().counts;
        assert_eq!(
            counts.get(Count::Fragmented),
            2,
            "those that no frame holds"
        );
    }
}

#[test]
fn an_option_that_changes_is_seen_by_the_next_datagram() {
    let mut pair = Pair::new(Offloads::default());
    let plain = to_peer();
    pair.configure(|options| options.ttl = 3);
    assert_eq!(pair.exchange(plain, 10).hop_limit, 3);
    pair.configure(|options| options.tos = 0x20);
    for _ in 0..3 {
        assert_eq!(pair.exchange(plain, 10).tos, 0x20);
    }
    let of_its_own = SendOptions {
        hop_limit: Some(9),
        tos: Some(0x40),
        ..plain
    };
    for _ in 0..3 {
        let datagram = pair.exchange(of_its_own, 10);
        assert_eq!((datagram.hop_limit, datagram.tos), (9, 0x40));
    }
    let datagram = pair.exchange(plain, 10);
    assert_eq!((datagram.hop_limit, datagram.tos), (3, 0x20));
    pair.configure(|options| options.segment_bytes = 100);
    assert_eq!(pair.send(plain, 200), Ok(200));
    let stack = &mut pair.world.host(Side::Right).stack;
    let lengths: Vec<usize> = std::iter::from_fn(|| stack.recv_from(pair.right).ok())
        .map(|datagram| datagram.payload.len())
        .collect();
    assert_eq!(lengths, [100, 100]);
}

#[test]
fn a_socket_without_sums_sends_none() {
    let mut pair = Pair::new(Offloads::default());
    pair.configure(|options| options.no_checksum = true);
    for _ in 0..3 {
        pair.exchange(to_peer(), 10);
    }
}

#[test]
fn a_host_that_has_another_address_sends_from_it() {
    let mut pair = Pair::new(Offloads::default());
    let moved = Host::address(77);
    let stack = &mut pair.world.host(Side::Left).stack;
    stack.set_address(Cidr::new(moved, 24));
    for _ in 0..3 {
        let datagram = pair.exchange(to_peer(), 10);
        assert_eq!(datagram.from.addr, moved);
    }
}

#[test]
fn a_peer_that_is_taken_away_gets_no_more() {
    let mut pair = Pair::new(Offloads::default());
    let Host { stack, env } = pair.world.host(Side::Left);
    stack
        .connect(env, pair.left, peer())
        .expect("a reachable peer");
    for _ in 0..4 {
        pair.exchange(SendOptions::default(), 10);
    }
    let stack = &mut pair.world.host(Side::Left).stack;
    stack.disconnect(pair.left).expect("our socket");
    let sent = pair.send(SendOptions::default(), 10);
    assert_eq!(sent, Err(Error::DestinationRequired));
}

#[test]
fn a_socket_that_is_shut_sends_no_more() {
    let mut pair = Pair::new(Offloads::default());
    let Host { stack, env } = pair.world.host(Side::Left);
    stack
        .connect(env, pair.left, peer())
        .expect("a reachable peer");
    for _ in 0..3 {
        pair.exchange(SendOptions::default(), 10);
    }
    let Host { stack, env } = pair.world.host(Side::Left);
    stack
        .shutdown(env, pair.left, inet::Shutdown::Write)
        .expect("a connected socket");
    let sent = pair.send(SendOptions::default(), 10);
    assert_eq!(sent, Err(Error::BrokenPipe));
}
