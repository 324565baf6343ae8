use alloc::sync::Arc;
use core::net::Ipv4Addr;

use mbuf::Chain;
use wire::{TcpFlags, TcpOptions, Timestamps};

use super::judge::{Clock, Kind, Place, Verdict, classify, judge};
use super::*;
use crate::addr::{Endpoint, SocketId};
use crate::counters::DropReason;
use crate::tcp::tcb::Clocks;

const RULES: TimeWaitRules = TimeWaitRules {
    secs: 60,
    reuse: Reuse::All,
    reuse_delay_ms: 1000,
    same_host_waits: false,
    rfc1337: true,
    is_clumsy: false,
};
const KINDS: [Kind; 7] = [
    Kind::Reset,
    Kind::Syn,
    Kind::SynAck,
    Kind::Silent,
    Kind::Fin,
    Kind::Bare,
    Kind::Other,
];
const PLACES: [Place; 3] = [Place::Before, Place::At, Place::After];
const CLOCKS: [Clock; 6] = [
    Clock::Absent,
    Clock::Gained,
    Clock::Lost,
    Clock::Older,
    Clock::Same,
    Clock::Newer,
];

/// All rows for one kind of segment.
fn cells() -> impl Iterator<Item = (Place, Clock)> {
    PLACES
        .into_iter()
        .flat_map(|place| CLOCKS.into_iter().map(move |clock| (place, clock)))
}

fn of(kind: Kind, place: Place, clock: Clock) -> Verdict {
    judge(&RULES, kind, place, clock, false)
}

#[test]
fn row_1_a_reset_that_answers_our_challenge_takes_the_syn_up() {
    for (place, clock) in cells() {
        let expected = match place {
            Place::At => Verdict::TakeUp,
            _ => Verdict::Drop(DropReason::TimeWaitReset),
        };
        let verdict = judge(&RULES, Kind::Reset, place, clock, true);
        assert_eq!(verdict, expected, "{place:?} {clock:?}");
    }
}

#[test]
fn row_2_without_rfc_1337_an_exact_reset_ends_the_wait() {
    let rules = TimeWaitRules {
        rfc1337: false,
        ..RULES
    };
    for (place, clock) in cells() {
        let expected = match place {
            Place::At => Verdict::End,
            _ => Verdict::Drop(DropReason::TimeWaitReset),
        };
        let verdict = judge(&rules, Kind::Reset, place, clock, false);
        assert_eq!(verdict, expected, "{place:?} {clock:?}");
    }
}

#[test]
fn row_3_any_other_reset_is_ignored() {
    for (place, clock) in cells() {
        let verdict = of(Kind::Reset, place, clock);
        assert_eq!(verdict, Verdict::Drop(DropReason::TimeWaitReset));
    }
}

#[test]
fn row_4_a_syn_whose_clock_has_gone_on_opens_whatever_its_number() {
    for place in PLACES {
        assert_eq!(of(Kind::Syn, place, Clock::Newer), Verdict::Reopen);
        assert_eq!(of(Kind::Syn, place, Clock::Gained), Verdict::Reopen);
        assert_ne!(of(Kind::Syn, place, Clock::Older), Verdict::Reopen);
    }
}

#[test]
fn row_5_a_syn_without_a_verdict_of_its_clock_opens_by_its_number() {
    for clock in [Clock::Same, Clock::Lost, Clock::Absent] {
        assert_eq!(of(Kind::Syn, Place::After, clock), Verdict::Reopen);
        assert_eq!(of(Kind::Syn, Place::At, clock), Verdict::Challenge);
        assert_eq!(of(Kind::Syn, Place::Before, clock), Verdict::Challenge);
    }
}

#[test]
fn row_6_any_other_syn_is_challenged_and_none_is_ignored() {
    for place in PLACES {
        assert_eq!(of(Kind::Syn, place, Clock::Older), Verdict::Challenge);
    }
    for (place, clock) in cells() {
        let verdict = of(Kind::Syn, place, clock);
        assert!(matches!(verdict, Verdict::Reopen | Verdict::Challenge));
    }
}

#[test]
fn rows_7_and_8_a_syn_ack_is_acknowledged_and_a_segment_without_ack_is_dropped() {
    for (place, clock) in cells() {
        let reason = DropReason::TimeWaitSegment;
        let verdict = of(Kind::SynAck, place, clock);
        assert_eq!(verdict, Verdict::Acknowledge(reason));
        let verdict = of(Kind::Silent, place, clock);
        assert_eq!(verdict, Verdict::Drop(DropReason::Unexpected));
    }
}

#[test]
fn rows_9_and_10_a_lost_clock_is_dropped_and_an_old_one_acknowledged() {
    let reason = DropReason::TimeWaitPaws;
    for kind in [Kind::Fin, Kind::Bare, Kind::Other] {
        for place in PLACES {
            assert_eq!(of(kind, place, Clock::Lost), Verdict::Drop(reason));
            assert_eq!(of(kind, place, Clock::Older), Verdict::Acknowledge(reason));
        }
    }
}

#[test]
fn rows_11_to_13_a_fin_restarts_an_answer_is_noted_and_the_rest_is_acknowledged() {
    for clock in [Clock::Absent, Clock::Gained, Clock::Same, Clock::Newer] {
        for place in PLACES {
            let rest = Verdict::Acknowledge(DropReason::TimeWaitSegment);
            assert_eq!(of(Kind::Fin, place, clock), Verdict::Restart);
            assert_eq!(of(Kind::Other, place, clock), rest);
            let bare = if place == Place::At {
                Verdict::Note
            } else {
                rest
            };
            assert_eq!(of(Kind::Bare, place, clock), bare);
        }
    }
}

#[test]
fn two_ends_that_both_wait_do_not_answer_each_other_for_ever() {
    // What we send is an acknowledgement where the peer expects it.
    for clock in CLOCKS {
        let verdict = of(Kind::Bare, Place::At, clock);
        let is_silent = matches!(verdict, Verdict::Note | Verdict::Drop(_));
        assert!(is_silent || clock == Clock::Older, "{clock:?}");
    }
    for kind in KINDS {
        let verdict = of(kind, Place::At, Clock::Newer);
        assert!(kind != Kind::Reset || matches!(verdict, Verdict::Drop(_)));
    }
}

fn tuple(port: u16) -> FourTuple {
    FourTuple {
        local: Endpoint::v4(Ipv4Addr::new(10, 0, 0, 1), 80),
        remote: Endpoint::v4(Ipv4Addr::new(10, 0, 0, 2), port),
    }
}

fn finished(port: u16, clock: Option<u32>) -> Tcb {
    let mut tcb = Tcb::new(SocketId {
        index: 0,
        generation: 0,
    });
    tcb.tuple = tuple(port);
    tcb.sender.nxt = Seq(5000);
    tcb.receiver.nxt = Seq(9000);
    tcb.clocks = clock.map(|recent| Clocks {
        recent,
        recent_at: Instant::START,
    });
    tcb
}

fn table(limit: usize) -> TimeWait {
    TimeWait::new(limit, &RULES, Key([7, 8]))
}

fn segment(flags: TcpFlags, seq: u32, clock: Option<u32>) -> Segment {
    let timestamps = clock.map(|value| Timestamps { value, echo: 0 });
    Segment {
        seq: Seq(seq),
        ack: Seq(5000),
        flags,
        window: 1000,
        options: TcpOptions {
            timestamps,
            ..TcpOptions::default()
        },
        is_marked: false,
        payload: Chain::new(),
    }
}

#[test]
fn segments_are_told_apart_by_flags_place_and_clock() {
    let ack = TcpFlags::ACK;
    let cases = [
        (
            TcpFlags::RST.with(ack),
            9000,
            None,
            Kind::Reset,
            Place::At,
            Clock::Lost,
        ),
        (
            TcpFlags::SYN,
            9001,
            Some(101),
            Kind::Syn,
            Place::After,
            Clock::Newer,
        ),
        (
            TcpFlags::SYN.with(ack),
            8999,
            Some(100),
            Kind::SynAck,
            Place::Before,
            Clock::Same,
        ),
        (
            TcpFlags::FIN.with(ack),
            8999,
            Some(99),
            Kind::Fin,
            Place::Before,
            Clock::Older,
        ),
        (
            TcpFlags::FIN.with(ack),
            9000,
            Some(99),
            Kind::Other,
            Place::At,
            Clock::Older,
        ),
        (ack, 9000, Some(101), Kind::Bare, Place::At, Clock::Newer),
        (
            TcpFlags::PSH,
            9000,
            Some(101),
            Kind::Silent,
            Place::At,
            Clock::Newer,
        ),
    ];
    let mut waits = table(4);
    waits.insert(&finished(1, Some(100)), Instant::START);
    let at = waits.find(&tuple(1)).expect("it is remembered");
    for (flags, seq, clock, kind, place, seen) in cases {
        let got = classify(waits.entry(at), &segment(flags, seq, clock));
        assert_eq!(got, (kind, place, seen), "{flags:?} {seq}");
    }
    waits.insert(&finished(1, None), Instant::START);
    let at = waits.find(&tuple(1)).expect("it is remembered");
    let gained = classify(waits.entry(at), &segment(ack, 9000, Some(1)));
    let absent = classify(waits.entry(at), &segment(ack, 9000, None));
    assert_eq!((gained.2, absent.2), (Clock::Gained, Clock::Absent));
}

#[test]
fn waits_end_in_the_order_in_which_they_began() {
    let mut waits = table(100);
    for port in 0..10 {
        waits.insert(&finished(port, None), Instant::from_millis(u64::from(port)));
    }
    let at = waits.find(&tuple(3)).expect("it is remembered");
    waits.restart(at, Instant::from_millis(20));
    assert_eq!(waits.next_deadline(), Some(Instant::from_millis(60_000)));
    assert_eq!(waits.expire(Instant::from_millis(60_009), 9), 9);
    assert_eq!(waits.next_deadline(), Some(Instant::from_millis(60_020)));
    assert_eq!(waits.expire(Instant::from_millis(60_019), 9), 0);
    assert_eq!(waits.expire(Instant::from_millis(60_020), 9), 1);
    assert_eq!((waits.len(), waits.next_deadline()), (0, None));
}

#[test]
fn past_the_limit_the_oldest_goes_and_no_entry_is_lost() {
    let mut waits = table(4);
    let evicted: usize = (0..10)
        .map(|port| usize::from(waits.insert(&finished(port, None), Instant::START)))
        .sum();
    assert_eq!((evicted, waits.len()), (6, 4));
    for port in 0..10 {
        assert_eq!(waits.find(&tuple(port)).is_some(), port >= 6, "{port}");
    }
    assert!(
        !waits.insert(&finished(7, None), Instant::START),
        "it replaces itself"
    );
    assert_eq!((waits.len(), waits.entries.len()), (4, 4));
}

#[test]
fn tables_that_share_a_total_remember_as_many_together_as_one_alone() {
    let total = Arc::default();
    let mut tables = [table(4), table(4)];
    for waits in &mut tables {
        waits.tally.join(&total);
    }
    let [left, right] = &mut tables;
    for port in 0..3 {
        assert!(!left.insert(&finished(port, None), Instant::START));
    }
    assert!(!right.insert(&finished(3, None), Instant::START));
    assert!(right.insert(&finished(4, None), Instant::START));
    assert_eq!((left.len(), right.len()), (3, 1), "it gave up its own");
    assert!(left.insert(&finished(5, None), Instant::START));
    assert_eq!((left.len(), right.len()), (3, 1));
    assert_eq!(left.reconfigure(2, &RULES), 2);
    assert_eq!(right.reconfigure(2, &RULES), 0);
    assert_eq!((left.len(), right.len()), (1, 1));
}

#[test]
fn one_connection_is_answered_twice_a_second_at_most() {
    let mut waits = table(4);
    waits.insert(&finished(1, None), Instant::START);
    let at = waits.find(&tuple(1)).expect("it is remembered");
    let answers = (0..1000).filter(|milli| {
        waits
            .acknowledgement(at, Instant::from_millis(*milli))
            .is_some()
    });
    assert_eq!(answers.count(), 2);
}

#[test]
fn a_name_of_ours_is_free_again_by_the_rules() {
    let mut waits = table(4);
    waits.insert(&finished(1, Some(100)), Instant::START);
    waits.insert(&finished(2, None), Instant::START);
    let is_free = |port, reuse, is_same_host, millis| {
        let rules = TimeWaitRules { reuse, ..RULES };
        let now = Instant::from_millis(millis);
        waits.is_free(&tuple(port), &rules, is_same_host, now)
    };
    assert!(is_free(3, Reuse::Never, false, 0), "nobody has it");
    assert!(is_free(1, Reuse::All, false, 1000));
    assert!(!is_free(1, Reuse::All, false, 999), "too soon");
    assert!(!is_free(2, Reuse::All, false, 30_000), "no timestamps");
    assert!(!is_free(1, Reuse::Never, true, 30_000));
    assert!(!is_free(1, Reuse::SameHost, false, 30_000));
    assert!(is_free(1, Reuse::SameHost, true, 30_000));
}

#[test]
fn a_refused_syn_comes_back_as_it_was() {
    let mut syn = segment(TcpFlags::SYN, 77, Some(5));
    syn.options.mss = Some(1460);
    syn.options.window_scale = Some(7);
    syn.options.sack_permitted = true;
    let again = Syn::new(&syn).segment();
    assert_eq!((again.seq, again.flags), (syn.seq, syn.flags));
    assert_eq!((again.window, again.options), (syn.window, syn.options));
    let bare = segment(TcpFlags::SYN, 77, None);
    assert_eq!(Syn::new(&bare).segment().options, bare.options);
}
