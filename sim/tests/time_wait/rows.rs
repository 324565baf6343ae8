//! The rows of `docs/time-wait.md` with hand-made segments, and what is sent for each.

use base::Duration;
use inet::{Config, Count, DropReason, State, SynCookies, What};
use sim::Host;
use wire::{Seq, TcpFlags};

use super::peer::{CLOCK, FIRST, HOST_PORT, Heard, PEER_PORT, Peer, SYN_ACK, count, drops};

/// A host that remembers a connection, with what it would send and what it expects.
fn finished(clock: Option<u32>) -> (Peer, Seq, Seq) {
    let mut peer = Peer::new(Config::default());
    let (next, expected) = peer.finish_one(FIRST, clock);
    peer.wait(Duration::from_secs(2));
    peer.hear();
    (peer, next, expected)
}

fn is_challenge(heard: &[Heard], next: Seq, expected: Seq) -> bool {
    matches!(heard, [only] if only.flags == TcpFlags::ACK
        && (only.seq, only.ack) == (next, expected))
}

/// The last events of the journal, both of them of a SYN for the finished connection.
fn last_two(peer: &Peer) -> [What; 2] {
    let events: Vec<_> = peer.host.stack.journal().collect();
    let [.., came, dropped] = events[..] else {
        panic!("{events:?}");
    };
    for event in [came, dropped] {
        assert_eq!((event.state, event.flags), (State::TimeWait, TcpFlags::SYN));
        let ports = (event.local.port, event.remote.port);
        assert_eq!(ports, (HOST_PORT, PEER_PORT));
    }
    [came.what, dropped.what]
}

#[test]
fn a_syn_opens_or_is_challenged_as_rfc_6191_has_it() {
    let (before, at, after) = (FIRST, FIRST + 2, FIRST + 3);
    let cases = [
        // The old connection's clock, the SYN's clock, its number, whether it opens.
        (Some(CLOCK), Some(CLOCK + 1), before, true),
        (Some(CLOCK), Some(CLOCK), after, true),
        (Some(CLOCK), Some(CLOCK), at, false),
        (Some(CLOCK), Some(CLOCK - 1), after, false),
        (Some(CLOCK), None, after, true),
        (Some(CLOCK), None, at, false),
        (None, Some(1), before, true),
        (None, None, after, true),
        (None, None, at, false),
        (None, None, before, false),
    ];
    for (old, new, seq, opens) in cases {
        let (mut peer, next, expected) = finished(old);
        let heard = peer.say(TcpFlags::SYN, seq, Seq(0), new);
        if opens {
            let [answer] = heard[..] else {
                panic!("{old:?} {new:?}: {heard:?}");
            };
            assert_eq!((answer.flags, answer.ack), (SYN_ACK, seq + 1));
            assert!(
                answer.seq.after(next),
                "its numbers lie behind the old ones"
            );
            assert_eq!(peer.host.stack.time_waits(), 0);
            assert_eq!(count(&peer, Count::TimeWaitsReused), 1);
        } else {
            assert!(
                is_challenge(&heard, next, expected),
                "{old:?} {new:?}: {heard:?}"
            );
            assert_eq!(peer.host.stack.time_waits(), 1);
            assert_eq!(drops(&peer, DropReason::TimeWaitSyn), 1);
            assert_eq!(
                last_two(&peer),
                [What::TimeWait, What::Drop(DropReason::TimeWaitSyn)]
            );
        }
    }
}

#[test]
fn a_client_that_answers_a_challenge_is_connected_without_waiting() {
    let (mut peer, next, expected) = finished(None);
    let heard = peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
    assert!(is_challenge(&heard, next, expected));
    // What a client in SYN-SENT says to an acknowledgement that it cannot use.
    let heard = peer.say(TcpFlags::RST, heard[0].ack, Seq(0), None);
    assert_eq!((heard[0].flags, heard[0].ack), (SYN_ACK, FIRST + 1));
    assert_eq!(count(&peer, Count::TimeWaitsTakenUp), 1);
    peer.say(TcpFlags::ACK, FIRST + 1, heard[0].seq + 1, None);
    let Host { stack, env } = &mut peer.host;
    assert!(stack.accept(env, peer.listener).is_ok());
}

#[test]
fn a_reset_that_answers_nothing_is_ignored() {
    let (mut peer, _, expected) = finished(Some(CLOCK));
    for seq in [expected, expected + 1, expected - 1] {
        assert!(peer.say(TcpFlags::RST, seq, Seq(0), None).is_empty());
    }
    assert_eq!(drops(&peer, DropReason::TimeWaitReset), 3);
    assert_eq!(peer.host.stack.time_waits(), 1);
    // A challenged SYN changes nothing for a reset elsewhere in the window.
    peer.say(TcpFlags::SYN, FIRST, Seq(0), Some(CLOCK - 1));
    assert!(
        peer.say(TcpFlags::RST, expected + 1, Seq(0), None)
            .is_empty()
    );
    assert_eq!(peer.host.stack.time_waits(), 1);
}

#[test]
fn without_rfc_1337_an_exact_reset_ends_the_wait() {
    let mut config = Config::default();
    config.time_wait.rfc1337 = false;
    let mut peer = Peer::new(config);
    let (_, expected) = peer.finish_one(FIRST, None);
    assert!(
        peer.say(TcpFlags::RST, expected + 1, Seq(0), None)
            .is_empty()
    );
    assert_eq!(peer.host.stack.time_waits(), 1);
    peer.say(TcpFlags::RST, expected, Seq(0), None);
    assert_eq!(peer.host.stack.time_waits(), 0);
    assert_eq!(count(&peer, Count::TimeWaitsReset), 1);
}

#[test]
fn a_repeated_fin_is_acknowledged_and_starts_the_wait_anew() {
    let (mut peer, next, expected) = finished(Some(CLOCK));
    peer.wait(Duration::from_secs(50));
    let fin_ack = TcpFlags::FIN.with(TcpFlags::ACK);
    let heard = peer.say(fin_ack, expected - 1, next, Some(CLOCK));
    assert!(is_challenge(&heard, next, expected));
    peer.wait(Duration::from_secs(59));
    assert_eq!(peer.host.stack.time_waits(), 1);
    peer.wait(Duration::from_secs(1));
    assert_eq!(peer.host.stack.time_waits(), 0);
    assert_eq!(count(&peer, Count::TimeWaitsExpired), 1);
}

#[test]
fn a_refused_syn_does_not_prolong_the_wait() {
    let (mut peer, _, _) = finished(None);
    peer.wait(Duration::from_secs(50));
    peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
    peer.wait(Duration::from_secs(8));
    assert_eq!(peer.host.stack.time_waits(), 0);
}

#[test]
fn other_segments_are_acknowledged_noted_or_dropped() {
    let ack = TcpFlags::ACK;
    let (old, paws, other) = (
        CLOCK - 1,
        DropReason::TimeWaitPaws,
        DropReason::TimeWaitSegment,
    );
    let cases = [
        // Flags, place, clock, whether it is answered, why it is dropped.
        (SYN_ACK, 0, Some(CLOCK), true, Some(other)),
        (
            TcpFlags::PSH,
            0,
            Some(CLOCK),
            false,
            Some(DropReason::Unexpected),
        ),
        (ack, 0, None, false, Some(paws)),
        (ack, 0, Some(old), true, Some(paws)),
        (ack, 0, Some(CLOCK), false, None),
        (ack, 1, Some(CLOCK), true, Some(other)),
    ];
    for (flags, offset, clock, is_answered, reason) in cases {
        let (mut peer, next, expected) = finished(Some(CLOCK));
        let heard = peer.say(flags, expected + offset, next, clock);
        assert_eq!(
            is_challenge(&heard, next, expected),
            is_answered,
            "{flags:?}"
        );
        assert_eq!(heard.is_empty(), !is_answered, "{flags:?}");
        let dropped = reason.map_or(1, |reason| drops(&peer, reason));
        assert_eq!(dropped, 1, "{flags:?} {reason:?}");
        assert_eq!(peer.host.stack.time_waits(), 1);
    }
}

#[test]
fn one_finished_connection_answers_twice_a_second_at_most() {
    let (mut peer, _, expected) = finished(None);
    let mut answers = 0;
    for _ in 0..100 {
        answers += peer.say(TcpFlags::ACK, expected + 9, Seq(1), None).len();
        peer.wait(Duration::from_millis(10));
    }
    assert_eq!(answers, 2);
    assert_eq!(count(&peer, Count::TimeWaitAcksSkipped), 98);
}

#[test]
fn a_syn_that_nobody_takes_leaves_the_wait_as_it_was() {
    // Nobody listens any more.
    let (mut peer, next, expected) = finished(None);
    let Host { stack, env } = &mut peer.host;
    stack.close(env, peer.listener).expect("it is ours");
    let heard = peer.say(TcpFlags::SYN, FIRST + 9, Seq(0), None);
    assert!(is_challenge(&heard, next, expected));
    assert_eq!(peer.host.stack.time_waits(), 1);
    // The accept queue is full.
    let (mut peer, ..) = finished(None);
    peer.host
        .stack
        .listen(peer.listener, 0)
        .expect("it listens");
    peer.fill_accept_queue();
    let heard = peer.say(TcpFlags::SYN, FIRST + 9, Seq(0), None);
    assert!(heard.is_empty());
    assert_eq!(drops(&peer, DropReason::AcceptQueueFull), 1);
    assert_eq!(peer.host.stack.time_waits(), 1);
}

#[test]
fn a_peer_with_a_finished_connection_needs_no_cookie() {
    let config = Config {
        syn_cookies: SynCookies::Always,
        ..Config::default()
    };
    let mut peer = Peer::new(config);
    let (next, _) = peer.finish_one(FIRST, None);
    assert_eq!(count(&peer, Count::CookiesAccepted), 1);
    let heard = peer.say(TcpFlags::SYN, FIRST + 9, Seq(0), None);
    assert!(heard[0].seq.after(next));
    assert_eq!(count(&peer, Count::CookiesSent), 1);
    assert_eq!(peer.open_connections(), 1);
}
