//! The story of `docs/dma.md`: receive areas of 64 KiB that are not contiguous.
//!
//! A client sends requests to the card, one after the other, and retransmits what was
//! not answered. Its clock is simulated: a round trip takes a millisecond, the first
//! timeout comes after 200, each further one after twice the time (RFC 6298).

extern crate std;

use std::boxed::Box;
use std::println;
use std::vec::Vec;

use hal::FramePort;
use hal::sim::SimMemory;
use mbuf::FreeList;

use super::card::{Card, Port};

const AREAS: u64 = 16;
const PAGES: u64 = 16;
const REQUESTS: u32 = 1000;
const ROUND_TRIP_MS: u64 = 1;
const TIMEOUT_MS: u64 = 200;

/// The frames of an area as they come off a stack of free frames: in order, but for a
/// few that somebody else had freed in between.
fn frames_of(area: u64) -> Vec<u64> {
    let first = area * 2 * PAGES;
    let mut frames: Vec<u64> = (first..first + PAGES).collect();
    frames[9] = first + PAGES + 5;
    frames[10] = first + PAGES + 1;
    frames
}

/// What each request took, in milliseconds.
fn latencies(memory: SimMemory, pool: &'static FreeList) -> Vec<u64> {
    let mut card = Card::with_pool(memory, pool);
    let mut port = card.start().unwrap();
    (0..REQUESTS)
        .map(|number| latency(&mut card, &mut port, number))
        .collect()
}

fn latency(card: &mut Card, port: &mut Port, number: u32) -> u64 {
    let request = [&[0x52; 14], &b"GET key\r\n"[..], &number.to_le_bytes()].concat();
    let (mut elapsed, mut timeout) = (0, TIMEOUT_MS);
    loop {
        assert!(card.store(&request));
        let mut answered = false;
        port.receive(64, &mut |frame| {
            answered |= frame.chain.as_single() == Some(&request);
        });
        port.arm();
        if answered {
            return elapsed + ROUND_TRIP_MS;
        }
        elapsed += timeout;
        timeout *= 2;
    }
}

fn per_second(latencies: &[u64]) -> u64 {
    u64::from(REQUESTS) * 1000 / latencies.iter().sum::<u64>()
}

#[test]
fn contiguous_areas_answer_every_request_at_once() {
    let memory = SimMemory::new();
    let pool = memory.packet_pool((AREAS * PAGES * 2) as usize);
    let latencies = latencies(memory, pool);
    assert!(latencies.iter().all(|&ms| ms == ROUND_TRIP_MS));
    assert_eq!(per_second(&latencies), 1000);
}

#[test]
fn with_the_contract_broken_a_tenth_of_the_requests_takes_seconds() {
    let memory = SimMemory::new();
    let pool: &'static FreeList = Box::leak(Box::default());
    for area in 0..AREAS {
        let broken = memory.break_contract(&frames_of(area)).unwrap();
        broken.into_packets(pool);
    }
    let mut latencies = latencies(memory, pool);
    latencies.sort_unstable();
    for percent in [50, 80, 90, 95, 99, 100] {
        let ms = latencies[latencies.len() * percent / 100 - 1];
        println!("{percent:3} % of requests within {ms} ms");
    }
    println!("{} requests per second", per_second(&latencies));
    let fast = latencies.iter().filter(|&&ms| ms == ROUND_TRIP_MS).count();
    let slow = latencies.iter().filter(|&&ms| ms > TIMEOUT_MS).count();
    assert_eq!(fast + slow, latencies.len(), "nothing lies between");
    assert!((800..980).contains(&fast), "most work, so the network does");
    assert!(latencies.last() > Some(&1000));
    assert!(per_second(&latencies) < 100);
}

#[test]
fn the_contract_catches_the_same_areas_at_once() {
    let memory = SimMemory::new();
    let error = memory.pages_at(&frames_of(0)).join().unwrap_err();
    assert_eq!((error.page, error.pages), (9, 16));
    let said = std::format!("{error}");
    assert!(said.starts_with("page 9 of 16 lies at 0x10000015000 and not at 0x10000009000"));
    assert!(said.contains("DmaSource::dma_alloc"), "{said}");
}
