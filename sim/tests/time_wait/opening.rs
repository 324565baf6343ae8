//! How connections are opened and refused: numbers, cookies, queues, and why resets are sent.

use base::Duration;
use inet::{
    Config, Count, DropReason, Endpoint, Events, ResetReason, Shutdown, SocketId, State,
    SynCookies, TimeWaitRules, Transport,
};
use sim::Host;
use wire::{Seq, TcpFlags, TcpOptions, Timestamps};

use super::peer::{CLOCK, FIRST, Heard, PEER_PORT, Peer, SYN_ACK, count, drops};

fn resets(peer: &Peer, why: ResetReason) -> u64 {
    peer.host.stack.stats().resets.get(why)
}

#[test]
fn without_cookies_one_syn_too_many_is_dropped_and_counted() {
    let config = Config {
        syn_cookies: SynCookies::Never,
        half_open_max: 0,
        ..Config::default()
    };
    let mut peer = Peer::new(config);
    assert!(peer.say(TcpFlags::SYN, FIRST, Seq(0), None).is_empty());
    assert_eq!(drops(&peer, DropReason::SynQueueFull), 1);
}

#[test]
fn an_acknowledgement_is_taken_for_a_cookie_only_while_one_may_be_under_way() {
    let config = Config {
        half_open_max: 0,
        ..Config::default()
    };
    let mut peer = Peer::new(config);
    let heard = peer.say(TcpFlags::ACK, FIRST, Seq(77), None);
    assert_eq!((heard[0].flags, heard[0].seq), (TcpFlags::RST, Seq(77)));
    assert_eq!(resets(&peer, ResetReason::ListenerAck), 1);
    let cookie = peer.say(TcpFlags::SYN, FIRST, Seq(0), None)[0].seq;
    peer.say(TcpFlags::ACK, FIRST + 1, cookie + 2, None);
    assert_eq!(resets(&peer, ResetReason::BadCookie), 1);
    peer.wait(Duration::from_secs(121));
    peer.say(TcpFlags::ACK, FIRST + 1, cookie + 1, None);
    assert_eq!(resets(&peer, ResetReason::ListenerAck), 2);
    let cookie = peer.say(TcpFlags::SYN, FIRST, Seq(0), Some(CLOCK))[0];
    peer.say(TcpFlags::ACK, FIRST + 1, cookie.seq + 1, Some(CLOCK));
    assert_eq!(count(&peer, Count::CookiesAccepted), 1);
}

/// A client of the host's that has sent its SYN to the peer.
fn connecting(rules: TimeWaitRules) -> (Peer, SocketId, Heard) {
    let config = Config {
        time_wait: rules,
        ..Config::default()
    };
    let mut peer = Peer::new(config);
    let Host { stack, env } = &mut peer.host;
    let socket = stack.open(Transport::Tcp).expect("a socket");
    let to = Endpoint::v4(Host::address(2), PEER_PORT);
    stack.connect(env, socket, to).expect("a route");
    let syn = peer.hear()[0];
    assert_eq!(syn.flags, TcpFlags::SYN);
    (peer, socket, syn)
}

#[test]
fn a_peer_that_remembers_is_reset_and_asked_again_at_once_but_only_once() {
    let (mut peer, socket, syn) = connecting(TimeWaitRules::default());
    let old = Seq(12345);
    peer.say_to(syn.src_port, TcpFlags::ACK, (Seq(1), old), None);
    let heard = peer.hear();
    assert_eq!((heard[0].flags, heard[0].seq), (TcpFlags::RST, old));
    assert_eq!((heard[1].flags, heard[1].seq), (TcpFlags::SYN, syn.seq));
    assert_eq!(heard.len(), 2);
    // The second time only the timer asks.
    peer.say_to(syn.src_port, TcpFlags::ACK, (Seq(1), old), None);
    let heard = peer.hear();
    assert_eq!((heard.len(), heard[0].flags), (1, TcpFlags::RST));
    // A reset is not answered with one.
    let reset = TcpFlags::RST.with(TcpFlags::ACK);
    peer.say_to(syn.src_port, reset, (Seq(1), old), None);
    assert!(peer.hear().is_empty());
    // And the good answer still connects.
    peer.say_to(syn.src_port, SYN_ACK, (Seq(1), syn.seq + 1), None);
    assert_eq!(peer.host.stack.state(socket), Ok(State::Established));
    assert_eq!(count(&peer, Count::SynsHurried), 1);
}

#[test]
fn an_answer_with_a_foreign_clock_is_refused() {
    let (mut peer, socket, syn) = connecting(TimeWaitRules::default());
    // The peer echoes 0 below; that is allowed. Nothing else but our clock is.
    let clock = syn.options.timestamps.expect("we use timestamps").value;
    for foreign in [clock.wrapping_sub(1), clock.wrapping_add(1)] {
        peer.echo(syn.src_port, SYN_ACK, (Seq(1), syn.seq + 1), foreign);
        let heard = peer.hear();
        assert_eq!((heard[0].flags, heard[0].seq), (TcpFlags::RST, syn.seq + 1));
    }
    assert_eq!(drops(&peer, DropReason::BadEcho), 2);
    assert_eq!(peer.host.stack.state(socket), Ok(State::SynSent));
    peer.echo(syn.src_port, SYN_ACK, (Seq(1), syn.seq + 1), clock);
    assert_eq!(peer.host.stack.state(socket), Ok(State::Established));
}

#[test]
fn numbers_of_one_name_only_grow_and_those_of_others_lie_elsewhere() {
    let mut peer = Peer::new(Config::default());
    let first = |peer: &mut Peer| {
        let heard = peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
        let number = heard[0].seq;
        peer.say(TcpFlags::RST, FIRST + 1, number + 1, None);
        number
    };
    let mut last = first(&mut peer);
    for _ in 0..20 {
        peer.wait(Duration::from_millis(1));
        let next = first(&mut peer);
        // RFC 6528: the clock makes a step each 4 us.
        assert!((240..250).contains(&next.since(last)), "{last:?} {next:?}");
        last = next;
    }
    assert_eq!(count(&peer, Count::EmbryonicResets), 21);
    let other =
        Peer::with_secret(10, Config::default()).say(TcpFlags::SYN, FIRST, Seq(0), None)[0].seq;
    let elsewhere = other.0.abs_diff(last.0);
    assert!(elsewhere > 1 << 16, "another secret, another place");
}

#[test]
fn a_cookie_keeps_what_was_agreed_if_the_peer_echoes_it() {
    let config = Config {
        syn_cookies: SynCookies::Always,
        ..Config::default()
    };
    for (sack, scale) in [(true, Some(9)), (false, Some(0)), (true, None)] {
        let mut peer = Peer::new(config);
        let stamp = |echo| Some(Timestamps { value: CLOCK, echo });
        let options = TcpOptions {
            mss: Some(1400),
            window_scale: scale,
            sack_permitted: sack,
            timestamps: stamp(0),
            ..TcpOptions::default()
        };
        peer.send(80, TcpFlags::SYN, (FIRST, Seq(0)), options);
        let cookie = peer.hear()[0];
        let echo = cookie.options.timestamps.expect("as we have").value;
        let options = TcpOptions {
            timestamps: stamp(echo),
            ..TcpOptions::default()
        };
        peer.send(80, TcpFlags::ACK, (FIRST + 1, cookie.seq + 1), options);
        let Host { stack, env } = &mut peer.host;
        let socket = stack.accept(env, peer.listener).expect("a connection");
        let info = stack.info(socket).expect("it is ours");
        let scales = (scale.unwrap_or(0), if scale.is_some() { 7 } else { 0 });
        assert_eq!((info.has_sack, info.window_scales), (sack, scales));
        assert!(info.has_timestamps);
        assert_eq!(
            info.mss,
            1300 - 12,
            "the next smaller size that a cookie can say"
        );
    }
}

#[test]
fn a_reset_ends_a_half_open_connection_even_if_nobody_accepts() {
    let mut peer = Peer::new(Config::default());
    peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
    peer.fill_accept_queue();
    let before = peer.open_connections();
    peer.say(TcpFlags::RST, FIRST + 1, Seq(0), None);
    assert_eq!(peer.open_connections(), before - 1);
    assert_eq!(count(&peer, Count::EmbryonicResets), 1);
    peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
    assert_eq!(drops(&peer, DropReason::AcceptQueueFull), 1);
}

/// A whole connection: the host's socket, and its next number.
fn connected(peer: &mut Peer) -> (SocketId, Seq) {
    let heard = peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
    peer.say(TcpFlags::ACK, FIRST + 1, heard[0].seq + 1, None);
    let Host { stack, env } = &mut peer.host;
    let socket = stack.accept(env, peer.listener).expect("one waits");
    (socket, heard[0].seq + 1)
}

/// Makes the host send one reset.
type Provocation = fn(&mut Peer);

#[test]
fn each_reset_says_why() {
    let cases: [(ResetReason, Provocation); 7] = [
        (ResetReason::NoSocket, |peer| {
            peer.say_to(81, TcpFlags::SYN, (FIRST, Seq(0)), None);
        }),
        (ResetReason::BadAck, |peer| {
            let heard = peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
            peer.say_to(80, TcpFlags::ACK, (FIRST + 1, heard[0].seq + 2), None);
        }),
        (ResetReason::Unread, |peer| {
            let (socket, next) = connected(peer);
            peer.say_bytes(FIRST + 1, next, b"nobody reads this");
            let Host { stack, env } = &mut peer.host;
            assert!(stack.poll(socket).contains(Events::READABLE));
            stack.close(env, socket).expect("it is ours");
        }),
        (ResetReason::LingerZero, |peer| {
            let (socket, _) = connected(peer);
            let Host { stack, env } = &mut peer.host;
            stack
                .configure(env, socket, |options| options.linger_secs = Some(0))
                .expect("it is ours");
            stack.close(env, socket).expect("it is ours");
        }),
        (ResetReason::DataAfterClose, |peer| {
            let (socket, next) = connected(peer);
            let Host { stack, env } = &mut peer.host;
            stack
                .shutdown(env, socket, Shutdown::Write)
                .expect("it is open");
            stack.close(env, socket).expect("it is ours");
            peer.hear();
            peer.say_bytes(FIRST + 1, next + 1, b"too late");
        }),
        (ResetReason::Aborted, |peer| {
            let (socket, _) = connected(peer);
            let Host { stack, env } = &mut peer.host;
            stack.abort(env, socket).expect("it is ours");
        }),
        (ResetReason::ListenerClosed, |peer| {
            let heard = peer.say(TcpFlags::SYN, FIRST, Seq(0), None);
            peer.say(TcpFlags::ACK, FIRST + 1, heard[0].seq + 1, None);
            let Host { stack, env } = &mut peer.host;
            stack.close(env, peer.listener).expect("it is ours");
        }),
    ];
    for (reason, provoke) in cases {
        let mut peer = Peer::new(Config::default());
        provoke(&mut peer);
        let resets = peer.hear();
        let is_reset = |heard: &Heard| heard.flags.has(TcpFlags::RST);
        assert!(resets.iter().any(is_reset), "{}", reason.name());
        let counted = peer.host.stack.stats().resets.iter();
        let named: Vec<_> = counted.filter(|(_, count)| *count > 0).collect();
        assert_eq!(named, [(reason.name(), 1)]);
        assert_eq!(count(&peer, Count::ResetsOut), 1);
    }
}

#[test]
fn a_crowd_of_clients_is_refused_within_limits() {
    let mut peer = Peer::new(Config::default());
    let refused = (0..5000u32)
        .map(|number| {
            peer.say_to(81, TcpFlags::SYN, (FIRST + number, Seq(0)), None);
            peer.hear().len() as u64
        })
        .sum::<u64>();
    assert!((1000..=2000).contains(&refused), "{refused}");
    assert_eq!(refused + count(&peer, Count::ResetsSkipped), 5000);
}

#[test]
fn administrators_find_their_names() {
    let config = Config {
        time_waits_max: 1,
        ..Config::default()
    };
    let mut peer = Peer::new(config);
    let named = |peer: &Peer, wanted| {
        let mut lines = peer.host.stack.stats().tcp_ext();
        let found = lines.find(|(name, _)| *name == wanted).expect("a name");
        assert!(lines.all(|(name, _)| name != wanted), "{wanted} once");
        found.1
    };
    let (_, expected) = peer.finish_one(FIRST, Some(CLOCK));
    peer.say(TcpFlags::ACK, expected, Seq(0), Some(CLOCK - 1));
    assert_eq!(named(&peer, "PAWSTimewait"), 1);
    assert_eq!(named(&peer, "TCPChallengeACK"), 1);
    peer.say(TcpFlags::ACK, expected, Seq(0), Some(CLOCK - 1));
    assert_eq!(named(&peer, "TCPACKSkippedTimeWait"), 1);
    peer.finish_one(FIRST + 10, Some(CLOCK + 1));
    assert_eq!((named(&peer, "TWRecycled"), named(&peer, "TW")), (1, 0));
    peer.wait(Duration::from_secs(60));
    assert_eq!(named(&peer, "TW"), 1);
    assert_eq!(named(&peer, "TCPTimeWaitOverflow"), 0);
}
