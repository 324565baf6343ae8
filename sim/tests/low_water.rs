//! Programs that wait for many bytes at once (SO_RCVLOWAT), also on a host that has memory for few.

use base::Duration;
use inet::{Config, Endpoint, Events, MemoryLimits, Offloads, SocketId, Transport};
use sim::{Host, Side, Weather, World};

const PORT: u16 = 80;
const STREAMS: usize = 8;
/// Bytes for which each program waits.
const LOW_WATER: u32 = 256 << 10;
/// Bytes of each stream.
const TOTAL: usize = 300_000;
/// Packet buffers of the host under test: a fourth of what the programs wait for.
const BUFFERS: usize = 512;

fn world() -> World {
    let mut config = Config::default();
    let mut world = World::with_buffers(1, Weather::FAIR, Offloads::default(), config, 1 << 15);
    config.tcp_memory = MemoryLimits::below(BUFFERS / 2 * mbuf::BLOCK_BYTES);
    world.right = Host::new(2, 1, Offloads::default(), config, BUFFERS);
    world.run_for(Duration::from_millis(1));
    world
}

/// Both ends of so many connections whose servers' programs wait for so many bytes.
fn connections(world: &mut World, count: usize, low_water: u32) -> Vec<[SocketId; 2]> {
    let here = Endpoint::v4(Host::address(2), PORT);
    let Host { stack, env } = world.host(Side::Right);
    let listener = stack.open(Transport::Tcp).unwrap();
    stack.bind(listener, here).unwrap();
    stack.listen(listener, 64).unwrap();
    stack
        .configure(env, listener, |options| {
            options.receive_low_water = low_water
        })
        .unwrap();
    let open = |_| {
        let Host { stack, env } = world.host(Side::Left);
        let client = stack.open(Transport::Tcp).unwrap();
        stack.connect(env, client, here).unwrap();
        world.run_for(Duration::from_millis(100));
        let Host { stack, env } = world.host(Side::Right);
        [client, stack.accept(env, listener).unwrap()]
    };
    (0..count).map(open).collect()
}

fn send(host: &mut Host, socket: SocketId, max: usize) -> usize {
    let Host { stack, env } = host;
    let sent = stack.send_with(env, socket, max, &mut |space| space.len());
    sent.unwrap_or(0)
}

fn write(host: &mut Host, socket: SocketId, left: &mut usize) {
    *left -= send(host, socket, *left);
}

fn is_readable(world: &World, socket: SocketId) -> bool {
    world.right.stack.poll(socket).contains(Events::READABLE)
}

/// What a program reads that has been told that it may.
fn read(host: &mut Host, socket: SocketId) -> usize {
    let Host { stack, env } = host;
    match stack.poll(socket).contains(Events::READABLE) {
        true => stack
            .recv_with(env, socket, usize::MAX, &mut |bytes| bytes.len())
            .unwrap_or(0),
        false => 0,
    }
}

#[test]
fn who_waits_for_more_than_memory_holds_is_told_of_what_there_is() {
    let mut world = world();
    let ends = connections(&mut world, STREAMS, LOW_WATER);
    let (mut left, mut received) = ([TOTAL; STREAMS], [0; STREAMS]);
    world.right.env.woken.clear();
    // A few are left below their low water in the end.
    let is_done = |received: &[usize]| {
        let is_near = |got: &usize| TOTAL - got < LOW_WATER as usize;
        received.iter().all(is_near)
    };
    let is_over = world.run_until(400_000, |world| {
        for ([client, _], left) in ends.iter().zip(&mut left) {
            if *left != 0 {
                write(world.host(Side::Left), *client, left);
            }
        }
        let woken = std::mem::take(&mut world.right.env.woken);
        for ([_, server], received) in ends.iter().zip(&mut received) {
            if woken.iter().any(|(socket, _)| socket == server) {
                *received += read(world.host(Side::Right), *server);
            }
        }
        is_done(&received)
    });
    assert!(is_over, "{received:?} of {TOTAL} bytes each");
}

#[test]
fn bytes_below_the_low_water_wake_calls_and_nobody_who_polls() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let [client, server] = connections(&mut world, 1, 1000)[0];
    for unread in (100..=1100).step_by(100) {
        world.right.env.woken.clear();
        assert_eq!(send(world.host(Side::Left), client, 100), 100);
        world.run_for(Duration::from_millis(100));
        assert_eq!(world.right.stack.unread(server), Ok(unread));
        let events = match unread < 1000 {
            true => Events::empty(),
            false => Events::READABLE,
        };
        assert_eq!(world.right.env.woken, [(server, events)], "{unread}");
    }
}

/// A stream whose buffer is full, and whose peer has more to send.
fn full(world: &mut World) -> [SocketId; 2] {
    let [client, server] = connections(world, 1, 1)[0];
    let mut before = usize::MAX;
    while world.right.stack.unread(server) != Ok(before) {
        before = world.right.stack.unread(server).unwrap();
        while send(world.host(Side::Left), client, usize::MAX) != 0 {}
        world.run_for(Duration::from_millis(100));
    }
    [client, server]
}

/// As much time as an update of the window and what it lets go take. The peer asks by itself much later.
const UPDATE: Duration = Duration::from_millis(50);

#[test]
fn a_low_water_that_is_raised_over_a_full_buffer_opens_the_window() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let [_, server] = full(&mut world);
    let unread = world.right.stack.unread(server).unwrap();
    let Host { stack, env } = world.host(Side::Right);
    let low_water = unread as u32 + 10_000;
    stack
        .configure(env, server, |options| options.receive_low_water = low_water)
        .unwrap();
    assert!(!is_readable(&world, server));
    world.run_for(UPDATE);
    assert!(is_readable(&world, server));
}

#[test]
fn a_full_buffer_that_is_made_larger_opens_the_window() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let [_, server] = full(&mut world);
    let unread = world.right.stack.unread(server).unwrap();
    let Host { stack, env } = world.host(Side::Right);
    stack
        .configure(env, server, |options| options.recv_buffer *= 2)
        .unwrap();
    world.run_for(UPDATE);
    assert!(world.right.stack.unread(server).unwrap() > unread);
}

#[test]
fn who_polls_is_told_when_a_buffer_is_made_smaller_than_what_is_in_it() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let [client, server] = connections(&mut world, 1, 20_000)[0];
    send(world.host(Side::Left), client, 10_000);
    world.run_for(UPDATE);
    assert!(!is_readable(&world, server));
    world.right.env.woken.clear();
    let Host { stack, env } = world.host(Side::Right);
    stack
        .configure(env, server, |options| options.recv_buffer = 8000)
        .unwrap();
    assert!(is_readable(&world, server));
    assert_eq!(world.right.env.woken, [(server, Events::READABLE)]);
}
