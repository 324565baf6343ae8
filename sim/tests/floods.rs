//! What a flood of unsolicited packets leaves of a connection that is open.
//!
//! The server's CPU has a millisecond of work for each millisecond, and its card holds 256
//! frames; what comes then is lost, whoever sent it. The flood alone would take two CPUs.

use std::collections::VecDeque;

use base::Duration;
use inet::{Config, Count, DropReason, Endpoint, EventKind, Offloads, SocketId, Transport, What};
use sim::{Host, frame};
use wire::{ETHERNET_HEADER_BYTES, IPV4_HEADER_BYTES, MacAddr, Protocol, Seq, TcpFlags, TcpRepr};

const PORT: u16 = 80;
const CARD_FRAMES: usize = 256;
const BATCH: usize = 64;
const TICK: Duration = Duration::from_millis(1);
/// A frame of a connection, an answer to an unsolicited packet, a refusal.
const COSTS_US: [u64; 3] = [30, 10, 1];
const UNSOLICITED_PER_TICK: usize = 200;
/// A listener's queue has room for so many at least.
const PLACES: u64 = 8;
/// How long each rate is watched.
const TICKS: u32 = 2000;
const CLIENT: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const SERVER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// A packet of source `number` to the server.
type Flood = fn(u32) -> Vec<u8>;

fn packet(number: u32, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    frame::between(100 + (number % 100) as u8, 2, protocol, payload)
}

fn syn(number: u32) -> Vec<u8> {
    let repr = TcpRepr {
        src_port: (number / 100) as u16,
        dst_port: PORT,
        seq: Seq(number),
        flags: TcpFlags::SYN,
        ..TcpRepr::default()
    };
    packet(number, Protocol::Tcp, &frame::segment(&repr, &[]))
}

fn ping(number: u32) -> Vec<u8> {
    // An echo request without data, its checksum right.
    packet(number, Protocol::Icmp, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0])
}

/// A client that asks again when it has its answer, a server that answers, and its card.
struct Scene {
    client: Host,
    server: Host,
    ends: (SocketId, SocketId),
    card: VecDeque<Vec<u8>>,
    /// Frames that found it full.
    lost: u64,
    sources: u32,
    answers: u32,
}

impl Scene {
    fn new() -> Self {
        let host = |number| {
            // Nearly every SYN wants a cookie.
            let config = Config {
                half_open_max: if number == 2 { 1 } else { 512 },
                ..Config::default()
            };
            Host::new(number, 1, Offloads::default(), config, 4096)
        };
        let (client, mut server) = (host(1), host(2));
        let listener = listen(&mut server, PORT);
        let mut scene = Self {
            client,
            server,
            ends: (listener, listener),
            card: VecDeque::new(),
            lost: 0,
            sources: 0,
            answers: 0,
        };
        scene.connect(listener);
        scene
    }

    fn connect(&mut self, listener: SocketId) {
        let stations = (100..200).chain([1]).map(|number| (number, CLIENT));
        for (number, station) in stations {
            let Host { stack, env } = &mut self.server;
            let neighbor = Host::address(number).into();
            stack.set_neighbor(env, neighbor, station).expect("room");
        }
        let Host { stack, env } = &mut self.client;
        let server = Host::address(2);
        stack
            .set_neighbor(env, server.into(), SERVER)
            .expect("room");
        self.ends.0 = connect(&mut self.client, PORT);
        for _ in 0..4 {
            self.tick(None);
        }
        let Host { stack, env } = &mut self.server;
        self.ends.1 = stack.accept(env, listener).expect("a connection");
        self.ask();
    }

    fn ask(&mut self) {
        put(&mut self.client, self.ends.0);
    }

    /// A millisecond with a burst of the flood, in the middle of which the client speaks.
    fn tick(&mut self, flood: Option<Flood>) {
        let half = UNSOLICITED_PER_TICK / 2;
        self.burst(flood, half);
        for frame in std::mem::take(&mut self.client.env.sent) {
            self.arrive(sim::cut(&frame));
        }
        self.burst(flood, half);
        self.work();
        self.listen();
        for host in [&mut self.client, &mut self.server] {
            host.env.now += TICK;
            host.stack.expire(&mut host.env);
        }
    }

    fn burst(&mut self, flood: Option<Flood>, count: usize) {
        for _ in 0..flood.map_or(0, |_| count) {
            self.sources += 1;
            self.arrive(flood.map(|packet| packet(self.sources)));
        }
    }

    fn arrive(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) {
        for frame in frames {
            match self.card.len() < CARD_FRAMES {
                true => self.card.push_back(frame),
                false => self.lost += 1,
            }
        }
    }

    /// The server's CPU takes batches from the card for as long as it has time.
    fn work(&mut self) {
        let mut left = TICK;
        while !left.is_zero() && !self.card.is_empty() {
            let batch = self.card.len().min(BATCH);
            let before = self.tally();
            for frame in self.card.drain(..batch) {
                self.server.receive_verified(&frame);
            }
            let [answered, refused] = self.tally();
            let (answered, refused) = (answered - before[0], refused - before[1]);
            let known = batch as u64 - answered - refused;
            let costs = [known, answered, refused].into_iter().zip(COSTS_US);
            let micros = costs.map(|(count, cost)| count * cost).sum();
            let Host { stack, env } = &mut self.server;
            env.spent = Duration::from_micros(micros);
            stack.flush(env);
            left -= env.spent;
            if take(&mut self.server, self.ends.1) {
                put(&mut self.server, self.ends.1);
            }
        }
    }

    /// The client hears what is for it, and asks again.
    fn listen(&mut self) {
        for frame in std::mem::take(&mut self.server.env.sent) {
            for bytes in sim::cut(&frame) {
                // Answers to the flood are no frames of the client's, though its station has them.
                self.client.receive_verified(&bytes);
            }
        }
        self.client.stack.flush(&mut self.client.env);
        if take(&mut self.client, self.ends.0) {
            self.answers += 1;
            self.ask();
        }
    }

    /// Packets of the flood answered and refused so far.
    fn tally(&self) -> [u64; 2] {
        let stats = self.server.stack.stats();
        let answered = [Count::CookiesSent, Count::EchoReplies].map(|what| stats.counts.get(what));
        let refused =
            [DropReason::SynLimited, DropReason::EchoLimited].map(|why| stats.drops.get(why));
        [answered, refused].map(|pair| pair.iter().sum())
    }

    fn watch(&mut self, flood: Option<Flood>) -> u32 {
        let before = self.answers;
        (0..TICKS).for_each(|_| self.tick(flood));
        self.answers - before
    }
}

fn listen(host: &mut Host, port: u16) -> SocketId {
    let listener = host.stack.open(Transport::Tcp).expect("a socket");
    let local = Endpoint {
        port,
        ..Endpoint::ANY
    };
    host.stack.bind(listener, local).expect("a free port");
    host.stack.listen(listener, 1).expect("a bound socket");
    listener
}

/// Connects to the server.
fn connect(host: &mut Host, port: u16) -> SocketId {
    let Host { stack, env } = host;
    let socket = stack.open(Transport::Tcp).expect("a socket");
    let to = Endpoint::v4(Host::address(2), port);
    stack.connect(env, socket, to).expect("a route");
    socket
}

fn put(host: &mut Host, socket: SocketId) {
    let fill = &mut |space: &mut [u8]| space.len();
    let sent = host.stack.send_with(&mut host.env, socket, 100, fill);
    sent.expect("room to send");
}

/// Whether something had come.
fn take(host: &mut Host, socket: SocketId) -> bool {
    let Host { stack, env } = host;
    let read = stack.recv_with(env, socket, usize::MAX, &mut |bytes| bytes.len());
    matches!(read, Ok(1..))
}

/// From the first flooded millisecond on.
fn keeps_its_rate_under(flood: Flood) {
    let mut scene = Scene::new();
    let alone = scene.watch(None);
    let flooded = scene.watch(Some(flood));
    assert!(flooded * 10 >= alone * 9, "{flooded} of {alone}");
    let [answered, refused] = scene.tally();
    assert!(answered > 0, "the flood has a share, too");
    let all = u64::from(TICKS) * UNSOLICITED_PER_TICK as u64;
    let others = all.saturating_sub(answered + refused + scene.lost);
    assert!(others <= PLACES, "{others} are not accounted for");
    assert!(scene.lost * 100 < all, "{} frames were lost", scene.lost);
}

#[test]
fn another_listener_takes_connections_under_a_flood() {
    let mut scene = Scene::new();
    let other = listen(&mut scene.server, PORT + 1);
    scene.watch(Some(syn));
    connect(&mut scene.client, PORT + 1);
    for _ in 0..4 {
        scene.tick(Some(syn));
    }
    let Host { stack, env } = &mut scene.server;
    assert!(stack.accept(env, other).is_ok());
}

#[test]
fn what_went_wrong_before_a_flood_is_still_in_the_journal_after_it() {
    let mut scene = Scene::new();
    // A segment for nobody.
    let mut stray = syn(1);
    let port = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + 2;
    stray[port..port + 2].copy_from_slice(&(PORT + 1).to_be_bytes());
    scene.server.receive_verified(&stray);
    let events = |scene: &Scene| scene.server.stack.journal().count();
    assert_eq!(events(&scene), 1);
    scene.watch(Some(syn));
    let mut drops = scene.server.stack.journal();
    let first = drops.find(|event| event.what.kind() == EventKind::Drop);
    let first = first.expect("a drop");
    assert_eq!(first.what, What::Drop(DropReason::NoSocket));
}

#[test]
fn a_connection_keeps_its_rate_under_a_flood_of_syns() {
    keeps_its_rate_under(syn);
}

#[test]
fn a_connection_keeps_its_rate_under_a_flood_of_pings() {
    keeps_its_rate_under(ping);
}

#[test]
fn a_machine_whose_connections_rest_answers_every_ping() {
    let mut scene = Scene::new();
    scene.watch(None);
    // The client asks no more.
    scene.client.env.sent.clear();
    let Host { stack, env } = &mut scene.client;
    stack.abort(env, scene.ends.0).expect("a connection");
    (0..TICKS).for_each(|_| scene.tick(None));
    for number in 0..TICKS {
        scene.arrive([ping(number)]);
        scene.work();
    }
    assert_eq!(scene.tally(), [TICKS.into(), 0]);
}
