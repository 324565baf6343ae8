//! One connection goes from a host to another of the same address, as from a parent to its child.

mod support;

use base::Instant;
use posix::{Errno, Events, Host, Shutdown, Transport, Trigger};
use support::*;

/// The number under which the child has it.
const CHILDS: u32 = 9;

fn now(wire: &Wire) -> Instant {
    Instant::from_nanos(wire.now)
}

/// The server's connection of one number goes to a fresh host, under another number. Frames go there, too.
fn moves(wire: &mut Wire, number: u32, new: u32) -> Side {
    let now = now(wire);
    let parent = wire.server();
    parent.look_at_all(now);
    let open = parent.socket(number).unwrap();
    let bytes = parent.detach(&open).unwrap();
    let mut child = Side::new(1);
    child.host.attach(&bytes, &[new], now).unwrap();
    assert_eq!(parent.forget_moved(&open), [number]);
    child.host.flush();
    let sent = wire.sides[0].port.take_sent();
    child.port.borrow_mut().sent.splice(0..0, sent);
    std::mem::replace(&mut wire.sides[0], child)
}

#[test]
fn bytes_in_both_directions_arrive_once_and_in_order_through_many_hosts() {
    let mut wire = Wire::connected();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 3) as u8).collect();
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let (mut asked, mut answered, mut turns, mut number) = (0, 0, 0, SERVED);
    while there.len() != bytes.len() || back.len() != bytes.len() {
        asked += send(wire.client(), CLIENT, &bytes[asked..]).unwrap_or(0);
        answered += send(wire.server(), number, &bytes[answered..]).unwrap_or(0);
        there.extend(receive(wire.server(), number, 30_000).unwrap_or_default());
        back.extend(receive(wire.client(), CLIENT, 30_000).unwrap_or_default());
        turns += 1;
        if turns % 4 == 0 {
            moves(&mut wire, number, number + 1);
            number += 1;
        }
        wire.step();
        assert!(turns < 20_000, "{} there, {} back", there.len(), back.len());
    }
    assert!(there == bytes && back == bytes);
    assert!(number > SERVED + 5, "{number}");
}

#[test]
fn who_had_it_says_nothing_of_it_any_more_and_serves_others() {
    let mut wire = Wire::connected();
    wire.connect(CLIENT + 10, SERVED + 10);
    let mut parent = moves(&mut wire, SERVED, CHILDS);
    assert_eq!(parent.host.socket(SERVED).err(), Some(Errno::BAD_NUMBER));
    assert!(parent.host.socket(SERVED + 10).is_ok());
    parent.port.take_sent();
    for step in 0..100 {
        parent
            .host
            .turn(Instant::from_nanos(wire.now + step * STEP_NANOS));
        parent.host.flush();
    }
    assert!(parent.port.take_sent().is_empty());
    assert_eq!(send(wire.client(), CLIENT, b"to the child"), Ok(12));
    wire.steps(10);
    assert_eq!(receive(wire.server(), CHILDS, 20).unwrap(), b"to the child");
}

#[test]
fn what_is_not_taken_goes_on_where_it_was() {
    let mut wire = Wire::connected();
    assert_eq!(send(wire.client(), CLIENT, b"unread"), Ok(6));
    wire.steps(10);
    let open = wire.server().socket(SERVED).unwrap();
    let bytes = wire.server().detach(&open).unwrap();
    assert!(send(wire.server(), SERVED, b"no").is_err());
    let (at, mut other) = (now(&wire), Side::new(2));
    assert_eq!(
        other.host.attach(&bytes, &[CHILDS], at).err(),
        Some(Errno::INVALID)
    );
    wire.server().reattach(&open);
    assert_eq!(receive(wire.server(), SERVED, 10).unwrap(), b"unread");
    assert_eq!(send(wire.server(), SERVED, b"answer"), Ok(6));
    wire.steps(10);
    assert_eq!(receive(wire.client(), CLIENT, 10).unwrap(), b"answer");
}

#[test]
fn a_connection_that_is_held_outlives_its_last_number() {
    let mut wire = Wire::connected();
    let open = wire.server().socket(SERVED).unwrap();
    wire.server().hold(&open);
    wire.server().close(SERVED);
    wire.steps(50);
    assert_eq!(receive(wire.client(), CLIENT, 1), Err(Errno::AGAIN));
    assert!(wire.server().is_here(&open));
    wire.server().let_go_of(&open);
    assert!(!wire.server().is_here(&open));
    wire.server().let_go_of(&open);
    wire.steps(50);
    assert_eq!(receive(wire.client(), CLIENT, 1).unwrap(), b"");
}

#[test]
fn a_connection_that_is_closed_while_it_stands_still_ends_when_nobody_takes_it() {
    let mut wire = Wire::connected();
    let open = wire.server().socket(SERVED).unwrap();
    wire.server().hold(&open);
    wire.server().detach(&open).unwrap();
    wire.server().close(SERVED);
    assert!(wire.server().numbers_of(&open).is_empty());
    wire.steps(50);
    assert_eq!(receive(wire.client(), CLIENT, 1), Err(Errno::AGAIN));
    wire.server().reattach(&open);
    wire.server().let_go_of(&open);
    wire.steps(50);
    assert_eq!(receive(wire.client(), CLIENT, 1).unwrap(), b"");
}

#[test]
fn a_connection_that_is_held_is_in_no_set_once_its_last_number_is_closed() {
    let mut wire = Wire::connected();
    wire.connect(CLIENT + 10, SERVED + 10);
    watched(&mut wire, Trigger::empty());
    let open = wire.server().socket(SERVED).unwrap();
    wire.server().hold(&open);
    assert_eq!(send(wire.client(), CLIENT, b"unread"), Ok(6));
    wire.steps(10);
    assert_eq!(collect(&mut wire), [Events::IN]);
    wire.server().close(SERVED);
    assert!(collect(&mut wire).is_empty());
    assert_eq!(send(wire.client(), CLIENT, b"more"), Ok(4));
    wire.steps(10);
    assert!(collect(&mut wire).is_empty());
    // Another socket has the number now, and the set.
    wire.server().duplicate(SERVED + 10, SERVED).unwrap();
    let another = wire.server().socket(SERVED).unwrap();
    let set = wire.server().set(SET).unwrap();
    let watch = watch(Events::READABLE, Trigger::empty());
    set.add(SERVED, &another, watch).unwrap();
    assert!(collect(&mut wire).is_empty());
    wire.server().let_go_of(&open);
    assert!(!wire.server().is_here(&open));
}

#[test]
fn a_connection_that_is_held_and_moves_is_not_closed_by_who_let_it_go() {
    let mut wire = Wire::connected();
    let open = wire.server().socket(SERVED).unwrap();
    wire.server().hold(&open);
    let mut parent = moves(&mut wire, SERVED, CHILDS);
    parent
        .host
        .add_socket(SERVED, Transport::Tcp, true)
        .unwrap();
    parent.host.let_go_of(&open);
    assert!(parent.host.socket(SERVED).is_ok(), "another has its place");
    wire.steps(50);
    assert_eq!(receive(wire.client(), CLIENT, 1), Err(Errno::AGAIN));
}

#[test]
fn a_connection_that_is_over_moves_with_what_nobody_has_read() {
    let mut wire = Wire::connected();
    assert_eq!(send(wire.client(), CLIENT, b"last"), Ok(4));
    wire.client().close(CLIENT);
    wire.steps(10);
    let open = wire.server().socket(SERVED).unwrap();
    wire.server().shutdown(&open, Shutdown::Write).unwrap();
    wire.steps(10);
    assert_eq!(wire.server().ends(&open), Ok(None));
    assert_eq!(wire.server().movable().len(), 1);
    moves(&mut wire, SERVED, CHILDS);
    assert!(ready(wire.server(), CHILDS).contains(Events::READABLE));
    assert_eq!(receive(wire.server(), CHILDS, 10).unwrap(), b"last");
    assert_eq!(receive(wire.server(), CHILDS, 10).unwrap(), b"");
}

#[test]
fn what_has_no_peer_yet_is_not_offered() {
    let mut wire = Wire::new();
    wire.listen();
    wire.client()
        .add_socket(CLIENT, Transport::Tcp, true)
        .unwrap();
    let open = wire.client().socket(CLIENT).unwrap();
    let _ = wire.client().connect(&open, address(1), PORT + 1);
    assert!(wire.client().movable().is_empty());
    assert!(wire.server().movable().is_empty());
}

fn attaches(host: &mut Host<Shared>, bytes: &[u8], numbers: &[u32]) -> Result<(), Errno> {
    let made = host.attach(bytes, numbers, Instant::from_nanos(STEP_NANOS));
    made.map(drop)
}

#[test]
fn bytes_that_are_no_connection_make_none() {
    let mut wire = Wire::connected();
    let open = wire.server().socket(SERVED).unwrap();
    let bytes = wire.server().detach(&open).unwrap();
    let mut child = Side::new(1);
    for len in 0..bytes.len() {
        assert!(attaches(&mut child.host, &bytes[..len], &[CHILDS]).is_err());
    }
    assert!(attaches(&mut child.host, &bytes, &[]).is_err());
    let all = wire.client().checkpoint().unwrap();
    assert!(
        attaches(&mut child.host, &all, &[CHILDS]).is_err(),
        "another's address"
    );
    assert!(child.host.socket(CHILDS).is_err());
    assert_eq!(
        attaches(&mut child.host, &bytes, &[CHILDS, CHILDS + 1]),
        Ok(())
    );
    assert_eq!(
        attaches(&mut child.host, &bytes, &[CHILDS]),
        Err(Errno::INVALID),
        "the number is taken"
    );
    assert!(
        attaches(&mut child.host, &bytes, &[CHILDS + 2]).is_err(),
        "there is one"
    );
    assert!(child.host.socket(CHILDS + 2).is_err());
}

/// Those who wait at the server's listener go to a fresh host, which has the same.
fn backlog_moves(wire: &mut Wire) -> (usize, Side) {
    let now = now(wire);
    let parent = wire.server();
    let listener = parent.socket(LISTENER).unwrap();
    let socket = parent.unconnected().remove(0);
    let bytes = parent.copy(&listener).unwrap();
    let mut child = Side::new(1);
    child.host.inherit(&socket).unwrap();
    let own = child.host.socket(LISTENER).unwrap();
    let (count, all) = child.host.attach_waiting(&bytes, &own, now).unwrap();
    assert_eq!(count, all);
    parent.forget_waiting(&listener, count);
    child.host.flush();
    (count, std::mem::replace(&mut wire.sides[0], child))
}

/// Two clients wait at the server's listener, with bytes that nobody has read.
fn with_two_waiting() -> Wire {
    let mut wire = Wire::new();
    wire.listen();
    for client in [CLIENT, CLIENT + 1] {
        let open = wire.call(client);
        wire.until(|wire| wire.client().finish_connecting(&open))
            .unwrap();
        assert_eq!(send(wire.client(), client, b"unread"), Ok(6));
    }
    wire.steps(10);
    wire
}

#[test]
fn who_waits_at_a_listener_of_a_parent_that_does_not_serve_is_served_by_a_child() {
    let mut wire = with_two_waiting();
    assert!(wire.server().crowded_listeners().is_empty(), "it serves");
    wire.server().share_with_child();
    let crowded = wire.server().crowded_listeners();
    assert_eq!(crowded.len(), 1);
    assert_eq!(crowded[0].1, [LISTENER]);
    let (count, mut parent) = backlog_moves(&mut wire);
    assert_eq!(count, 2);
    assert!(parent.host.crowded_listeners().is_empty());
    let listener = wire.server().socket(LISTENER).unwrap();
    assert!(listener.ready().contains(Events::READABLE));
    for (client, served) in [(CLIENT, SERVED), (CLIENT + 1, SERVED + 10)] {
        wire.server().accept(&listener, served, true).unwrap();
        assert_eq!(receive(wire.server(), served, 10).unwrap(), b"unread");
        assert_eq!(send(wire.server(), served, b"answer"), Ok(6));
        wire.steps(10);
        assert_eq!(receive(wire.client(), client, 10).unwrap(), b"answer");
    }
    assert_eq!(wire.server().may_accept(&listener), Err(Errno::AGAIN));
}

#[test]
fn who_is_not_taken_by_a_child_waits_on() {
    let mut wire = with_two_waiting();
    let listener = wire.server().socket(LISTENER).unwrap();
    wire.server().forget_waiting(&listener, 1);
    wire.server().accept(&listener, SERVED, true).unwrap();
    let again = wire.server().may_accept(&listener);
    assert_eq!(again, Err(Errno::AGAIN));
    assert_eq!(receive(wire.server(), SERVED, 10).unwrap(), b"unread");
    assert_eq!(send(wire.server(), SERVED, b"answer"), Ok(6));
    wire.steps(10);
    assert_eq!(receive(wire.client(), CLIENT + 1, 10).unwrap(), b"answer");
}

#[test]
fn what_is_no_listener_of_this_address_has_nobody_waiting() {
    let mut wire = Wire::connected();
    let (at, listener) = (now(&wire), wire.server().socket(LISTENER).unwrap());
    let connection = wire.server().socket(SERVED).unwrap();
    let connection = wire.server().copy(&connection).unwrap();
    let bytes = wire.server().copy(&listener).unwrap();
    for bad in [&connection[..], &bytes[1..], &bytes[..bytes.len() - 1], b""] {
        let made = wire.server().attach_waiting(bad, &listener, at);
        assert_eq!(made, Err(Errno::INVALID));
    }
    let mut other = Side::new(2);
    other
        .host
        .add_socket(LISTENER, Transport::Tcp, true)
        .unwrap();
    let open = other.host.socket(LISTENER).unwrap();
    let made = other.host.attach_waiting(&bytes, &open, at);
    assert_eq!(made, Err(Errno::INVALID));
}
