//! Many datagrams that a program gives and gets at once.

use base::Duration;
use inet::{
    Count, Datagram, DropReason, Endpoint, Error, Offloads, SendOptions, SocketId, Transport,
};
use sim::{Host, Side, Weather, World};

const PORT: u16 = 4433;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// Two hosts and a socket of each; the right one's joins datagrams if it `joins`.
fn pair(joins: bool) -> (World, SocketId, SocketId) {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let sockets = [Side::Left, Side::Right].map(|side| {
        let Host { stack, env } = world.host(side);
        let socket = stack.open(Transport::Udp).expect("a socket");
        let change = |options: &mut inet::Options| options.join_datagrams = joins;
        stack.configure(env, socket, change).expect("our socket");
        let name = Endpoint::new(Host::address(side as u8 + 1).into(), PORT);
        stack.bind(socket, name).expect("a free port");
        socket
    });
    (world, sockets[0], sockets[1])
}

/// Sends `len` bytes from the left host to the right one, cut every `segment_bytes`.
fn send(
    world: &mut World,
    socket: SocketId,
    len: usize,
    segment_bytes: u16,
) -> Result<usize, Error> {
    let Host { stack, env } = world.host(Side::Left);
    let options = SendOptions {
        to: Some(Endpoint::new(Host::address(2).into(), PORT)),
        segment_bytes: Some(segment_bytes),
        ..SendOptions::default()
    };
    let (whole, mut at) = (bytes(len), 0);
    let sent = stack.send_to(env, socket, options, len, &mut |space| {
        space.copy_from_slice(&whole[at..at + space.len()]);
        at += space.len();
        space.len()
    });
    world.run_for(Duration::from_millis(50));
    sent
}

/// What the right host's socket has: each datagram's length and the size of its parts.
fn heard(world: &mut World, socket: SocketId) -> Vec<(usize, u16)> {
    let stack = &mut world.host(Side::Right).stack;
    let all = std::iter::from_fn(|| stack.recv_from(socket).ok());
    all.map(|datagram| (datagram.payload.len(), datagram.segment_bytes))
        .collect()
}

fn whole(datagram: &Datagram) -> Vec<u8> {
    datagram.payload.slices().flatten().copied().collect()
}

#[test]
fn a_letter_is_cut_into_datagrams_of_its_size() {
    let (mut world, left, right) = pair(false);
    assert_eq!(send(&mut world, left, 2500, 1000), Ok(2500));
    assert_eq!(heard(&mut world, right), [(1000, 0), (1000, 0), (500, 0)]);
    let counts = &world.host(Side::Left).stack.stats().counts;
    assert_eq!(counts.get(Count::UdpOut), 3);
    assert_eq!(counts.get(Count::Fragmented), 0);
}

#[test]
fn a_letter_whose_bytes_cannot_be_had_is_not_sent_in_part() {
    let (mut world, left, right) = pair(false);
    let Host { stack, env } = world.host(Side::Left);
    let options = SendOptions {
        to: Some(Endpoint::new(Host::address(2).into(), PORT)),
        segment_bytes: Some(1000),
        ..SendOptions::default()
    };
    let mut pieces = 0;
    let sent = stack.send_to(env, left, options, 3000, &mut |space| {
        pieces += 1;
        if pieces < 3 { space.len() } else { 0 }
    });
    assert_eq!(sent, Ok(0));
    world.run_for(Duration::from_millis(50));
    assert_eq!(heard(&mut world, right), []);
}

#[test]
fn segments_that_no_packet_takes_and_too_many_are_refused() {
    let (mut world, left, right) = pair(false);
    assert_eq!(send(&mut world, left, 3000, 1473), Err(Error::InvalidState));
    assert_eq!(send(&mut world, left, 129, 1), Err(Error::InvalidState));
    assert_eq!(send(&mut world, left, 1472, 1472), Ok(1472));
    assert_eq!(heard(&mut world, right), [(1472, 0)]);
}

#[test]
fn datagrams_that_wait_are_joined_with_the_size_of_the_first() {
    let (mut world, left, right) = pair(true);
    for len in [300, 300, 200, 200, 400] {
        send(&mut world, left, len, 0).expect("sent");
    }
    let joined = [(800, 300), (200, 0), (400, 0)];
    assert_eq!(heard(&mut world, right), joined);
    send(&mut world, left, 4000, 1300).expect("sent");
    let stack = &mut world.host(Side::Right).stack;
    let datagram = stack.recv_from(right).expect("joined");
    assert_eq!(
        (whole(&datagram), datagram.segment_bytes),
        (bytes(4000), 1300)
    );
}

#[test]
fn what_is_joined_has_limits_and_counts_against_the_buffer() {
    let (mut world, left, right) = pair(true);
    for _ in 0..100 {
        send(&mut world, left, 20, 0).expect("sent");
    }
    assert_eq!(heard(&mut world, right), [(64 * 20, 20), (36 * 20, 20)]);
    let Host { stack, env } = world.host(Side::Right);
    let small = |options: &mut inet::Options| options.recv_buffer = 5000;
    stack.configure(env, right, small).expect("our socket");
    for _ in 0..10 {
        send(&mut world, left, 20, 0).expect("sent");
    }
    let stack = &mut world.host(Side::Right).stack;
    assert!(stack.stats().drops.get(DropReason::QueueFull) > 0);
    let datagram = stack.recv_from(right).expect("joined");
    assert!(datagram.payload.len() < 200);
    // What was taken out is no longer charged.
    assert_eq!(send(&mut world, left, 20, 0), Ok(20));
    assert_eq!(heard(&mut world, right), [(20, 0)]);
}
