//! Peers that do not read, peers whose bytes nobody reads, and programs that fill their own
//! sockets take all the packet memory that they can get. The host answers all the same, serves
//! who behaves, and has every buffer back when they are gone.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use base::Duration;
use inet::{Config, Count, Endpoint, Error, Events, MemoryLimits, Offloads, SocketId, Transport};
use sim::{Host, Side, Weather, World, for_each_seed, frame};
use wire::{ICMP_HEADER_BYTES, IcmpRepr, Protocol};

/// Buffers of the host under test: 1 MiB.
const BUFFERS: usize = 512;
/// Those of everybody else.
const PLENTY: usize = 1 << 15;
const SEEDS: u64 = 12;
/// How soon the host answers, whatever is done to it.
const PATIENCE: Duration = Duration::from_secs(2);

const OFFLOADS: Offloads = Offloads {
    checksum: true,
    segment_v4: true,
    segment_v6: true,
};

/// Two hosts: the right one has little memory. `limited` says whether it has limits that fit.
fn world(seed: u64, limited: bool) -> World {
    let mut config = Config::default();
    let weather = Weather {
        loss: (seed % 3) as u8,
        reordering: (seed % 2) as u8 * 5,
        ..Weather::FAIR
    };
    let mut world = World::with_buffers(seed, weather, OFFLOADS, config, PLENTY);
    if limited {
        config.tcp_memory = MemoryLimits::below(BUFFERS / 2 * mbuf::BLOCK_BYTES);
        config.udp_memory = MemoryLimits::below(BUFFERS / 4 * mbuf::BLOCK_BYTES);
    }
    world.right = Host::new(2, seed, OFFLOADS, config, BUFFERS);
    world.run_for(Duration::from_millis(1));
    world
}

fn listen(host: &mut Host, port: u16) -> SocketId {
    let Host { stack, .. } = host;
    let socket = stack.open(Transport::Tcp).expect("a socket");
    let any = Endpoint::ANY;
    stack.bind(socket, Endpoint { port, ..any }).expect("free");
    stack.listen(socket, 4096).expect("a bound socket");
    socket
}

/// Opens a connection from left to `port` of the host under test, which must come about.
fn open(world: &mut World, listener: SocketId, port: u16) -> [SocketId; 2] {
    let Host { stack, env } = world.host(Side::Left);
    let client = stack.open(Transport::Tcp).expect("a socket");
    let to = Endpoint::v4(Host::address(2), port);
    stack.connect(env, client, to).expect("a route");
    let mut server = Err(Error::WouldBlock);
    let is_open = world.run_until(100_000, |world| {
        let Host { stack, env } = &mut world.right;
        server = stack.accept(env, listener);
        server.is_ok()
    });
    assert!(is_open, "nobody may connect");
    [client, server.expect("a connection")]
}

/// The byte at `at` of stream `number`.
fn byte(number: usize, at: usize) -> u8 {
    (at.wrapping_mul(31) ^ at >> 8 ^ number) as u8
}

/// Sends what is left of `total` bytes of stream `number`, as far as there is room.
fn write(host: &mut Host, socket: SocketId, number: usize, done: &mut usize, total: usize) {
    let Host { stack, env } = host;
    let sent = stack.send_with(env, socket, total - *done, &mut |space| {
        for (at, place) in (*done..).zip(space.iter_mut()) {
            *place = byte(number, at);
        }
        *done += space.len();
        space.len()
    });
    assert!(matches!(sent, Ok(_) | Err(Error::WouldBlock)), "{sent:?}");
}

/// Reads all that is there and checks it.
fn read(host: &mut Host, socket: SocketId, number: usize, done: &mut usize) {
    let Host { stack, env } = host;
    let got = stack.recv_with(env, socket, usize::MAX, &mut |bytes| {
        let is_right = |(at, value): (usize, &u8)| *value == byte(number, at);
        assert!((*done..).zip(bytes).all(is_right), "other bytes");
        *done += bytes.len();
        bytes.len()
    });
    assert!(matches!(got, Ok(_) | Err(Error::WouldBlock)), "{got:?}");
}

/// Streams from one host to the other, written by a program that waits until it is woken.
struct Streams {
    from: Side,
    total: usize,
    senders: Vec<SocketId>,
    receivers: Vec<SocketId>,
    sent: Vec<usize>,
    received: Vec<usize>,
    by_socket: HashMap<SocketId, usize>,
}

impl Streams {
    fn open(world: &mut World, from: Side, count: usize, total: usize) -> Self {
        let listener = listen(&mut world.right, 80);
        let mut streams = Self {
            from,
            total,
            senders: Vec::new(),
            receivers: Vec::new(),
            sent: vec![0; count],
            received: vec![0; count],
            by_socket: HashMap::new(),
        };
        for number in 0..count {
            let [client, server] = open(world, listener, 80);
            let (sender, receiver) = match from {
                Side::Left => (client, server),
                Side::Right => (server, client),
            };
            streams.senders.push(sender);
            streams.receivers.push(receiver);
            streams.by_socket.insert(sender, number);
            let host = world.host(from);
            write(host, sender, number, &mut streams.sent[number], total);
        }
        streams
    }

    /// Senders that were woken send on.
    fn pump(&mut self, world: &mut World) {
        let host = world.host(self.from);
        for (socket, events) in std::mem::take(&mut host.env.woken) {
            if let Some(&number) = self.by_socket.get(&socket)
                && events.contains(Events::WRITABLE)
                && self.sent[number] < self.total
            {
                write(host, socket, number, &mut self.sent[number], self.total);
            }
        }
    }

    fn run(&mut self, world: &mut World, time: Duration, reads: bool) {
        let end = world.now + time;
        while world.now < end && !self.is_done() {
            world.step();
            self.pump(world);
            if reads {
                self.read(world);
            }
        }
    }

    fn read(&mut self, world: &mut World) {
        let host = world.host(self.from.peer());
        for (number, socket) in self.receivers.iter().enumerate() {
            read(host, *socket, number, &mut self.received[number]);
        }
    }

    fn is_done(&self) -> bool {
        self.received.iter().all(|bytes| *bytes == self.total)
    }

    fn close(self, world: &mut World) {
        let both = [
            (self.from, self.senders),
            (self.from.peer(), self.receivers),
        ];
        for (side, sockets) in both {
            let Host { stack, env } = world.host(side);
            for socket in sockets {
                stack.close(env, socket).expect("ours");
            }
        }
    }
}

/// The host answers a ping, and a program on it a datagram, in time.
fn expect_answers(world: &mut World) {
    let mut request = vec![0; ICMP_HEADER_BYTES];
    request.extend_from_slice(&[7; 56]);
    IcmpRepr::EchoRequest {
        ident: 1,
        sequence: 1,
    }
    .emit(&mut request);
    let ping = frame::between(1, 2, Protocol::Icmp, &request);
    let answered = |world: &World| world.right.stack.stats().counts.get(Count::EchoReplies);
    let before = answered(world);
    let end = world.now + PATIENCE;
    // Each frame is received as if by a card: without a buffer it is lost.
    while world.now < end && answered(world) == before {
        let host = world.host(Side::Right);
        host.receive(&ping);
        host.stack.flush(&mut host.env);
        world.run_for(Duration::from_millis(200));
    }
    assert!(answered(world) > before, "the host is deaf");
}

/// Nothing is left of what was.
fn expect_peace(world: &mut World) {
    world.run_for(Duration::from_secs(300));
    for host in [&world.left, &world.right] {
        assert_eq!(host.env.pool.used(), 0, "buffers are left");
        assert_eq!(host.stack.tcp_memory(), 0, "TCP was billed for nothing");
        assert_eq!(host.stack.udp_memory(), 0, "UDP was billed for nothing");
    }
}

#[test]
fn readers_that_are_slow_do_not_make_the_host_deaf() {
    for_each_seed(SEEDS, |seed| {
        let mut world = world(seed, seed % 4 != 3);
        let count = 20 + world.random.below(60) as usize;
        let mut streams = Streams::open(&mut world, Side::Right, count, 250_000);
        streams.run(&mut world, Duration::from_secs(20), false);
        expect_answers(&mut world);
        assert!(!streams.is_done(), "nobody has read");
        if seed % 2 == 0 {
            streams.run(&mut world, Duration::from_secs(600), true);
            assert!(streams.is_done(), "{:?} came", streams.received);
        }
        streams.close(&mut world);
        expect_answers(&mut world);
        expect_peace(&mut world);
    });
}

#[test]
fn connections_that_nobody_reads_do_not_make_the_host_deaf() {
    for_each_seed(SEEDS, |seed| {
        let mut world = world(seed, seed % 4 != 3);
        let count = 20 + world.random.below(60) as usize;
        let mut streams = Streams::open(&mut world, Side::Left, count, 250_000);
        streams.run(&mut world, Duration::from_secs(20), false);
        expect_answers(&mut world);
        if seed % 2 == 0 {
            streams.run(&mut world, Duration::from_secs(1200), true);
            assert!(streams.is_done(), "{:?} came", streams.received);
        }
        streams.close(&mut world);
        expect_answers(&mut world);
        expect_peace(&mut world);
    });
}

#[test]
fn a_program_that_fills_its_own_sockets_does_not_make_the_host_deaf() {
    for_each_seed(SEEDS, |seed| {
        let mut world = world(seed, seed % 4 != 3);
        let own = |port| Endpoint::v4(Ipv4Addr::LOCALHOST, port);
        let Host { stack, .. } = world.host(Side::Right);
        let sockets: Vec<SocketId> = (0..100)
            .map(|number| {
                let socket = stack.open(Transport::Udp).expect("a socket");
                stack.bind(socket, own(1000 + number)).expect("free");
                socket
            })
            .collect();
        for round in 0..40 {
            let len = 1 + world.random.below(9000) as usize;
            let Host { stack, env } = world.host(Side::Right);
            for number in 0..100 {
                let to = Some(own(1000 + (number + round) % 100));
                let sender = sockets[usize::from(number)];
                let sent = stack.send_to(env, sender, to, len, &mut |space| space.len());
                let is_honest = matches!(sent, Ok(_) | Err(Error::NoBuffers));
                assert!(is_honest, "{sent:?}");
            }
        }
        let streams = fill_streams(&mut world);
        expect_answers(&mut world);
        let Host { stack, env } = world.host(Side::Right);
        for socket in sockets.into_iter().chain(streams) {
            stack.close(env, socket).expect("ours");
        }
        expect_answers(&mut world);
        expect_peace(&mut world);
    });
}

/// Connections of the host with itself, full both ways.
fn fill_streams(world: &mut World) -> Vec<SocketId> {
    let listener = listen(world.host(Side::Right), 81);
    let mut sockets = vec![listener];
    for _ in 0..20 {
        let Host { stack, env } = world.host(Side::Right);
        let client = stack.open(Transport::Tcp).expect("a socket");
        let to = Endpoint::v4(Ipv4Addr::LOCALHOST, 81);
        stack.connect(env, client, to).expect("a route");
        world.run_for(Duration::from_millis(50));
        let host = world.host(Side::Right);
        let server = host
            .stack
            .accept(&mut host.env, listener)
            .expect("a connection");
        for socket in [client, server] {
            write(host, socket, 0, &mut 0, 1 << 20);
            sockets.push(socket);
        }
        world.run_for(Duration::from_millis(50));
    }
    sockets
}
