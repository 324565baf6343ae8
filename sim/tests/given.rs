//! A connection that stands still is given to a listener, from which it is accepted.

use base::Duration;
use inet::{Endpoint, Error, Offloads, SocketId, State, Transport};
use sim::{Host, Side, Weather, World};

const PORT: u16 = 7;

/// A connection that waits at the listener of the right host; the left one's end, and the listener.
fn waiting(world: &mut World) -> (SocketId, SocketId) {
    let right = world.host(Side::Right);
    let listener = right.stack.open(Transport::Tcp).unwrap();
    let here = Endpoint::v4(Host::address(2), PORT);
    right.stack.bind(listener, here).unwrap();
    right.stack.listen(listener, 4).unwrap();
    let left = world.host(Side::Left);
    let socket = left.stack.open(Transport::Tcp).unwrap();
    left.stack.connect(&mut left.env, socket, here).unwrap();
    world.run_for(Duration::from_millis(100));
    (socket, listener)
}

fn world() -> World {
    World::new(1, Weather::FAIR, Offloads::default())
}

fn send(host: &mut Host, socket: SocketId, bytes: &[u8]) {
    let mut fill = |space: &mut [u8]| {
        space.copy_from_slice(bytes);
        space.len()
    };
    let sent = host
        .stack
        .send_with(&mut host.env, socket, bytes.len(), &mut fill);
    assert_eq!(sent, Ok(bytes.len()));
}

fn receive(host: &mut Host, socket: SocketId) -> Vec<u8> {
    let mut received = Vec::new();
    let mut take = |bytes: &[u8]| {
        received.extend_from_slice(bytes);
        bytes.len()
    };
    host.stack
        .recv_with(&mut host.env, socket, 100, &mut take)
        .unwrap();
    received
}

#[test]
fn what_waited_at_one_stack_is_accepted_from_the_next_one_with_its_bytes() {
    let mut world = world();
    let (peer, listener) = waiting(&mut world);
    send(world.host(Side::Left), peer, b"early");
    world.run_for(Duration::from_millis(100));
    let right = world.host(Side::Right);
    let waiting = right.stack.export_waiting(&mut right.env, listener);
    let [snapshot] = waiting.as_slice() else {
        panic!("one waits: {waiting:?}");
    };
    assert_eq!(
        right.stack.accept(&mut right.env, listener),
        Err(Error::WouldBlock)
    );
    // As the kernel is told of it: a socket of its own, which has it for a while.
    let socket = right.stack.open(Transport::Tcp).unwrap();
    right
        .stack
        .import(&mut right.env, socket, snapshot)
        .unwrap();
    right.stack.freeze(&mut right.env, socket).unwrap();
    right
        .stack
        .give_to_listener(&mut right.env, socket)
        .unwrap();
    assert_eq!(right.stack.state(socket), Ok(State::Closed));
    let accepted = right.stack.accept(&mut right.env, listener).unwrap();
    assert_eq!(receive(right, accepted), b"early");
    send(right, accepted, b"answer");
    // The socket that had it may end, or be used anew.
    right.stack.close(&mut right.env, socket).unwrap();
    world.run_for(Duration::from_secs(1));
    assert_eq!(receive(world.host(Side::Left), peer), b"answer");
}

#[test]
fn what_nobody_listens_for_and_what_does_not_stand_still_is_refused() {
    let mut world = world();
    let (_, listener) = waiting(&mut world);
    let right = world.host(Side::Right);
    let accepted = right.stack.accept(&mut right.env, listener).unwrap();
    let given = right.stack.give_to_listener(&mut right.env, accepted);
    assert_eq!(given, Err(Error::InvalidState));
    right.stack.close(&mut right.env, listener).unwrap();
    right.stack.freeze(&mut right.env, accepted).unwrap();
    let given = right.stack.give_to_listener(&mut right.env, accepted);
    assert_eq!(given, Err(Error::ConnectionRefused));
    right.stack.thaw(&mut right.env, accepted, true).unwrap();
    assert_eq!(right.stack.state(accepted), Ok(State::Established));
}
