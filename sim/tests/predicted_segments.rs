//! Segments of a connection that is known by its headers go to it at once (`core/inet/src/input/prediction.rs`). Here
//! they must fare as on a host that looks at every header, whatever a peer, or somebody else, sends.

use base::Duration;
use inet::{Count, Endpoint, Error, State, Transport};
use sim::{Host, Peer, Random};
use wire::{Protocol, Sum, TcpFlags};

use crate::predictions::fate;

const IP_AT: usize = 14;
const IP_SUM_AT: usize = IP_AT + 10;
const TCP_AT: usize = IP_AT + 20;
const TCP_SUM_AT: usize = TCP_AT + 16;
/// Where the sender's port stands.
const PORT_AT: usize = TCP_AT;

/// Two connections on hosts that are alike, but that the second takes no short way: a socket has a filter, which
/// wants to see headers.
fn pair(clock: Option<u32>) -> [Peer; 2] {
    let mut pair = [0; 2].map(|_| Peer::connected(clock));
    let Host { stack, env } = &mut pair[1].host;
    let filtered = stack.open(Transport::Udp).expect("a socket");
    stack
        .configure(env, filtered, |options| options.is_filtered = true)
        .expect("our socket");
    // The short way is learned.
    for peer in &mut pair {
        for seq in 1..4 {
            peer.send(seq, 1, TcpFlags::ACK, 1);
        }
        peer.wait(Duration::from_millis(50));
    }
    pair
}

fn sum_headers(frame: &mut [u8]) {
    let Some(header) = frame.get_mut(IP_AT..TCP_AT) else {
        return;
    };
    header[IP_SUM_AT - IP_AT..][..2].fill(0);
    let sum = Sum::new().bytes(header).checksum();
    frame[IP_SUM_AT..][..2].copy_from_slice(&sum.to_be_bytes());
}

fn sum_segment(frame: &mut [u8]) {
    if frame.len() < TCP_SUM_AT + 2 {
        return;
    }
    frame[TCP_SUM_AT..][..2].fill(0);
    let segment = &frame[TCP_AT..];
    let (src, dst) = (Host::address(2), Host::address(1));
    let pseudo = Sum::pseudo_v4(src, dst, Protocol::Tcp, segment.len() as u32);
    let sum = pseudo.bytes(segment).checksum();
    frame[TCP_SUM_AT..][..2].copy_from_slice(&sum.to_be_bytes());
}

/// Changes some bytes of the headers, or cuts the frame, or makes it longer; sums are made right again in most
/// cases.
fn change(frame: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(3) {
        let at = random.below(TCP_AT as u64 + 24) as usize;
        if let Some(byte) = frame.get_mut(at) {
            *byte ^= 1 << random.below(8);
        }
    }
    match random.below(8) {
        0 => frame.truncate(random.below(frame.len() as u64) as usize),
        1 => frame.extend_from_slice(&[0; 7]),
        _ => {}
    }
    if random.below(4) != 0 {
        sum_headers(frame);
    }
}

/// Controls that come often, and those that a connection ends by now and then.
fn flags(random: &mut Random) -> TcpFlags {
    match random.below(24) {
        0 => TcpFlags::ACK.with(TcpFlags::FIN),
        1 => TcpFlags::RST,
        2 => TcpFlags::SYN,
        3 => TcpFlags::ACK.with(TcpFlags::SYN),
        4 => TcpFlags(0),
        5..12 => TcpFlags::ACK.with(TcpFlags::PSH),
        _ => TcpFlags::ACK,
    }
}

fn read(peer: &mut Peer) -> Result<usize, Error> {
    let Host { stack, env } = &mut peer.host;
    let data = stack.recv_chain(env, peer.socket, 4096)?;
    Ok(data.len())
}

#[test]
fn a_segment_fares_as_on_a_host_that_looks_at_every_header() {
    let mut bytes = 0;
    sim::for_each_seed(400, |seed| {
        let mut random = Random::new(seed);
        let clock = (random.below(2) == 0).then_some(7);
        let mut pair = pair(clock);
        let mut next = 4;
        for _ in 0..24 {
            let (flags, len) = (flags(&mut random), random.below(200) as usize);
            let seq = match random.below(4) {
                0 => next + random.below(400) as u32 - 200.min(next),
                _ => next,
            };
            let mut frame = pair[0].frame_with(seq, 1, flags, len, &[]);
            sum_segment(&mut frame);
            if random.below(2) == 0 {
                change(&mut frame, &mut random);
            } else if seq == next {
                next += len as u32;
            }
            let is_verified = random.below(2) == 0;
            let outcomes = [0, 1].map(|side: usize| {
                let peer = &mut pair[side];
                let before = peer.host.stack.stats().clone();
                let heard = peer.receive(&frame, is_verified);
                let fate = fate(&before, peer.host.stack.stats());
                (heard, fate, read(peer))
            });
            assert_eq!(outcomes[0], outcomes[1], "{frame:02x?}");
            bytes += outcomes[0].2.unwrap_or_default();
            for peer in &mut pair {
                peer.wait(Duration::from_millis(3));
            }
        }
    });
    assert!(bytes > 100_000, "only {bytes} bytes arrived");
}

#[test]
fn a_connection_that_is_closed_gets_no_more_segments() {
    for mut peer in pair(None) {
        peer.send(4, 1, TcpFlags::RST, 0);
        let answer = peer.send(4, 1, TcpFlags::ACK, 5);
        assert_eq!(answer.len(), 1, "a reset: {answer:?}");
        assert!(answer[0].flags.has(TcpFlags::RST));
    }
}

#[test]
fn a_connection_in_the_place_of_another_gets_nothing_of_that_ones_peer() {
    for mut peer in pair(None) {
        peer.send(4, 1, TcpFlags::RST, 0);
        let Host { stack, env } = &mut peer.host;
        stack.close(env, peer.socket).expect("our socket");
        let socket = stack.open(Transport::Tcp).expect("a socket");
        assert_eq!(socket.index(), peer.socket.index(), "the same place");
        let other = Endpoint::v4(Host::address(9), 4000);
        stack.connect(env, socket, other).expect("a reachable peer");
        let heard = peer.send(4, 1, TcpFlags::ACK, 5);
        assert!(
            heard.iter().any(|answer| answer.flags.has(TcpFlags::RST)),
            "{heard:?}"
        );
        let Host { stack, .. } = &mut peer.host;
        assert_eq!(stack.state(socket), Ok(State::SynSent));
    }
}

#[test]
fn a_segment_from_too_far_is_dropped_though_it_is_known() {
    for mut peer in pair(None) {
        assert_eq!(read(&mut peer), Ok(3));
        let Host { stack, env } = &mut peer.host;
        let limited = stack.configure(env, peer.socket, |options| options.min_ttl = 200);
        assert_eq!(limited, Ok(()));
        for (hops, arrives) in [(64, false), (255, true)] {
            let mut frame = peer.frame_with(4, 1, TcpFlags::ACK, 1, &[]);
            frame[IP_AT + 8] = hops;
            sum_headers(&mut frame);
            peer.receive(&frame, true);
            assert_eq!(read(&mut peer).is_ok(), arrives, "{hops} hops");
        }
    }
}

#[test]
fn routers_marks_are_heard_of_segments_that_are_known() {
    const MARKED: u8 = 0b11;
    let mut peer = Peer::connected_with_ecn();
    for seq in 1..9 {
        let mut frame = peer.frame_with(seq, 1, TcpFlags::ACK, 1, &[]);
        frame[IP_AT + 1] |= MARKED;
        sum_headers(&mut frame);
        peer.receive(&frame, true);
    }
    let stats = peer.host.stack.stats();
    assert_eq!(stats.counts.get(Count::MarksIn), 8);
}

#[test]
fn connections_that_share_a_place_all_go_on() {
    let mut peer = pair(None).into_iter().next().expect("two");
    for round in 4..8 {
        let mut stray = peer.frame_with(round, 1, TcpFlags::ACK, 1, &[]);
        let port = u16::from_be_bytes([stray[PORT_AT], stray[PORT_AT + 1]]) + 256;
        stray[PORT_AT..][..2].copy_from_slice(&port.to_be_bytes());
        let answer = peer.receive(&stray, true);
        assert!(answer.iter().all(|heard| heard.flags.has(TcpFlags::RST)));
        peer.send(round, 1, TcpFlags::ACK, 1);
        assert_eq!(read(&mut peer), Ok(if round == 4 { 4 } else { 1 }));
    }
}
