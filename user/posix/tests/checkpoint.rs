//! A program's sockets go over to another host on the same link, as to a newer library.

mod support;

use base::Instant;
use posix::{Endpoint, Errno, Events, Restored, Shutdown, Transport, Trigger, Watch};
use support::*;

/// Puts another host in the server's place, with all that the first had; the frames that lie in its ring go
/// along.
fn exchange(wire: &mut Wire) -> Restored {
    let bytes = wire.server().checkpoint().unwrap();
    let mut newer = Side::new(1);
    let now = Instant::from_nanos(wire.now);
    let restored = newer.host.restore(&bytes, now).unwrap();
    for frame in wire.server().take_frames() {
        newer.host.hear(&frame, now);
    }
    newer.host.flush();
    // What the older one has sent is on the wire already.
    let sent = wire.sides[0].port.take_sent();
    newer.port.borrow_mut().sent.splice(0..0, sent);
    wire.sides[0] = newer;
    restored
}

#[test]
fn bytes_that_were_read_by_nobody_and_those_on_their_way_arrive_once_and_in_order() {
    let mut wire = Wire::connected();
    let bytes: Vec<u8> = (0..2_000_000_u32).map(|at| (at / 3) as u8).collect();
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let (mut asked, mut answered, mut turns, mut exchanges) = (0, 0, 0, 0);
    while there.len() != bytes.len() || back.len() != bytes.len() {
        asked += send(wire.client(), CLIENT, &bytes[asked..]).unwrap_or(0);
        answered += send(wire.server(), SERVED, &bytes[answered..]).unwrap_or(0);
        there.extend(receive(wire.server(), SERVED, 30_000).unwrap_or_default());
        back.extend(receive(wire.client(), CLIENT, 30_000).unwrap_or_default());
        turns += 1;
        if turns % 10 == 0 {
            assert_eq!(exchange(&mut wire).connections, 1);
            exchanges += 1;
        }
        wire.step();
        assert!(turns < 20_000, "{} there, {} back", there.len(), back.len());
    }
    assert!(there == bytes && back == bytes);
    assert!(exchanges >= 5, "{exchanges} exchanges");
}

#[test]
fn a_segment_that_lies_in_the_ring_needs_no_second_sending() {
    let mut wire = Wire::connected();
    wire.steps(50);
    assert_eq!(send(wire.client(), CLIENT, b"request"), Ok(7));
    wire.client().flush();
    // It crosses, and the server does not look.
    for frame in wire.sides[1].port.take_sent() {
        let side = &mut wire.sides[0];
        side.kernel
            .borrow_mut()
            .deliver(side.host.station().io(), &frame);
    }
    exchange(&mut wire);
    assert_eq!(receive(wire.server(), SERVED, 10).unwrap(), b"request");
}

#[test]
fn who_listens_goes_on_and_who_waited_is_accepted() {
    let mut wire = Wire::new();
    wire.listen();
    for client in [CLIENT, CLIENT + 1] {
        wire.call(client);
    }
    wire.steps(10);
    assert_eq!(send(wire.client(), CLIENT + 1, b"hello"), Ok(5));
    wire.steps(10);
    assert_eq!(exchange(&mut wire).connections, 2);
    let listener = wire.server().socket(LISTENER).unwrap();
    for served in [SERVED, SERVED + 10] {
        assert_eq!(wire.server().may_accept(&listener), Ok(()));
        wire.server().accept(&listener, served, true).unwrap();
    }
    assert_eq!(wire.server().may_accept(&listener), Err(Errno::AGAIN));
    let heard = [SERVED, SERVED + 10].map(|served| receive(wire.server(), served, 10));
    assert!(heard.contains(&Ok(b"hello".to_vec())) && heard.contains(&Err(Errno::AGAIN)));
    wire.connect(CLIENT + 2, SERVED + 20);
    for served in [SERVED, SERVED + 10] {
        wire.server().close(served);
    }
    for client in [CLIENT, CLIENT + 1] {
        let end = wire.until(|wire| receive(wire.client(), client, 1));
        assert_eq!(end.unwrap(), b"");
    }
}

#[test]
fn half_closed_connections_stay_half_closed_either_way() {
    let mut wire = Wire::connected();
    wire.connect(CLIENT + 10, SERVED + 10);
    let open = wire.client().socket(CLIENT).unwrap();
    wire.client().shutdown(&open, Shutdown::Write).unwrap();
    let open = wire.server().socket(SERVED + 10).unwrap();
    wire.server().shutdown(&open, Shutdown::Write).unwrap();
    wire.steps(20);
    exchange(&mut wire);
    assert_eq!(receive(wire.server(), SERVED, 1).unwrap(), b"");
    assert_eq!(send(wire.server(), SERVED, b"still"), Ok(5));
    let still = wire.until(|wire| receive(wire.client(), CLIENT, 9));
    assert_eq!(still.unwrap(), b"still");
    assert_eq!(
        send(wire.server(), SERVED + 10, b"no"),
        Err(Errno::BROKEN_PIPE)
    );
    assert_eq!(send(wire.client(), CLIENT + 10, b"still"), Ok(5));
    let still = wire.until(|wire| receive(wire.server(), SERVED + 10, 9));
    assert_eq!(still.unwrap(), b"still");
}

#[test]
fn a_connection_that_is_over_has_its_last_bytes_and_then_its_error() {
    let mut wire = Wire::connected();
    assert_eq!(send(wire.client(), CLIENT, b"last"), Ok(4));
    wire.steps(10);
    // A peer that leaves bytes unread resets.
    assert_eq!(send(wire.server(), SERVED, b"unread"), Ok(6));
    wire.steps(10);
    wire.client().close(CLIENT);
    wire.steps(10);
    let before = ready(wire.server(), SERVED);
    exchange(&mut wire);
    assert_eq!(ready(wire.server(), SERVED), before);
    assert_eq!(receive(wire.server(), SERVED, 10).unwrap(), b"last");
    let error = receive(wire.server(), SERVED, 10).unwrap_err();
    assert_eq!(error.number(), libc::ECONNRESET);
    assert_eq!(receive(wire.server(), SERVED, 10).unwrap(), b"");
    assert_eq!(send(wire.server(), SERVED, b"no"), Err(Errno::BROKEN_PIPE));
}

#[test]
fn what_a_program_has_let_go_still_reaches_its_peer() {
    let mut wire = Wire::connected();
    let bytes = vec![7; 200_000];
    let sent = send(wire.server(), SERVED, &bytes).unwrap();
    wire.server().close(SERVED);
    assert_eq!(exchange(&mut wire).connections, 1);
    let mut got = Vec::new();
    loop {
        let some = wire
            .until(|wire| receive(wire.client(), CLIENT, 50_000))
            .unwrap();
        if some.is_empty() {
            break;
        }
        got.extend(some);
    }
    assert_eq!(got.len(), sent);
    wire.client().close(CLIENT);
    wire.steps(50);
    assert_eq!(wire.server().orphaned(), 0);
}

#[test]
fn who_has_asked_a_peer_that_did_not_answer_asks_again_from_the_same_port() {
    let mut wire = Wire::new();
    wire.client()
        .add_socket(LISTENER, Transport::Tcp, true)
        .unwrap();
    let listener = wire.client().socket(LISTENER).unwrap();
    wire.client().bind(&listener, address(2), PORT).unwrap();
    wire.server()
        .add_socket(SERVED, Transport::Tcp, true)
        .unwrap();
    let open = wire.server().socket(SERVED).unwrap();
    let asked = wire.server().connect(&open, address(2), PORT);
    assert_eq!(asked, Err(Errno::IN_PROGRESS));
    let local = wire.server().local(&open).unwrap();
    // What it has sent is lost.
    wire.sides[0].port.take_sent();
    wire.client().listen(&listener, 5).unwrap();
    exchange(&mut wire);
    let open = wire.server().socket(SERVED).unwrap();
    assert_eq!(wire.server().local(&open), Ok(local));
    wire.until(|wire| wire.server().finish_connecting(&open))
        .unwrap();
    assert_eq!(
        wire.server().remote(&open),
        Ok(Endpoint::v4(address(2), PORT))
    );
}

#[test]
fn sets_watch_what_they_have_watched_in_the_same_way() {
    let mut wire = Wire::connected();
    wire.connect(CLIENT + 10, SERVED + 10);
    wire.server().add_set(SET).unwrap();
    wire.server().duplicate(SET, SET + 1).unwrap();
    let set = wire.server().set(SET).unwrap();
    let triggers = [(SERVED, Trigger::ONESHOT), (SERVED + 10, Trigger::empty())];
    for (number, trigger) in triggers {
        let open = wire.server().socket(number).unwrap();
        let watch = Watch {
            interest: Events::IN,
            trigger,
            data: number.into(),
        };
        set.add(number, &open, watch).unwrap();
    }
    let told = |wire: &mut Wire, set: u32| {
        let mut told = Vec::new();
        let set = wire.server().set(set).unwrap();
        set.collect(16, |event| told.push(event.data));
        told
    };
    assert_eq!(send(wire.client(), CLIENT, b"1"), Ok(1));
    wire.steps(10);
    assert_eq!(told(&mut wire, SET), [u64::from(SERVED)]);
    let restored = exchange(&mut wire);
    assert_eq!(restored.sets, [SET, SET + 1]);
    assert_eq!(told(&mut wire, SET), [], "it has reported once");
    // A reset is told of by everybody who still watches.
    assert_eq!(send(wire.server(), SERVED, b"unread"), Ok(6));
    wire.steps(10);
    wire.client().close(CLIENT);
    wire.steps(10);
    assert!(ready(wire.server(), SERVED).contains(Events::ERR));
    assert_eq!(told(&mut wire, SET), [], "and stays silent");
    assert_eq!(send(wire.client(), CLIENT + 10, b"1"), Ok(1));
    wire.steps(10);
    assert_eq!(told(&mut wire, SET + 1), [u64::from(SERVED + 10)]);
    assert_eq!(
        told(&mut wire, SET),
        [u64::from(SERVED + 10)],
        "as long as it is so"
    );
    let set = wire.server().set(SET).unwrap();
    let open = wire.server().socket(SERVED).unwrap();
    let again = Watch {
        interest: Events::IN,
        trigger: Trigger::ONESHOT,
        data: 99,
    };
    set.modify(SERVED, &open, again).unwrap();
    assert!(told(&mut wire, SET).contains(&99));
}

#[test]
fn datagrams_come_to_the_same_name_and_go_to_the_same_peer() {
    let mut wire = Wire::new();
    for number in [SERVED, SERVED + 1] {
        wire.server()
            .add_socket(number, Transport::Udp, true)
            .unwrap();
    }
    let bound = wire.server().socket(SERVED).unwrap();
    wire.server().bind(&bound, address(1), PORT).unwrap();
    let connected = wire.server().socket(SERVED + 1).unwrap();
    wire.server().connect(&connected, address(2), PORT).unwrap();
    let names = [&bound, &connected].map(|open| wire.server().local(open).unwrap());
    exchange(&mut wire);
    let opens = [SERVED, SERVED + 1].map(|number| wire.server().socket(number).unwrap());
    assert_eq!(
        opens
            .each_ref()
            .map(|open| wire.server().local(open).unwrap()),
        names
    );
    assert_eq!(
        wire.server().remote(&opens[1]),
        Ok(Endpoint::v4(address(2), PORT))
    );
}

#[test]
fn options_limits_and_further_numbers_go_along() {
    let mut wire = Wire::connected();
    let open = wire.server().socket(SERVED).unwrap();
    let yes = 1_i32.to_ne_bytes();
    let second = [1_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
    let set = |wire: &mut Wire, level, name, value: &[u8]| {
        wire.server().set_option(&open, level, name, value).unwrap();
    };
    set(&mut wire, libc::IPPROTO_TCP, libc::TCP_NODELAY, &yes);
    set(&mut wire, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &second);
    open.set_nonblocking(false);
    wire.server().duplicate(SERVED, SERVED + 5).unwrap();
    exchange(&mut wire);
    wire.server().close(SERVED);
    let open = wire.server().socket(SERVED + 5).unwrap();
    assert!(!open.is_nonblocking());
    let value = wire
        .server()
        .option(&open, libc::IPPROTO_TCP, libc::TCP_NODELAY);
    assert_eq!(value.unwrap().unwrap(), yes);
    let value = wire
        .server()
        .option(&open, libc::SOL_SOCKET, libc::SO_RCVTIMEO);
    assert_eq!(value.unwrap().unwrap(), second);
    assert_eq!(send(wire.server(), SERVED + 5, b"here"), Ok(4));
}

#[test]
fn a_host_that_was_copied_in_vain_goes_on_as_if_nothing_had_been() {
    let mut wire = Wire::connected();
    assert_eq!(send(wire.server(), SERVED, &[3; 50_000]), Ok(50_000));
    let bytes = wire.server().checkpoint().unwrap();
    let now = Instant::from_nanos(wire.now);
    for len in 0..bytes.len().min(600) {
        let mut other = Side::new(1);
        let cut = other.host.restore(&bytes[..len], now);
        assert_eq!(cut, Err(Errno::INVALID), "{len}");
        drop(other.host);
    }
    let mut elsewhere = Side::new(3);
    assert_eq!(
        elsewhere.host.restore(&bytes, now),
        Err(Errno::INVALID),
        "another address"
    );
    let mut older = bytes.clone();
    older[7] ^= 1;
    assert_eq!(
        Side::new(1).host.restore(&older, now),
        Err(Errno::INVALID),
        "another format"
    );
    let mut got = 0;
    while got < 50_000 {
        got += wire
            .until(|wire| receive(wire.client(), CLIENT, 50_000))
            .unwrap()
            .len();
    }
    assert_eq!(send(wire.client(), CLIENT, b"more"), Ok(4));
    assert_eq!(
        wire.until(|wire| receive(wire.server(), SERVED, 9))
            .unwrap(),
        b"more"
    );
}

#[test]
fn a_number_that_two_sockets_have_is_refused() {
    let mut wire = Wire::connected();
    let bytes = wire.server().checkpoint().unwrap();
    let mut other = Side::new(1);
    other.host.add_socket(SERVED, Transport::Udp, true).unwrap();
    let restored = other.host.restore(&bytes, Instant::from_nanos(wire.now));
    assert_eq!(restored, Err(Errno::INVALID));
}
