//! A connection goes from one of a program's hosts to another, under the eyes of who uses it.

mod support;

use base::Instant;
use posix::{Errno, Events, Host, Transport, Trigger, WatchSet};
use support::*;

fn now(wire: &Wire) -> Instant {
    Instant::from_nanos(wire.now)
}

/// A program with two hosts of one address. Frames of the peer's go to that which is a side of the wire.
struct Program {
    wire: Wire,
    other: Side,
}

impl Program {
    /// One of its connections is served.
    fn connected() -> Self {
        let mut other = Side::new(1);
        other.host = other.host.at_place(1);
        Self {
            wire: Wire::connected(),
            other,
        }
    }

    fn server(&mut self) -> &mut Host<Shared> {
        self.wire.server()
    }

    /// The connection goes to the other host, and its frames too.
    fn shift(&mut self) -> Result<(), Errno> {
        let now = now(&self.wire);
        let open = self.server().socket(SERVED)?;
        let numbers = self.server().numbers_of(&open);
        self.server().look_at_all(now);
        let (source, target) = (&mut self.wire.sides[0], &mut self.other);
        source
            .host
            .shift((&open, &numbers), &mut target.host, now)?;
        target.host.flush();
        let sent = source.port.take_sent();
        target.port.borrow_mut().sent.splice(0..0, sent);
        std::mem::swap(source, target);
        Ok(())
    }
}

/// How many members of a set are ready.
fn ready_in(set: &WatchSet) -> usize {
    set.collect(16, |_| ())
}

#[test]
fn bytes_in_both_directions_arrive_once_and_in_order_to_and_fro() {
    let mut program = Program::connected();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 3) as u8).collect();
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let (mut asked, mut answered, mut turns) = (0, 0, 0);
    while there.len() != bytes.len() || back.len() != bytes.len() {
        let wire = &mut program.wire;
        asked += send(wire.client(), CLIENT, &bytes[asked..]).unwrap_or(0);
        answered += send(wire.server(), SERVED, &bytes[answered..]).unwrap_or(0);
        there.extend(receive(wire.server(), SERVED, 30_000).unwrap_or_default());
        back.extend(receive(wire.client(), CLIENT, 30_000).unwrap_or_default());
        turns += 1;
        if turns % 4 == 0 {
            program.shift().unwrap();
        }
        program.wire.step();
        assert!(turns < 20_000, "{} there, {} back", there.len(), back.len());
    }
    assert!(there == bytes && back == bytes);
}

#[test]
fn its_sets_watch_it_where_it_is() {
    let mut program = Program::connected();
    let server = program.server();
    server.add_set(SET).unwrap();
    let set = server.set(SET).unwrap();
    let open = server.socket(SERVED).unwrap();
    set.add(SERVED, &open, watch(Events::READABLE, Trigger::empty()))
        .unwrap();
    assert_eq!((set.places(), open.place()), (1, 0));
    program.shift().unwrap();
    assert_eq!(open.place(), 1);
    set.find_places();
    assert_eq!(set.places(), 2);
    assert_eq!(ready_in(&set), 0);
    assert_eq!(send(program.wire.client(), CLIENT, b"news"), Ok(4));
    program.wire.steps(10);
    assert_eq!(ready_in(&set), 1);
    assert_eq!(receive(program.server(), SERVED, 9).unwrap(), b"news");
    assert_eq!(ready_in(&set), 0);
}

#[test]
fn who_looks_where_members_are_misses_none_that_comes_meanwhile() {
    let mut program = Program::connected();
    program.wire.connect(CLIENT + 10, SERVED + 10);
    let server = program.server();
    server.add_set(SET).unwrap();
    let set = server.set(SET).unwrap();
    let [moving, staying] = [SERVED, SERVED + 10].map(|number| server.socket(number).unwrap());
    let watch = watch(Events::READABLE, Trigger::empty());
    program.shift().unwrap();
    assert_eq!((moving.place(), staying.place()), (1, 0));
    for _ in 0..5000 {
        set.add(SERVED, &moving, watch).unwrap();
        set.add(SERVED + 10, &staying, watch).unwrap();
        set.remove(SERVED + 10, &staying).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| set.find_places());
            set.add(SERVED + 10, &staying, watch).unwrap();
        });
        assert_eq!(set.places(), 0b11);
        set.remove(SERVED, &moving).unwrap();
        set.remove(SERVED + 10, &staying).unwrap();
    }
}

#[test]
fn bytes_that_nobody_has_read_and_all_its_numbers_go_along() {
    let mut program = Program::connected();
    assert_eq!(send(program.wire.client(), CLIENT, b"unread"), Ok(6));
    program.wire.steps(10);
    program.server().duplicate(SERVED, SERVED + 10).unwrap();
    program.shift().unwrap();
    let old = &mut program.other.host;
    assert_eq!(old.socket(SERVED).err(), Some(Errno::BAD_NUMBER));
    assert_eq!(old.socket(SERVED + 10).err(), Some(Errno::BAD_NUMBER));
    let got = receive(program.server(), SERVED + 10, 9).unwrap();
    assert_eq!(got, b"unread");
    program.server().close(SERVED);
    program.wire.steps(10);
    assert_eq!(receive(program.wire.client(), CLIENT, 1), Err(Errno::AGAIN));
    program.server().close(SERVED + 10);
    program.wire.steps(10);
    assert_eq!(receive(program.wire.client(), CLIENT, 1).unwrap(), b"");
}

#[test]
fn what_is_between_two_sockets_of_the_program_stays_where_both_are() {
    let mut program = Program::connected();
    let served = program.server().socket(SERVED).unwrap();
    assert!(program.server().is_connection(&served));
    let wire = &mut program.wire;
    wire.server()
        .add_socket(CLIENT, Transport::Tcp, true)
        .unwrap();
    let client = wire.server().socket(CLIENT).unwrap();
    let started = wire.server().connect(&client, address(1), PORT);
    assert!(matches!(started, Ok(()) | Err(Errno::IN_PROGRESS)));
    wire.until(|wire| wire.server().finish_connecting(&client))
        .unwrap();
    let listener = wire.server().socket(LISTENER).unwrap();
    let accepted = SERVED + 10;
    wire.until(|wire| wire.server().may_accept(&listener))
        .unwrap();
    wire.server().accept(&listener, accepted, true).unwrap();
    let accepted = wire.server().socket(accepted).unwrap();
    for end in [client, accepted] {
        assert!(!wire.server().is_connection(&end));
    }
}

#[test]
fn a_host_that_cannot_have_it_leaves_it_where_it_is() {
    let mut program = Program::connected();
    program.other.host.lose_link();
    assert_eq!(program.shift().err(), Some(Errno::NETWORK_DOWN));
    assert_eq!(send(program.server(), SERVED, b"answer"), Ok(6));
    program.wire.steps(10);
    assert_eq!(
        receive(program.wire.client(), CLIENT, 9).unwrap(),
        b"answer"
    );
}

#[test]
fn what_was_let_go_still_reaches_its_peer_from_the_host_that_is_left() {
    let mut program = Program::connected();
    assert_eq!(send(program.server(), SERVED, b"the end"), Ok(7));
    program.server().close(SERVED);
    let (at, source) = (now(&program.wire), &mut program.wire.sides[0]);
    source.port.take_sent();
    source
        .host
        .shift_orphans(&mut program.other.host, at)
        .unwrap();
    std::mem::swap(source, &mut program.other);
    program.wire.steps(50);
    assert_eq!(
        receive(program.wire.client(), CLIENT, 9).unwrap(),
        b"the end"
    );
    program.wire.steps(10);
    assert_eq!(receive(program.wire.client(), CLIENT, 1).unwrap(), b"");
}

#[test]
fn a_frame_that_comes_late_to_the_host_before_gets_no_answer_and_is_sent_again() {
    let mut program = Program::connected();
    assert_eq!(send(program.wire.client(), CLIENT, b"late"), Ok(4));
    program.wire.client().flush();
    let late = program.wire.sides[1].port.take_sent();
    program.shift().unwrap();
    let (at, left) = (now(&program.wire), &mut program.other);
    for frame in late {
        let exchange = left.host.station().io();
        left.kernel.borrow_mut().deliver(exchange, &frame);
    }
    left.host.turn(at);
    left.host.flush();
    assert!(left.port.take_sent().is_empty());
    let came = program.wire.until(|wire| receive(wire.server(), SERVED, 9));
    assert_eq!(came.unwrap(), b"late");
}
