//! What the stack does with single segments, RFC paragraph by paragraph.

use base::Duration;
use inet::{Count, DropReason, Error, Shutdown, State};
use sim::{Heard, Host, Peer};
use wire::TcpFlags;

const ACK: TcpFlags = TcpFlags::ACK;
const RST: TcpFlags = TcpFlags::RST;
const SYN: TcpFlags = TcpFlags::SYN;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn count(peer: &Peer, what: Count) -> u64 {
    peer.host.stack.stats().counts.get(what)
}

fn drops(peer: &Peer, why: DropReason) -> u64 {
    peer.host.stack.stats().drops.get(why)
}

/// Where each segment begins, and its bytes.
fn places(heard: &[Heard]) -> Vec<(u32, usize)> {
    heard.iter().map(|each| (each.seq, each.len)).collect()
}

#[test]
fn an_old_clock_makes_a_segment_a_duplicate() {
    // RFC 7323 5.3 R1: dropped, and acknowledged.
    let mut peer = Peer::connected(Some(5000));
    peer.wait(millis(100));
    peer.send(1, 1, ACK, 100);
    let clock = peer.clock.replace(5050);
    let answer = peer.send(101, 1, ACK, 100);
    assert_eq!(drops(&peer, DropReason::OldTimestamp), 1);
    assert_eq!((answer.len(), answer[0].ack), (1, 101));
    peer.clock = clock;
    peer.send(101, 1, ACK, 100);
    assert_eq!(peer.host.stack.unread(peer.socket), Ok(200));
}

#[test]
fn bytes_that_the_program_wants_no_more_of_are_acknowledged() {
    let mut peer = Peer::connected(None);
    let Host { stack, env } = &mut peer.host;
    stack
        .shutdown(env, peer.socket, Shutdown::Read)
        .expect("an open stream");
    peer.send(1, 1, ACK, 100);
    let acks: Vec<_> = peer.wait(millis(100)).iter().map(|each| each.ack).collect();
    assert_eq!(acks, [101]);
}

#[test]
fn an_overtaken_acknowledgement_is_not_answered() {
    let mut peer = Peer::connected(Some(5000));
    peer.wait(millis(100));
    peer.send(1, 1, ACK, 100);
    peer.wait(millis(100));
    peer.clock = Some(5050);
    assert_eq!(peer.send(1, 1, ACK, 0), []);
    assert_eq!(drops(&peer, DropReason::OldTimestamp), 1);
}

#[test]
fn a_reset_is_believed_whatever_its_clock() {
    // RFC 7323 5.2.
    let mut peer = Peer::connected(Some(5000));
    peer.clock = Some(1);
    peer.send(1, 1, RST, 0);
    assert_eq!(
        peer.host.stack.take_error(peer.socket),
        Some(Error::ConnectionReset)
    );
}

#[test]
fn a_clock_older_than_24_days_proves_nothing() {
    // RFC 7323 5.5.
    let mut peer = Peer::connected(Some(5000));
    peer.wait(Duration::from_secs(25 * 24 * 3600));
    peer.clock = Some(4000);
    peer.send(1, 1, ACK, 100);
    assert_eq!(peer.host.stack.unread(peer.socket), Ok(100));
}

#[test]
fn a_reset_in_the_window_but_not_at_its_edge_is_challenged() {
    // RFC 5961 3.2.
    let mut peer = Peer::connected(None);
    let answer = peer.send(100, 1, RST, 0);
    assert_eq!((answer[0].flags, answer[0].ack), (ACK, 1));
    assert_eq!(peer.host.stack.state(peer.socket), Ok(State::Established));
    assert_eq!(count(&peer, Count::ChallengeAcks), 1);
    peer.send(1, 1, RST, 0);
    assert_eq!(peer.host.stack.state(peer.socket), Ok(State::Closed));
}

#[test]
fn a_syn_in_a_connection_is_challenged() {
    // RFC 5961 4.2.
    let mut peer = Peer::connected(None);
    for seq in [1, 1000, 1 << 30] {
        let answer = peer.send(seq, 1, SYN, 0);
        assert_eq!((answer[0].flags, answer[0].ack), (ACK, 1));
    }
    assert_eq!(peer.host.stack.state(peer.socket), Ok(State::Established));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_challenged() {
    // RFC 5961 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
    let mut peer = Peer::connected(None);
    peer.write(500);
    for ack in [502, 1_000_000, 1u32.wrapping_sub(70_000)] {
        assert_eq!(peer.send(1, ack, ACK, 100).len(), 1);
    }
    assert_eq!(drops(&peer, DropReason::BadAck), 3);
    assert_eq!(peer.host.stack.unread(peer.socket), Ok(0));
    peer.send(1, 501, ACK, 100);
    assert_eq!(peer.host.stack.unread(peer.socket), Ok(100));
}

#[test]
fn challenges_are_limited_and_nobody_can_tell_to_how_many() {
    // RFC 5961 section 7.
    let mut peer = Peer::connected(None);
    let mut limits = Vec::new();
    for _ in 0..8 {
        peer.wait(Duration::from_secs(1));
        let answers = (0..300).flat_map(|_| peer.send(100, 1, RST, 0)).count();
        assert!((50..=100).contains(&answers), "{answers}");
        limits.push(answers);
    }
    limits.dedup();
    assert!(limits.len() > 1, "the same in each second: {limits:?}");
}

#[test]
fn what_arrives_twice_is_reported() {
    // RFC 2883 4.1: the first block reports the duplicate.
    let mut peer = Peer::connected(None);
    peer.send(1, 1, ACK, 1000);
    let answer = peer.send(1, 1, ACK, 1000);
    assert_eq!(
        (answer[0].ack, &answer[0].sack[..]),
        (1001, &[(1, 1001)][..])
    );
    assert_eq!(count(&peer, Count::DuplicateSacksSent), 1);
}

#[test]
fn what_arrives_early_and_twice_is_reported_with_the_block_around_it() {
    // RFC 2883 4.2.1.
    let mut peer = Peer::connected(None);
    peer.send(2001, 1, ACK, 1000);
    let first = peer.send(1001, 1, ACK, 1000);
    assert_eq!(first[0].sack, [(1001, 3001)]);
    let second = peer.send(1001, 1, ACK, 1000);
    assert_eq!(second[0].sack, [(1001, 2001), (1001, 3001)]);
    assert_eq!(count(&peer, Count::DuplicateSacksEarly), 1);
}

#[test]
fn three_segments_beyond_a_gap_are_a_loss_at_once() {
    // RFC 8985 6.2 step 4: no reordering was seen, so the window is zero.
    let mut peer = Peer::connected(None);
    assert_eq!(peer.write(6000).len(), 6);
    peer.wait(millis(40));
    assert_eq!(peer.send_with(1, 1, ACK, 0, &[(1001, 3001)]), []);
    let answer = peer.send_with(1, 1, ACK, 0, &[(1001, 4001)]);
    assert_eq!(places(&answer)[0], (1, 1000));
    assert_eq!(count(&peer, Count::SackRecoveries), 1);
}

#[test]
fn fewer_segments_beyond_a_gap_are_a_loss_after_a_quarter_of_a_round_trip() {
    // RFC 8985 6.2 steps 4 and 5: the reordering timer.
    let mut peer = Peer::connected(None);
    peer.write(3000);
    peer.wait(millis(40));
    assert_eq!(peer.send_with(1, 1, ACK, 0, &[(1001, 2001)]), []);
    assert_eq!(peer.wait(millis(9)), []);
    assert_eq!(places(&peer.wait(millis(3)))[0], (1, 1000));
    assert_eq!(count(&peer, Count::SackRecoveries), 1);
}

#[test]
fn without_sack_three_duplicates_are_a_loss() {
    // RFC 5681 3.2.
    let mut peer = Peer::connected_without_sack();
    peer.write(6000);
    peer.wait(millis(40));
    assert_eq!(peer.send(1, 1, ACK, 0), []);
    assert_eq!(peer.send(1, 1, ACK, 0), []);
    let answer = peer.send(1, 1, ACK, 0);
    assert_eq!(places(&answer), [(1, 1000)]);
    assert_eq!(count(&peer, Count::RenoRecoveries), 1);
    // RFC 6582 3.2 step 3: a partial acknowledgement names the next loss.
    let answer = peer.send(1, 1001, ACK, 0);
    assert_eq!(places(&answer)[0], (1001, 1000));
}

#[test]
fn a_timeout_doubles_and_resends_the_first_segment() {
    // RFC 6298 (5.4) to (5.6).
    let mut peer = Peer::connected_without_sack();
    peer.write(3000);
    let mut at = Vec::new();
    for tick in 0..200_u64 {
        let heard = peer.wait(millis(10));
        if !heard.is_empty() {
            assert_eq!(places(&heard), [(1, 1000)]);
            at.push(tick);
        }
    }
    assert!(at.len() >= 3, "{at:?}");
    let gaps: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        gaps.windows(2)
            .all(|pair| pair[1].abs_diff(2 * pair[0]) <= 2)
    );
}

#[test]
fn a_peer_that_drops_what_it_reported_gets_it_again() {
    // RFC 2018 section 8.
    let mut peer = Peer::connected(None);
    peer.write(4000);
    peer.wait(millis(40));
    peer.send_with(1, 1, ACK, 0, &[(1001, 4001)]);
    peer.send(1, 1001, ACK, 0);
    let heard = peer.wait(Duration::from_secs(2));
    assert_eq!(places(&heard)[0], (1001, 1000));
    assert_eq!(count(&peer, Count::SackReneging), 1);
}

#[test]
fn a_user_timeout_ends_a_connection_whose_peer_is_silent() {
    // RFC 5482 section 3.
    for is_busy in [true, false] {
        let mut peer = Peer::connected(None);
        let (stack, env) = (&mut peer.host.stack, &mut peer.host.env);
        stack
            .configure(env, peer.socket, |options| {
                options.user_timeout_ms = 5000;
                (options.keepalive, options.keep_idle_secs) = (true, 3);
                (options.keep_interval_secs, options.keep_count) = (1, 100);
            })
            .expect("our socket");
        if is_busy {
            peer.write(100);
        }
        peer.wait(millis(4900));
        assert_eq!(peer.host.stack.state(peer.socket), Ok(State::Established));
        peer.wait(millis(2000));
        let error = peer.host.stack.take_error(peer.socket);
        assert_eq!(error, Some(Error::TimedOut), "busy: {is_busy}");
    }
}

#[test]
fn another_host_s_segment_does_not_keep_a_dead_peer_alive() {
    let mut peer = Peer::connected(None);
    let (stack, env) = (&mut peer.host.stack, &mut peer.host.env);
    stack
        .configure(env, peer.socket, |options| {
            (options.keepalive, options.keep_idle_secs) = (true, 3);
            (options.keep_interval_secs, options.keep_count) = (1, 3);
        })
        .expect("our socket");
    for _ in 0..10 {
        peer.wait(millis(1000));
        peer.send(1 << 30, 1, ACK, 0);
    }
    assert_eq!(
        peer.host.stack.take_error(peer.socket),
        Some(Error::TimedOut)
    );
}
