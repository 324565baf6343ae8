//! Programs with POSIX' sockets on one wire (`support`).

mod support;

use std::io::{IoSlice, IoSliceMut};
use std::net::Ipv4Addr;

use base::Instant;
use inet::Count;
use posix::{
    Direction, Endpoint, Errno, Events, Gather, Host, LOOK_NANOS, Open, Result, Scatter,
    SendOptions, Shutdown, Transport, Trigger,
};
use support::*;

#[test]
fn what_one_writes_the_other_reads_piece_by_piece() {
    let mut wire = Wire::connected();
    assert_eq!(receive(wire.server(), SERVED, 10), Err(Errno::AGAIN));
    assert_eq!(send(wire.client(), CLIENT, b"hello world"), Ok(11));
    let first = wire
        .until(|wire| receive(wire.server(), SERVED, 5))
        .unwrap();
    assert_eq!(first, b"hello");
    let open = wire.server().socket(SERVED).unwrap();
    assert_eq!(wire.server().unread(&open), Ok(6));
    assert_eq!(receive(wire.server(), SERVED, 100).unwrap(), b" world");
    assert_eq!(receive(wire.server(), SERVED, 100), Err(Errno::AGAIN));
    wire.client().close(CLIENT);
    let end = wire
        .until(|wire| receive(wire.server(), SERVED, 5))
        .unwrap();
    assert_eq!(end, b"");
    assert_eq!(receive(wire.client(), CLIENT, 1), Err(Errno::BAD_NUMBER));
}

fn cork(host: &mut Host<Shared>, number: u32, is_corked: bool) {
    let open = host.socket(number).unwrap();
    let value = i32::from(is_corked).to_ne_bytes();
    let set = host.set_option(&open, libc::IPPROTO_TCP, libc::TCP_CORK, &value);
    assert_eq!(set, Ok(()));
}

#[test]
fn a_cork_holds_back_what_is_written_until_it_is_taken_away() {
    let mut wire = Wire::connected();
    for _ in 0..3 {
        cork(wire.server(), SERVED, true);
        assert_eq!(send(wire.server(), SERVED, b"head"), Ok(4));
        assert_eq!(send(wire.server(), SERVED, b"tail"), Ok(4));
        wire.steps(10);
        assert_eq!(receive(wire.client(), CLIENT, 10), Err(Errno::AGAIN));
        cork(wire.server(), SERVED, false);
        let all = wire.until(|wire| receive(wire.client(), CLIENT, 10));
        assert_eq!(all.unwrap(), b"headtail");
    }
}

#[test]
fn what_waits_when_a_cork_comes_leaves_in_time_without_its_end() {
    let mut wire = Wire::connected();
    assert_eq!(send(wire.server(), SERVED, b"a"), Ok(1));
    // Nagle's algorithm keeps it.
    assert_eq!(send(wire.server(), SERVED, b"b"), Ok(1));
    cork(wire.server(), SERVED, true);
    let mut got = Vec::new();
    while got != b"ab" {
        let some = wire.until(|wire| receive(wire.client(), CLIENT, 10));
        got.extend(some.unwrap());
    }
}

#[test]
fn more_than_all_buffers_hold_arrives_whole() {
    let mut wire = Wire::connected();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at / 7) as u8).collect();
    let (mut sent, mut received) = (0, Vec::new());
    while received.len() != bytes.len() {
        if sent != bytes.len() {
            match send(wire.client(), CLIENT, &bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) => assert_eq!(error, Errno::AGAIN),
            }
        }
        match receive(wire.server(), SERVED, 100_000) {
            Ok(some) => received.extend(some),
            Err(error) => assert_eq!(error, Errno::AGAIN),
        }
        wire.step();
    }
    assert!(received == bytes);
}

#[test]
fn a_peer_that_never_reads_holds_its_own_connection_back_and_no_other() {
    let mut wire = Wire::connected();
    wire.connect(CLIENT + 10, SERVED + 10);
    let mut refused = 0;
    for _ in 0..2000 {
        match send(wire.server(), SERVED, &[1; 10_000]) {
            Ok(_) => refused = 0,
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                refused += 1;
            }
        }
        wire.step();
    }
    assert!(refused > 100, "all was taken");
    assert!(!ready(wire.server(), SERVED).contains(Events::OUT));
    for _ in 0..20 {
        assert_eq!(send(wire.client(), CLIENT + 10, b"ping"), Ok(4));
        let asked = wire.until(|wire| receive(wire.server(), SERVED + 10, 10));
        assert_eq!(asked.unwrap(), b"ping");
        assert_eq!(send(wire.server(), SERVED + 10, b"pong"), Ok(4));
        let answered = wire.until(|wire| receive(wire.client(), CLIENT + 10, 10));
        assert_eq!(answered.unwrap(), b"pong");
    }
}

#[test]
fn many_connections_that_nobody_reads_leave_memory_for_another() {
    const CROWD: u32 = 200;
    let mut wire = Wire::new();
    wire.listen();
    for number in 0..CROWD {
        wire.connect(1000 + number, 2000 + number);
    }
    for _ in 0..300 {
        for number in 0..CROWD {
            if let Err(error) = send(wire.client(), 1000 + number, &[7; 4000]) {
                assert_eq!(error, Errno::AGAIN);
            }
        }
        wire.step();
    }
    wire.connect(CLIENT, SERVED);
    let sent = wire.until(|wire| send(wire.client(), CLIENT, b"ping"));
    assert_eq!(sent, Ok(4));
    let asked = wire.until(|wire| receive(wire.server(), SERVED, 10));
    assert_eq!(asked.unwrap(), b"ping");
}

#[test]
fn a_level_is_told_until_it_is_over_and_an_edge_once_for_each_arrival() {
    for trigger in [Trigger::empty(), Trigger::EDGE, Trigger::ONESHOT] {
        let mut wire = Wire::connected();
        watched(&mut wire, trigger);
        assert_eq!(collect(&mut wire), []);
        send(wire.client(), CLIENT, b"one").unwrap();
        wire.steps(5);
        assert_eq!(collect(&mut wire), [Events::IN], "{trigger:?}");
        let again: &[Events] = match trigger.is_empty() {
            true => &[Events::IN],
            false => &[],
        };
        assert_eq!(collect(&mut wire), again, "{trigger:?}");
        // It waits for the acknowledgement of the first.
        send(wire.client(), CLIENT, b"two").unwrap();
        wire.steps(300);
        let arrived: &[Events] = match trigger {
            Trigger::ONESHOT => &[],
            _ => &[Events::IN],
        };
        assert_eq!(collect(&mut wire), arrived, "{trigger:?}");
        receive(wire.server(), SERVED, 100).unwrap();
        assert_eq!(collect(&mut wire), []);
    }
}

#[test]
fn a_set_is_told_of_what_was_ready_before_it_watched() {
    let mut wire = Wire::connected();
    send(wire.client(), CLIENT, b"early").unwrap();
    wire.steps(5);
    watched(&mut wire, Trigger::EDGE);
    assert_eq!(collect(&mut wire), [Events::IN]);
}

#[test]
fn a_closed_socket_leaves_its_sets_and_its_copies_live_on() {
    let mut wire = Wire::connected();
    watched(&mut wire, Trigger::empty());
    wire.server().duplicate(SERVED, SERVED + 20).unwrap();
    wire.server().close(SERVED);
    send(wire.client(), CLIENT, b"one").unwrap();
    wire.steps(5);
    assert_eq!(collect(&mut wire), [Events::IN]);
    assert_eq!(receive(wire.server(), SERVED + 20, 9).unwrap(), b"one");
    wire.server().close(SERVED + 20);
    wire.steps(5);
    assert_eq!(collect(&mut wire), []);
    let end = wire
        .until(|wire| receive(wire.client(), CLIENT, 9))
        .unwrap();
    assert_eq!(end, b"");
}

#[test]
fn refusals_are_those_of_the_kernels_sockets() {
    let mut wire = Wire::new();
    let number = |error: i32| Err(error);
    let said = |result: Result<()>| result.map_err(Errno::number);
    wire.client()
        .add_socket(CLIENT, Transport::Tcp, true)
        .unwrap();
    let open = wire.client().socket(CLIENT).unwrap();
    assert_eq!(
        send(wire.client(), CLIENT, b"x").map_err(Errno::number),
        Err(libc::EPIPE)
    );
    assert_eq!(
        said(wire.client().remote(&open).map(drop)),
        number(libc::ENOTCONN)
    );
    assert_eq!(
        said(wire.client().bind(&open, address(9), 7)),
        number(libc::EADDRNOTAVAIL)
    );
    let started = wire.client().connect(&open, address(1), PORT);
    assert_eq!(started, Err(Errno::IN_PROGRESS));
    assert_eq!(
        wire.client().connect(&open, address(1), PORT),
        Err(Errno::ALREADY)
    );
    let refused = wire.until(|wire| wire.client().finish_connecting(&open));
    assert_eq!(said(refused), number(libc::ECONNREFUSED));

    wire.listen();
    let server = wire.server();
    server.add_socket(9, Transport::Tcp, true).unwrap();
    let other = server.socket(9).unwrap();
    assert_eq!(
        said(server.bind(&other, address(1), PORT)),
        number(libc::EADDRINUSE)
    );
    server.add_socket(10, Transport::Udp, true).unwrap();
    let datagrams = server.socket(10).unwrap();
    assert_eq!(said(server.listen(&datagrams, 5)), number(libc::EOPNOTSUPP));
    assert_eq!(said(server.may_accept(&other)), number(libc::EINVAL));
}

fn ask(wire: &mut Wire, client: &Open, bytes: &[u8]) {
    let pieces = [IoSlice::new(bytes)];
    let to = Some((address(1), PORT));
    let host = wire.client();
    assert_eq!(
        host.put_datagram(client, &mut Gather::new(&pieces), own(to)),
        Ok(())
    );
}

#[test]
fn datagrams_come_whole_with_who_sent_them() {
    let (mut wire, server, client) = Wire::of_datagrams();
    for len in [0, 1, 1472, 20_000] {
        ask(&mut wire, &client, &vec![len as u8; len]);
        let mut space = vec![0; 1000];
        let heard = wire
            .until(|wire| {
                let mut pieces = [IoSliceMut::new(&mut space)];
                wire.server()
                    .take_datagram(&server, &mut Scatter::new(&mut pieces))
            })
            .unwrap();
        assert_eq!((heard.len, heard.from.addr), (len, address(2).into()));
        assert!(space[..len.min(1000)].iter().all(|byte| *byte == len as u8));
    }
}

/// What is sent does not wait for acknowledgements.
fn send_at_once(host: &mut Host<Shared>, number: u32) {
    let open = host.socket(number).unwrap();
    let at_once = 1_i32.to_ne_bytes();
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
    let set = host.set_option(&open, level, name, &at_once);
    assert_eq!(set, Ok(()));
}

#[test]
fn answers_to_several_ready_sockets_leave_together_while_somebody_looks_after_them() {
    let mut wire = Wire::connected();
    send_at_once(wire.server(), SERVED);
    wire.steps(10);
    let kicks = |wire: &Wire| wire.sides[0].kicks();
    let answer = |wire: &mut Wire| send(wire.server(), SERVED, b"answer").unwrap();

    let before = kicks(&wire);
    wire.server().expect_answers(3);
    for _ in 0..3 {
        answer(&mut wire);
    }
    assert_eq!(kicks(&wire), before + 3, "nobody looks after them");

    wire.server().watch(true);
    wire.server().expect_answers(3);
    answer(&mut wire);
    answer(&mut wire);
    assert_eq!(kicks(&wire), before + 3);
    answer(&mut wire);
    assert_eq!(kicks(&wire), before + 4);
    (0..2).for_each(|_| _ = answer(&mut wire));
    assert_eq!(kicks(&wire), before + 4, "as many that were not expected");
    answer(&mut wire);
    assert_eq!(kicks(&wire), before + 5);

    wire.server().expect_answers(9);
    answer(&mut wire);
    wire.server().watch(false);
    assert_eq!(kicks(&wire), before + 6);
}

#[test]
fn a_socket_that_is_answered_several_times_has_as_many_answers_the_next_time() {
    let mut wire = Wire::connected();
    send_at_once(wire.server(), SERVED);
    wire.steps(10);
    wire.server().watch(true);
    let kicks_of_round = |wire: &mut Wire, answers: usize| {
        let before = wire.sides[0].kicks();
        wire.server().expect_answers(1);
        (0..answers).for_each(|_| send(wire.server(), SERVED, b"answer").map(drop).unwrap());
        let kicks = wire.sides[0].kicks() - before;
        wire.steps(10);
        kicks
    };
    assert_eq!(kicks_of_round(&mut wire, 1), 1);
    assert_eq!(
        kicks_of_round(&mut wire, 16),
        5,
        "with the 1st, 2nd, 4th, 8th and 16th"
    );
    assert_eq!(kicks_of_round(&mut wire, 16), 1);
    assert_eq!(
        kicks_of_round(&mut wire, 1),
        0,
        "it leaves at the next turn"
    );
    assert_eq!(kicks_of_round(&mut wire, 1), 1);
}

/// Accepts so many connections that wait, answers each and closes it, so long apart; how often frames left meanwhile.
fn kicks_of_connections(count: u32, apart_nanos: u64) -> usize {
    let mut wire = Wire::new();
    wire.listen();
    for number in 0..count {
        let client = CLIENT + 10 + number;
        let host = wire.client();
        host.add_socket(client, Transport::Tcp, true).unwrap();
        let open = host.socket(client).unwrap();
        let started = host.connect(&open, address(1), PORT);
        assert_eq!(started, Err(Errno::IN_PROGRESS));
    }
    wire.steps(20);
    wire.server().watch(true);
    let (before, listener) = (
        wire.sides[0].kicks(),
        wire.server().socket(LISTENER).unwrap(),
    );
    for number in 0..count {
        wire.now += apart_nanos;
        let (now, served) = (Instant::from_nanos(wire.now), SERVED + 10 + number);
        let host = wire.server();
        host.set_now(now);
        assert_eq!(host.may_accept(&listener), Ok(()));
        host.accept(&listener, served, true).unwrap();
        assert_eq!(send(host, served, b"answer"), Ok(6));
        host.close(served);
    }
    assert_eq!(wire.server().may_accept(&listener), Err(Errno::AGAIN));
    let kicks = wire.sides[0].kicks() - before;
    for number in 0..count {
        let answer = wire.until(|wire| receive(wire.client(), CLIENT + 10 + number, 10));
        assert_eq!(answer.unwrap(), b"answer");
    }
    kicks
}

#[test]
fn answers_on_connections_that_are_accepted_in_quick_turn_leave_together() {
    let quick = kicks_of_connections(40, 20_000);
    assert!((4..=12).contains(&quick), "for 40 connections: {quick}");
    let slow = kicks_of_connections(40, 2_000_000);
    assert_eq!(slow, 80, "each answer and each end leaves at once");
}

#[test]
fn who_waits_leaves_to_who_looks_what_falls_due_at_a_look() {
    let mut wire = Wire::connected();
    wire.steps(300);
    send(wire.client(), CLIENT, b"question").unwrap();
    wire.steps(2);
    let now = Instant::from_nanos(wire.now);
    let due = wire
        .server()
        .next_deadline(now)
        .expect("an acknowledgement");
    assert_eq!(due.as_nanos() % LOOK_NANOS, 0);
    assert_eq!(wire.server().wait_deadline(now), Some(due), "nobody looks");
    wire.server().watch(true);
    assert_eq!(wire.server().wait_deadline(now), None);
    assert_eq!(wire.server().wait_deadline(due), Some(due), "it is late");
    wire.server().watch_again_at(due);
    assert_eq!(wire.server().wait_deadline(now), None);
    let later = Instant::from_nanos(due.as_nanos() + LOOK_NANOS);
    wire.server().watch_again_at(later);
    assert_eq!(
        wire.server().wait_deadline(now),
        Some(due),
        "looks are rare"
    );
}

/// A question comes to the server, which has not looked yet.
fn question(wire: &mut Wire) {
    send(wire.client(), CLIENT, b"question").unwrap();
    let [server, client] = &mut wire.sides;
    client.host.flush();
    for frame in client.port.take_sent() {
        let exchange = server.host.station().io();
        server.kernel.borrow_mut().deliver(exchange, &frame);
    }
}

/// The program asks what is ready, as epoll_wait does.
fn ask_what_is_ready(wire: &mut Wire) {
    let now = Instant::from_nanos(wire.now);
    let taken = wire.server().look(now);
    match ready(wire.server(), SERVED).contains(Events::IN) {
        true => wire.server().turn_to_answer(1, taken),
        // It waits.
        false => wire.server().flush(),
    }
}

fn attended() -> Wire {
    let mut wire = Wire::connected();
    send_at_once(wire.server(), SERVED);
    send_at_once(wire.client(), CLIENT);
    wire.steps(10);
    wire.server().watch(true);
    wire
}

#[test]
fn answers_wait_for_those_to_questions_that_come_for_some_turns() {
    let mut wire = attended();
    for (questions, expected) in [(0, 1), (2, 3), (9, 4)] {
        let before = wire.sides[0].kicks();
        wire.server().expect_answers(9);
        send(wire.server(), SERVED, b"answer").unwrap();
        let mut turns = 0;
        while wire.sides[0].kicks() == before {
            if turns < questions {
                question(&mut wire);
            }
            ask_what_is_ready(&mut wire);
            receive(wire.server(), SERVED, 100).ok();
            turns += 1;
        }
        assert_eq!(turns, expected, "{questions} questions");
    }
}

#[test]
fn the_last_of_many_answers_waits_for_those_to_frames_that_have_come_meanwhile() {
    let answer = |wire: &mut Wire| send(wire.server(), SERVED, b"answer").map(drop).unwrap();
    let last_of = |answers: usize, questions: usize| {
        let mut wire = attended();
        let before = wire.sides[0].kicks();
        wire.server().expect_answers(answers);
        (1..answers).for_each(|_| answer(&mut wire));
        (0..questions).for_each(|_| question(&mut wire));
        assert_eq!(wire.sides[0].kicks(), before);
        answer(&mut wire);
        (wire.sides[0].kicks() - before, wire)
    };
    assert_eq!(last_of(8, 0).0, 1, "nothing has come");
    assert_eq!(last_of(7, 1).0, 1, "a few");
    let (kicks, mut wire) = last_of(8, 1);
    assert_eq!(kicks, 0);
    ask_what_is_ready(&mut wire);
    let before = wire.sides[0].kicks();
    receive(wire.server(), SERVED, 100).unwrap();
    answer(&mut wire);
    assert_eq!(wire.sides[0].kicks(), before + 1, "no more came");

    // Who does not ask again is not waited for.
    let (_, mut wire) = last_of(8, 1);
    let before = wire.sides[0].kicks();
    answer(&mut wire);
    assert_eq!(wire.sides[0].kicks(), before + 1);
}

/// memcached does so: it answers twenty questions, each by a call of its own, and asks what is ready before the next twenty.
#[test]
fn answers_to_questions_that_came_at_once_leave_together_over_several_turns() {
    let mut wire = attended();
    let burst = |wire: &mut Wire| {
        question(wire);
        let before = (wire.sides[0].kicks(), frames_out(wire));
        for _ in 0..8 {
            ask_what_is_ready(wire);
            (0..20).for_each(|_| send(wire.server(), SERVED, b"answer").map(drop).unwrap());
        }
        receive(wire.server(), SERVED, 100).unwrap();
        ask_what_is_ready(wire);
        let after = (wire.sides[0].kicks(), frames_out(wire));
        wire.steps(10);
        (after.0 - before.0, after.1 - before.1)
    };
    burst(&mut wire);
    let (kicks, frames) = burst(&mut wire);
    assert_eq!(kicks, 2, "once in four turns");
    assert_eq!(frames, 2 * kicks as u64, "the first answer, and the others");
}

#[test]
fn answers_behind_a_frame_that_lies_are_a_segment_and_arrive_in_their_order() {
    let mut wire = attended();
    let before = frames_out(&mut wire);
    wire.server().expect_answers(100);
    let answers: Vec<u8> = (0..90).collect();
    for answer in &answers {
        assert_eq!(send(wire.server(), SERVED, &[*answer; 10]), Ok(10));
    }
    assert_eq!(frames_out(&mut wire), before + 1, "they wait");
    wire.server().flush();
    assert_eq!(frames_out(&mut wire), before + 2);
    let mut heard = Vec::new();
    while heard.len() < 900 {
        heard.extend(
            wire.until(|wire| receive(wire.client(), CLIENT, 2000))
                .unwrap(),
        );
    }
    assert!(
        heard
            .iter()
            .eq(answers.iter().flat_map(|answer| [answer; 10]))
    );
    // Nothing lies: each leaves at once again.
    wire.server().watch(false);
    let before = frames_out(&mut wire);
    (0..3).for_each(|_| send(wire.server(), SERVED, b"answer").map(drop).unwrap());
    assert_eq!(frames_out(&mut wire), before + 3);
}

#[test]
fn what_waits_behind_a_frame_leaves_once_it_is_a_full_segment_and_before_an_end() {
    let mut wire = attended();
    let before = frames_out(&mut wire);
    wire.server().expect_answers(100);
    (0..16).for_each(|_| send(wire.server(), SERVED, &[7; 100]).map(drop).unwrap());
    assert_eq!(
        frames_out(&mut wire),
        before + 3,
        "the first, a full one, and the rest"
    );
    send(wire.server(), SERVED, b"last").unwrap();
    wire.server().close(SERVED);
    wire.server().flush();
    let mut heard = Vec::new();
    loop {
        let some = wire
            .until(|wire| receive(wire.client(), CLIENT, 5000))
            .unwrap();
        if some.is_empty() {
            break;
        }
        heard.extend(some);
    }
    assert_eq!(heard.len(), 1604);
    assert!(heard.ends_with(b"last"));
}

/// Frames that the server's stack has sent.
fn frames_out(wire: &mut Wire) -> u64 {
    wire.server().station().stats().counts.get(Count::FramesOut)
}

#[test]
fn many_answers_of_a_single_turn_are_many_steps() {
    let mut wire = Wire::connected();
    let before = wire.server().steps();
    for _ in 0..20 {
        send(wire.server(), SERVED, b"answer").unwrap();
    }
    assert_eq!(wire.server().steps(), before + 20);
}

#[test]
fn answers_to_datagrams_leave_with_the_answer_to_the_last_one_that_waits() {
    let (mut wire, server, client) = Wire::of_datagrams();
    wire.server().watch(true);
    for _ in 0..2 {
        (0..3).for_each(|_| ask(&mut wire, &client, b"question"));
        wire.steps(10);
        let before = wire.sides[0].kicks();
        let mut kicks = Vec::new();
        for _ in 0..3 {
            let mut space = [0; 100];
            let mut pieces = [IoSliceMut::new(&mut space)];
            let host = wire.server();
            let heard = host.take_datagram(&server, &mut Scatter::new(&mut pieces));
            let Endpoint { port, .. } = heard.unwrap().from;
            let pieces = [IoSlice::new(b"answer")];
            let to = Some((address(2), port));
            let host = wire.server();
            host.put_datagram(&server, &mut Gather::new(&pieces), own(to))
                .unwrap();
            kicks.push(wire.sides[0].kicks() - before);
        }
        assert_eq!(kicks, [0, 0, 1]);
    }
}

#[test]
fn a_datagram_goes_with_hops_of_its_own_and_its_receiver_hears_of_them() {
    let (mut wire, server, client) = Wire::of_datagrams();
    let own = SendOptions {
        hop_limit: Some(9),
        tos: Some(0x10),
        segment_bytes: Some(4),
        ..own(Some((address(1), PORT)))
    };
    let pieces = [IoSlice::new(b"abcdefgh")];
    let sent = wire
        .client()
        .put_datagram(&client, &mut Gather::new(&pieces), own);
    assert_eq!(sent, Ok(()));
    wire.steps(10);
    let memory = wire
        .server()
        .option(&server, libc::SOL_SOCKET, libc::SO_MEMINFO);
    let memory = memory.unwrap().unwrap();
    assert!(memory.len() == 36 && memory[0] >= 8, "{memory:?}");
    for half in [b"abcd", b"efgh"] {
        let mut space = [0; 100];
        let mut pieces = [IoSliceMut::new(&mut space)];
        let heard = wire
            .server()
            .take_datagram(&server, &mut Scatter::new(&mut pieces));
        let heard = heard.unwrap();
        assert_eq!(
            (heard.len, heard.hop_limit, heard.tos, heard.drops),
            (4, 9, 0x10, 0)
        );
        assert_eq!(heard.to, Endpoint::v4(address(1), PORT));
        assert_eq!(space[..4], half[..]);
    }
}

#[test]
fn the_path_to_a_peer_is_as_wide_as_the_link_and_to_nobody_unknown() {
    let mut wire = Wire::connected();
    let host = wire.client();
    let open = host.socket(CLIENT).unwrap();
    let mtu = host.option(&open, libc::IPPROTO_IP, libc::IP_MTU).unwrap();
    assert_eq!(mtu, Ok(1500_i32.to_ne_bytes().to_vec()));
    host.add_socket(77, Transport::Udp, true).unwrap();
    let without_peer = host.socket(77).unwrap();
    assert_eq!(
        host.option(&without_peer, libc::IPPROTO_IP, libc::IP_MTU),
        None
    );
}

#[test]
fn options_are_the_stacks_and_times_are_the_sockets() {
    let mut wire = Wire::connected();
    let host = wire.server();
    let open = host.socket(SERVED).unwrap();
    let int = |number: i32| number.to_ne_bytes().to_vec();
    for (level, name, value) in [
        (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 33),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::SOL_SOCKET, libc::SO_SNDBUF, 100_000),
    ] {
        host.set_option(&open, level, name, &int(value)).unwrap();
        assert_eq!(host.option(&open, level, name), Some(Ok(int(value))));
    }
    let time = [3_i64.to_ne_bytes(), 500_000_i64.to_ne_bytes()].concat();
    host.set_option(&open, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time)
        .unwrap();
    assert_eq!(open.timeout_nanos(Direction::Receive), Some(3_500_000_000));
    assert_eq!(open.timeout_nanos(Direction::Send), None);
    let error = host.option(&open, libc::SOL_SOCKET, libc::SO_ERROR);
    assert_eq!(error, Some(Ok(int(0))));
    assert_eq!(host.option(&open, libc::SOL_SOCKET, libc::SO_TYPE), None);
}

#[test]
fn a_lost_link_is_an_error_of_each_socket() {
    let mut wire = Wire::connected();
    watched(&mut wire, Trigger::EDGE);
    wire.server().take_news();
    wire.server().lose_link();
    assert!(wire.server().take_news());
    let told = collect(&mut wire);
    assert_eq!(told, [Events::IN | Events::ERR | Events::HUP]);
    assert_eq!(receive(wire.server(), SERVED, 1), Err(Errno::NETWORK_DOWN));
    assert_eq!(send(wire.server(), SERVED, b"x"), Err(Errno::NETWORK_DOWN));
    let added = wire.server().add_socket(30, Transport::Tcp, true);
    assert_eq!(added, Err(Errno::NETWORK_DOWN));
    wire.server().close(SERVED);
}

#[test]
fn a_direction_that_is_shut_ends_for_the_peer() {
    let mut wire = Wire::connected();
    let open = wire.server().socket(SERVED).unwrap();
    send(wire.server(), SERVED, b"last").unwrap();
    wire.server().shutdown(&open, Shutdown::Write).unwrap();
    assert_eq!(send(wire.server(), SERVED, b"x"), Err(Errno::BROKEN_PIPE));
    let last = wire
        .until(|wire| receive(wire.client(), CLIENT, 9))
        .unwrap();
    assert_eq!(last, b"last");
    let end = wire
        .until(|wire| receive(wire.client(), CLIENT, 9))
        .unwrap();
    assert_eq!(end, b"");
    assert!(ready(wire.client(), CLIENT).contains(Events::RDHUP));
}

#[test]
fn what_a_closed_connection_still_has_to_send_is_known_until_its_peer_has_it() {
    let mut wire = Wire::connected();
    while send(wire.server(), SERVED, &[1; 10_000]) != Err(Errno::AGAIN) {
        wire.step();
    }
    assert_eq!(wire.server().orphaned(), 0, "somebody still holds it");
    wire.server().close_all();
    wire.steps(50);
    let left = wire.server().orphaned();
    assert!(left > 10_000, "the peer has read nothing: {left}");
    wire.until(|wire| match receive(wire.client(), CLIENT, 10_000) {
        Ok(bytes) if bytes.is_empty() => Ok(()),
        Ok(_) | Err(Errno::AGAIN) => Err(Errno::AGAIN),
        Err(error) => Err(error),
    })
    .unwrap();
    wire.steps(2);
    assert_eq!(wire.server().orphaned(), 0);
}

fn own(to: Option<(Ipv4Addr, u16)>) -> SendOptions {
    to.map(|(host, port)| Endpoint::v4(host, port)).into()
}
