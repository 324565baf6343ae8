//! What a small exchange costs, over the wire and over loopback.

use std::net::Ipv4Addr;

use base::Duration;
use inet::{Count, Endpoint, Error, Events, Offloads, Port, SocketId, State, Transport};
use sim::{Host, Side, Weather, World};
use wire::MacAddr;

const OFFLOADS: Offloads = Offloads {
    checksum: true,
    segment_v4: true,
    segment_v6: true,
};

fn world() -> World {
    World::new(1, Weather::FAIR, OFFLOADS)
}

fn listen(host: &mut Host, port: u16, backlog: usize) -> SocketId {
    let socket = host.stack.open(Transport::Tcp).expect("a socket");
    host.stack
        .bind(
            socket,
            Endpoint {
                port,
                ..Endpoint::ANY
            },
        )
        .expect("a free port");
    host.stack.listen(socket, backlog).expect("a bound socket");
    socket
}

fn connect(host: &mut Host, addr: Ipv4Addr, port: u16) -> SocketId {
    let socket = host.stack.open(Transport::Tcp).expect("a socket");
    host.stack
        .connect(&mut host.env, socket, Endpoint::v4(addr, port))
        .expect("a route");
    socket
}

fn send(host: &mut Host, socket: SocketId, bytes: &[u8]) -> Result<usize, Error> {
    let mut at = 0;
    host.stack
        .send_with(&mut host.env, socket, bytes.len(), &mut |space| {
            space.copy_from_slice(&bytes[at..at + space.len()]);
            at += space.len();
            space.len()
        })
}

fn recv(host: &mut Host, socket: SocketId) -> Result<Vec<u8>, Error> {
    let mut got = Vec::new();
    host.stack
        .recv_with(&mut host.env, socket, usize::MAX, &mut |bytes| {
            got.extend_from_slice(bytes);
            bytes.len()
        })?;
    Ok(got)
}

/// A connection from left to right: the client's end and the server's.
fn pair(world: &mut World, port: u16) -> (SocketId, SocketId) {
    let listener = listen(world.host(Side::Right), port, 16);
    let client = connect(world.host(Side::Left), Host::address(2), port);
    world.run_for(Duration::from_millis(1));
    let right = world.host(Side::Right);
    let accepted = right.stack.accept(&mut right.env, listener);
    let server = accepted.expect("a connection");
    (client, server)
}

/// The stations that frames which wait to be put on the link come from.
fn sources(host: &Host) -> Vec<[u8; 6]> {
    let source = |chain: &mbuf::Chain| {
        let mut source = [0; 6];
        chain.copy_to_slice(6, &mut source);
        source
    };
    let sent = host.env.sent.iter();
    sent.map(|frame| source(&frame.chain)).collect()
}

/// What a stack has prepared for a connection does not outlive the address in it.
#[test]
fn a_changed_station_is_in_the_next_frame_of_an_open_connection() {
    let mut world = world();
    let (client, server) = pair(&mut world, 6379);
    world.run_for(Duration::from_secs(1));
    let new = MacAddr([2, 0, 0, 0, 0, 9]);
    let left = world.host(Side::Left);
    let old: Port = *left.stack.port().expect("a port");
    left.stack.attach(Port { mac: new, ..old });
    for piece in [b"first".as_slice(), b"second"] {
        let left = world.host(Side::Left);
        assert_eq!(send(left, client, piece), Ok(piece.len()));
        assert_eq!(sources(left), [new.0]);
        world.run_for(Duration::from_millis(50));
        let arrived = recv(world.host(Side::Right), server);
        assert_eq!(arrived.as_deref(), Ok(piece));
    }
}

#[test]
fn a_request_and_its_response_are_one_packet_each() {
    let mut world = world();
    let (client, server) = pair(&mut world, 6379);
    world.run_for(Duration::from_secs(1));
    let before = world.frames();
    for _ in 0..100 {
        send(world.host(Side::Left), client, b"GET key\r\n").expect("room");
        assert!(world.run_until(10, |w| w.host(Side::Right).stack.unread(server) != Ok(0)));
        assert_eq!(
            recv(world.host(Side::Right), server),
            Ok(b"GET key\r\n".to_vec())
        );
        send(world.host(Side::Right), server, b"$5\r\nvalue\r\n").expect("room");
        assert!(world.run_until(10, |w| w.host(Side::Left).stack.unread(client) != Ok(0)));
        recv(world.host(Side::Left), client).expect("a response");
    }
    assert_eq!(world.frames() - before, 200);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.frames() - before, 201, "and one late acknowledgement");
}

/// Frames that so many questions of one size and short answers to them take.
fn frames_of_dialogue(question: usize) -> u64 {
    let mut world = world();
    let (client, server) = pair(&mut world, 6379);
    world.run_for(Duration::from_secs(1));
    let before = world.frames();
    for _ in 0..100 {
        send(world.host(Side::Left), client, &vec![1; question]).expect("room");
        assert!(
            world.run_until(10, |w| w.host(Side::Right).stack.unread(server)
                == Ok(question))
        );
        recv(world.host(Side::Right), server).expect("a question");
        send(world.host(Side::Right), server, b"+OK\r\n").expect("room");
        assert!(world.run_until(10, |w| w.host(Side::Left).stack.unread(client) == Ok(5)));
        recv(world.host(Side::Left), client).expect("an answer");
    }
    world.frames() - before
}

#[test]
fn answers_carry_the_acknowledgements_of_what_they_answer() {
    let frames = [9, 535, 1000, 1448].map(frames_of_dialogue);
    assert_eq!(frames, [200; 4]);
    // A first question so long might be the beginning of a stream.
    assert_eq!(frames_of_dialogue(2000), 301);
}

/// Acknowledgements that travel alone when a megabyte is written in pieces of one size, and
/// read as it comes.
fn acks_of_stream(piece: usize) -> u64 {
    let mut world = world();
    let (client, server) = pair(&mut world, 80);
    let (mut sent, mut got) = (0, 0);
    while got < 1_000_000 {
        let piece = vec![7; usize::min(piece, 1_000_000 - sent)];
        sent += send(world.host(Side::Left), client, &piece).unwrap_or(0);
        assert!(world.step());
        got += recv(world.host(Side::Right), server).map_or(0, |more| more.len());
    }
    world.right.stack.stats().counts.get(Count::PureAcksOut)
}

#[test]
fn a_stream_is_acknowledged_once_in_two_segments() {
    let segments = 1_000_000 / 1448;
    for piece in [10_000, 100_000] {
        let acks = acks_of_stream(piece);
        assert!(acks <= segments / 2 + 10, "{acks} for pieces of {piece}");
    }
}

#[test]
fn a_large_write_leaves_in_few_frames_and_is_acknowledged_rarely() {
    let mut world = world();
    let (client, server) = pair(&mut world, 80);
    let bytes = vec![7; 200_000];
    let mut got = 0;
    let mut sent = 0;
    while got < bytes.len() {
        if sent < bytes.len() {
            sent += send(world.host(Side::Left), client, &bytes[sent..]).unwrap_or(0);
        }
        assert!(world.step());
        if let Ok(more) = recv(world.host(Side::Right), server) {
            got += more.len();
        }
    }
    let segments = world.left.stack.stats().counts.get(Count::SegmentsOut);
    assert!(segments < 60, "{segments} large segments");
}

#[test]
fn loopback_delivers_within_the_call() {
    let mut world = world();
    let host = world.host(Side::Left);
    let listener = listen(host, 5000, 4);
    let client = connect(host, Ipv4Addr::LOCALHOST, 5000);
    assert_eq!(host.stack.state(client), Ok(State::Established));
    let server = host
        .stack
        .accept(&mut host.env, listener)
        .expect("a connection");
    let bytes = vec![3; 100_000];
    assert_eq!(send(host, client, &bytes), Ok(bytes.len()));
    assert!(recv(host, server).is_ok_and(|got| got == bytes));
    host.stack.close(&mut host.env, client).expect("our socket");
    assert_eq!(recv(host, server), Ok(Vec::new()), "end of stream");
    host.stack.close(&mut host.env, server).expect("our socket");
    assert_eq!((host.stack.sockets_used(), host.stack.time_waits()), (1, 0));
    assert_eq!(host.env.pool.used(), 0);
}

/// Writes so many bytes in pieces and reads what arrives, without a moment passing.
fn pass_at_once(host: &mut Host, from: SocketId, to: SocketId, pieces: &[usize]) -> usize {
    for piece in pieces {
        assert_eq!(send(host, from, &vec![5; *piece]), Ok(*piece));
    }
    std::iter::from_fn(|| recv(host, to).ok())
        .map(|got| got.len())
        .sum()
}

#[test]
fn the_tail_of_a_loopback_transfer_waits_for_no_timer() {
    let pieces: [&[usize]; 4] = [&[65_536, 8], &[65_544], &[4096; 17], &[140_000, 100, 9]];
    for pieces in pieces {
        let mut world = world();
        let host = world.host(Side::Left);
        let listener = listen(host, 5000, 4);
        let client = connect(host, Ipv4Addr::LOCALHOST, 5000);
        let server = host
            .stack
            .accept(&mut host.env, listener)
            .expect("a connection");
        for round in 0..10 {
            let passed = pass_at_once(host, client, server, pieces);
            let sent: usize = pieces.iter().sum();
            assert_eq!(passed, sent, "{pieces:?} in round {round}");
        }
    }
}

#[test]
fn a_closed_port_refuses_at_once() {
    let mut world = world();
    let client = connect(world.host(Side::Left), Host::address(2), 9);
    world.run_for(Duration::from_millis(5));
    let host = world.host(Side::Left);
    assert!(
        host.stack
            .poll(client)
            .contains(Events::ERROR | Events::HANGUP)
    );
    assert_eq!(
        host.stack.take_error(client),
        Some(Error::ConnectionRefused)
    );
}

#[test]
fn a_silent_host_is_given_up() {
    let mut world = world();
    let client = connect(world.host(Side::Left), Host::address(77), 9);
    world.run_for(Duration::from_secs(200));
    let host = world.host(Side::Left);
    assert_eq!(host.stack.take_error(client), Some(Error::TimedOut));
}

#[test]
fn datagrams_arrive_with_their_sender_and_an_empty_port_is_reported() {
    let mut world = world();
    let right = world.host(Side::Right);
    let server = right.stack.open(Transport::Udp).expect("a socket");
    right
        .stack
        .bind(
            server,
            Endpoint {
                port: 53,
                ..Endpoint::ANY
            },
        )
        .expect("a free port");
    let left = world.host(Side::Left);
    let client = left.stack.open(Transport::Udp).expect("a socket");
    let ask = |host: &mut Host, port| {
        host.stack
            .connect(&mut host.env, client, Endpoint::v4(Host::address(2), port))
            .expect("a route");
        host.stack
            .send_to(&mut host.env, client, None, 1300, &mut |space| {
                space.fill(9);
                space.len()
            })
    };
    assert_eq!(ask(left, 53), Ok(1300));
    world.run_for(Duration::from_millis(5));
    let datagram = world
        .host(Side::Right)
        .stack
        .recv_from(server)
        .expect("a datagram");
    assert_eq!(
        (datagram.payload.len(), datagram.from.addr),
        (1300, Host::address(1).into())
    );
    assert_eq!(ask(world.host(Side::Left), 54), Ok(1300));
    world.run_for(Duration::from_millis(5));
    assert_eq!(
        world.host(Side::Left).stack.take_error(client),
        Some(Error::ConnectionRefused)
    );
}

#[test]
fn a_full_receiver_stops_the_sender_and_starts_it_again() {
    let mut world = world();
    let (client, server) = pair(&mut world, 80);
    let mut sent = 0;
    for _ in 0..2000 {
        sent += send(world.host(Side::Left), client, &[1; 4000]).unwrap_or(0);
        world.run_for(Duration::from_millis(1));
    }
    assert!(sent < 800_000, "{sent} bytes fit no buffer");
    world.run_for(Duration::from_secs(600));
    let mut got = 0;
    while got < sent {
        got += recv(world.host(Side::Right), server).map_or(0, |bytes| bytes.len());
        assert!(world.step(), "stuck with {got} of {sent}");
    }
}

#[test]
fn cookies_keep_a_flooded_listener_reachable() {
    let config = inet::Config {
        half_open_max: 2,
        ..inet::Config::default()
    };
    let mut world = World::with_config(1, Weather::FAIR, OFFLOADS, config);
    let listener = listen(world.host(Side::Right), 80, 100);
    let clients: Vec<_> = (0..20)
        .map(|_| connect(world.host(Side::Left), Host::address(2), 80))
        .collect();
    world.run_for(Duration::from_millis(20));
    for client in &clients {
        assert_eq!(
            world.host(Side::Left).stack.state(*client),
            Ok(State::Established)
        );
        send(world.host(Side::Left), *client, b"hello").expect("room");
    }
    world.run_for(Duration::from_millis(20));
    let right = world.host(Side::Right);
    assert!(right.stack.stats().counts.get(Count::CookiesAccepted) > 0);
    for _ in &clients {
        let server = right
            .stack
            .accept(&mut right.env, listener)
            .expect("a connection");
        assert_eq!(recv(right, server), Ok(b"hello".to_vec()));
    }
}

#[test]
fn a_finished_connection_may_be_opened_again_under_its_name() {
    let mut world = world();
    let listener = listen(world.host(Side::Right), 80, 8);
    for round in 0..3 {
        let host = world.host(Side::Left);
        let client = host.stack.open(Transport::Tcp).expect("a socket");
        host.stack
            .bind(
                client,
                Endpoint {
                    port: 4000,
                    ..Endpoint::ANY
                },
            )
            .expect("a free port");
        let to = Endpoint::v4(Host::address(2), 80);
        host.stack
            .connect(&mut host.env, client, to)
            .expect("the name is free");
        world.run_for(Duration::from_millis(5));
        let right = world.host(Side::Right);
        let server = right
            .stack
            .accept(&mut right.env, listener)
            .expect("a connection");
        // The server closes first, so that it is the one that remembers.
        right
            .stack
            .close(&mut right.env, server)
            .expect("our socket");
        world.run_for(Duration::from_millis(5));
        let left = world.host(Side::Left);
        left.stack.close(&mut left.env, client).expect("our socket");
        world.run_for(Duration::from_millis(5));
        assert_eq!(world.right.stack.time_waits(), 1, "round {round}");
    }
    let reused = world.right.stack.stats().counts.get(Count::TimeWaitsReused);
    assert_eq!(reused, 2);
}

#[test]
fn keepalive_finds_a_dead_peer() {
    let mut world = world();
    let (client, _server) = pair(&mut world, 80);
    let host = world.host(Side::Left);
    host.stack
        .configure(&mut host.env, client, |options| {
            (options.keepalive, options.keep_idle_secs) = (true, 10);
            (options.keep_interval_secs, options.keep_count) = (5, 3);
        })
        .expect("our socket");
    world.run_for(Duration::from_secs(60));
    assert_eq!(
        world.host(Side::Left).stack.state(client),
        Ok(State::Established)
    );
    world.right.stack.set_address(None);
    world.run_for(Duration::from_secs(60));
    let host = world.host(Side::Left);
    assert_eq!(host.stack.take_error(client), Some(Error::TimedOut));
}

#[test]
fn closing_with_unread_bytes_resets() {
    let mut world = world();
    let (client, server) = pair(&mut world, 80);
    send(world.host(Side::Left), client, b"never read").expect("room");
    world.run_for(Duration::from_millis(5));
    let right = world.host(Side::Right);
    right
        .stack
        .close(&mut right.env, server)
        .expect("our socket");
    world.run_for(Duration::from_millis(5));
    let left = world.host(Side::Left);
    assert_eq!(left.stack.take_error(client), Some(Error::ConnectionReset));
}

/// Whoever waits for the stack gets its turn between two calls.
#[test]
fn timers_that_are_due_together_are_run_a_few_at_a_time() {
    const CONNECTIONS: u64 = 600;
    let mut world = world();
    let left = world.host(Side::Left);
    for _ in 0..CONNECTIONS {
        connect(left, Host::address(2), 80);
    }
    left.env.sent.clear();
    left.env.now += Duration::from_millis(1500);
    let resent = |host: &Host| host.stack.stats().counts.get(Count::Retransmits);
    let mut calls = 0;
    while resent(left) < CONNECTIONS {
        let before = resent(left);
        left.stack.expire(&mut left.env);
        assert!(resent(left) - before <= 256, "all at once");
        calls += 1;
        assert!(calls < 10, "some are forgotten");
        let due = left.stack.next_deadline().expect("SYNs are repeated");
        assert_eq!(due <= left.env.now, resent(left) < CONNECTIONS);
    }
}
