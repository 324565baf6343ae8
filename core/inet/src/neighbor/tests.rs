//! The states, and the bounds of what others may provoke.

use core::net::Ipv6Addr;

use mbuf::Chain;
use wire::ETHERNET_HEADER_BYTES;

use super::*;
use crate::output::Offload;

const NOW: Instant = Instant::from_millis(5000);

fn ip(host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host))
}

fn header(station: u8) -> LinkHeader {
    LinkHeader([station; ETHERNET_HEADER_BYTES])
}

fn answer(station: u8) -> Claim {
    Claim {
        header: Some(header(station)),
        is_answer: true,
        is_override: true,
        is_welcome: false,
    }
}

#[test]
fn what_was_set_is_believed_whatever_others_say_until_it_is_forgotten() {
    let mut neighbors = Neighbors::default();
    neighbors.resolve(ip(1), NOW);
    neighbors.wait(ip(1), packet());
    let learned = neighbors.set(ip(1), header(7)).expect("room");
    assert_eq!(
        (learned.waiting.len(), learned.header),
        (1, Some(header(7)))
    );
    let ignored = neighbors.learn(ip(1), answer(8), NOW);
    assert!(!ignored.is_changed);
    neighbors.clear();
    for host in 2..1000 {
        neighbors.resolve(ip(host), NOW);
    }
    let known = Resolution::Known(header(7));
    assert_eq!(neighbors.resolve(ip(1), NOW).0, known);
    assert_eq!(neighbors.fresh_until(ip(1)), Instant::NEVER);
    assert!(neighbors.forget(ip(1)).is_some());
    assert_eq!(neighbors.resolve(ip(1), NOW).0, Resolution::Ask);
}

#[test]
fn only_so_many_packets_wait_for_all_neighbours_together() {
    let mut neighbors = Neighbors::default();
    let mut refused = 0;
    for host in 0..100 {
        neighbors.resolve(ip(host), NOW);
        let waits = (0..10).map(|_| neighbors.wait(ip(host), packet()));
        refused += waits.flatten().count();
    }
    assert_eq!(refused, 1000 - WAITING_IN_ALL_MAX);
    assert!(neighbors.wait(ip(0), packet()).is_some(), "the oldest goes");
}

#[test]
fn only_so_many_can_be_set() {
    let mut neighbors = Neighbors::default();
    let set = (0..1000).filter(|host| neighbors.set(ip(*host), header(1)).is_ok());
    assert_eq!(set.count(), PERMANENT_MAX);
    assert!(neighbors.set(ip(0), header(2)).is_ok(), "anew");
}

fn packet() -> Waiting {
    Waiting {
        packet: Chain::new(),
        offload: Offload::default(),
    }
}

fn resolve(neighbors: &mut Neighbors, host: u16, now: Instant) -> Resolution {
    neighbors.resolve(ip(host), now).0
}

#[test]
fn packets_wait_for_the_answer_and_then_all_go() {
    let mut neighbors = Neighbors::default();
    assert_eq!(resolve(&mut neighbors, 1, NOW), Resolution::Ask);
    assert!(neighbors.wait(ip(1), packet()).is_none());
    assert_eq!(resolve(&mut neighbors, 1, NOW), Resolution::Wait);
    let learned = neighbors.learn(ip(1), answer(7), NOW);
    assert_eq!((learned.waiting.len(), learned.is_changed), (1, true));
    assert_eq!(
        resolve(&mut neighbors, 1, NOW),
        Resolution::Known(header(7))
    );
    assert!(neighbors.wait(ip(2), packet()).is_some(), "nobody is asked");
}

#[test]
fn a_neighbour_that_is_not_used_is_not_asked_again() {
    let mut neighbors = Neighbors::default();
    resolve(&mut neighbors, 1, NOW);
    neighbors.learn(ip(1), answer(7), NOW);
    let later = NOW + Duration::from_secs(3600);
    assert!(neighbors.pop_overdue(later).is_none());
    assert_eq!(
        (neighbors.next_deadline(), neighbors.iter().count()),
        (None, 1)
    );
}

#[test]
fn a_stale_neighbour_is_used_asked_and_given_up() {
    let mut neighbors = Neighbors::default();
    resolve(&mut neighbors, 1, NOW);
    neighbors.learn(ip(1), answer(7), NOW);
    let mut now = NOW + Duration::from_secs(31);
    assert_eq!(
        resolve(&mut neighbors, 1, now),
        Resolution::Known(header(7))
    );
    for _ in 0..QUESTIONS_MAX {
        now = neighbors.next_deadline().map_or(now, |due| due.max(now));
        let asked = next_event(&mut neighbors, &mut now);
        assert!(matches!(asked, Overdue::Ask(host, Some(MacAddr([7, ..]))) if host == ip(1)));
    }
    assert!(matches!(
        next_event(&mut neighbors, &mut now),
        Overdue::Gone(_)
    ));
    assert_eq!(neighbors.iter().count(), 0);
}

/// Goes from deadline to deadline until something is due.
fn next_event(neighbors: &mut Neighbors, now: &mut Instant) -> Overdue {
    for _ in 0..10 {
        if let Some(overdue) = neighbors.pop_overdue(*now) {
            return overdue;
        }
        *now = neighbors.next_deadline().expect("a deadline");
    }
    panic!("nothing is ever due");
}

#[test]
fn a_stale_neighbour_that_was_used_need_not_be_asked_until_it_is_probed() {
    let mut neighbors = Neighbors::default();
    let welcome = Claim {
        is_answer: false,
        is_welcome: true,
        ..answer(7)
    };
    neighbors.learn(ip(1), welcome, NOW);
    assert_eq!(neighbors.fresh_until(ip(1)), Instant::START, "it is stale");
    resolve(&mut neighbors, 1, NOW);
    let probed = neighbors.fresh_until(ip(1));
    assert_eq!(probed, NOW + Duration::from_secs(5));
    let mut now = NOW;
    next_event(&mut neighbors, &mut now);
    assert_eq!(now, probed);
    assert_eq!(
        resolve(&mut neighbors, 1, now),
        Resolution::Known(header(7))
    );
}

#[test]
fn a_claim_without_override_casts_doubt_and_replaces_nothing() {
    let mut neighbors = Neighbors::default();
    resolve(&mut neighbors, 1, NOW);
    neighbors.learn(ip(1), answer(7), NOW);
    let other = Claim {
        is_override: false,
        ..answer(8)
    };
    assert!(neighbors.learn(ip(1), other, NOW).is_changed);
    assert_eq!(neighbors.fresh_until(ip(1)), Instant::START);
    assert_eq!(
        resolve(&mut neighbors, 1, NOW),
        Resolution::Known(header(7))
    );
    let learned = neighbors.learn(ip(1), answer(8), NOW);
    assert!(learned.is_changed, "its header is built anew");
    assert_eq!(
        resolve(&mut neighbors, 1, NOW),
        Resolution::Known(header(8))
    );
}

#[test]
fn unknown_neighbors_are_remembered_only_if_they_ask_us() {
    let mut neighbors = Neighbors::default();
    neighbors.learn(ip(1), answer(7), NOW);
    assert_eq!(neighbors.iter().count(), 0);
    let asking = Claim {
        is_welcome: true,
        is_answer: false,
        ..answer(7)
    };
    neighbors.learn(ip(1), asking, NOW);
    assert_eq!(
        resolve(&mut neighbors, 1, NOW),
        Resolution::Known(header(7))
    );
}

#[test]
fn a_scan_displaces_no_neighbour_that_has_answered() {
    let mut neighbors = Neighbors::default();
    resolve(&mut neighbors, 1, NOW);
    neighbors.learn(ip(1), answer(7), NOW);
    let mut displaced = 0;
    for host in 2..2000 {
        displaced += neighbors.resolve(ip(host), NOW).1.len();
        neighbors.wait(ip(host), packet());
    }
    assert_eq!(neighbors.entries.len(), 1 + INCOMPLETE_MAX);
    assert_eq!(displaced, 1998 - INCOMPLETE_MAX, "and each drop is known");
    assert_eq!(
        resolve(&mut neighbors, 1, NOW),
        Resolution::Known(header(7))
    );
}

#[test]
fn a_flood_of_claims_is_bounded_and_displaces_no_neighbour_that_has_answered() {
    let mut neighbors = Neighbors::default();
    resolve(&mut neighbors, 1, NOW);
    neighbors.learn(ip(1), answer(7), NOW);
    for host in 2..2000 {
        let claim = Claim {
            is_welcome: true,
            ..answer(8)
        };
        let now = NOW + Duration::from_millis(u64::from(host));
        neighbors.learn(ip(host), claim, now);
    }
    assert_eq!(neighbors.entries.len(), ENTRIES_MAX);
    assert_eq!(
        resolve(&mut neighbors, 1, NOW),
        Resolution::Known(header(7))
    );
}

#[test]
fn the_oldest_packet_makes_room_for_the_newest() {
    let mut neighbors = Neighbors::default();
    resolve(&mut neighbors, 1, NOW);
    let kept = (0..WAITING_MAX).all(|_| neighbors.wait(ip(1), packet()).is_none());
    assert!(kept && neighbors.wait(ip(1), packet()).is_some());
    assert_eq!(neighbors.clear(), WAITING_MAX);
}
