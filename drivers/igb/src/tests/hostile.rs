//! A card that says what cannot be.

extern crate std;

use std::vec::Vec;

use hal::FramePort;
use mbuf::{Chain, Pool, TxFrame};

use super::model_rx::GOOD;
use super::rig::{Rig, receive, receive_noted};

fn words(len: u16, status: u32) -> [u64; 2] {
    [0, u64::from(status) | u64::from(len) << 32]
}

#[test]
fn what_cannot_be_is_dropped_and_counted() {
    let rig = Rig::new(600);
    let (mut pairs, _control) = rig.start(1).unwrap();
    let store = |byte, words| assert!(rig.with(|model| model.store(0, &[byte; 60], words)));
    store(1, words(60, GOOD | 1 << 31));
    store(1, words(13, GOOD));
    store(1, words(u16::MAX, GOOD));
    store(1, words(60, GOOD & !2));
    store(1, words(60, GOOD));
    store(2, words(60, GOOD));
    assert_eq!(receive(&mut pairs[0]), [[2; 60]]);
    let counters = pairs[0].counters();
    assert_eq!(counters.rx_damaged, 1);
    assert_eq!(counters.rx_bad_length, 2);
    assert_eq!(counters.rx_too_long, 2, "a frame in two buffers");
    assert_eq!(counters.rx_frames, 1);
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn no_write_back_panics_or_loses_a_buffer() {
    let seed = 0x5eed_8257;
    std::println!("seed {seed:#x}");
    let mut random = Random(seed);
    let rig = Rig::new(700);
    let at_home = rig.pool.free();
    let (mut pairs, control) = rig.start(1).unwrap();
    let mut seen = 0;
    for _ in 0..5000 {
        for _ in 0..random.next() % 9 {
            // Half of the lengths are possible ones.
            let mask = [u64::MAX, 0xffff_07ff_ffff_ffff][random.next() as usize % 2];
            let garbage = [random.next(), random.next() & mask | 1];
            rig.with(|model| model.store(0, &[0xaa; 64], garbage));
        }
        seen += receive_noted(&mut pairs[0]).len() as u64;
        if random.next().is_multiple_of(3) {
            pairs[0].arm();
        }
        let mut buffer = rig.pool.alloc().unwrap();
        buffer.append(&[3; 60]);
        let frame = TxFrame {
            chain: Chain::from(buffer),
            ..TxFrame::default()
        };
        // Reports may come twice, early, or for another slot.
        let _ = pairs[0].transmit(frame);
        let low = rig.with(|model| model.get(crate::registers::tx_ring(0)));
        let high = rig.with(|model| model.get(crate::registers::tx_ring(0) + 4));
        let slot = (u64::from(high) << 32 | u64::from(low)) + random.next() % 256 * 16;
        let report = random.next().to_le_bytes();
        rig.with(|model| model.write_memory(slot + 8, &report));
        pairs[0].kick();
        pairs[0].unsent();
    }
    let counters = pairs[0].counters();
    assert_eq!(counters.rx_frames, seen);
    assert!(seen > 0);
    let dropped = [
        counters.rx_damaged,
        counters.rx_too_long,
        counters.rx_bad_length,
    ];
    assert!(dropped.iter().all(|count| *count > 0), "each lie was told");
    drop((pairs, control));
    assert_eq!(rig.pool.free(), at_home);
}

#[test]
fn ones_in_every_register_do_not_hang_the_start() {
    let rig = Rig::new(600);
    let gone = Gone;
    let started = crate::start(gone, &rig.memory, rig.pool, 1);
    assert_eq!(started.err(), Some(crate::Error::ResetStuck));
}

/// A card that was pulled out of its slot.
struct Gone;

impl hal::Registers for Gone {
    fn bytes(&self) -> usize {
        crate::registers::BYTES
    }

    fn window(&self, _: usize, _: usize) -> Option<Self> {
        Some(Self)
    }

    fn read32(&self, _: usize) -> u32 {
        u32::MAX
    }

    fn write32(&self, _: usize, _: u32) {}
}

#[test]
fn a_card_that_vanishes_while_it_runs_stops_the_traffic_and_nothing_else() {
    let rig = Rig::new(600);
    let (mut pairs, control) = rig.start(1).unwrap();
    rig.with(|model| {
        for offset in (0..crate::registers::BYTES).step_by(4) {
            model.put(offset, u32::MAX);
        }
        model.ignores_stop = true;
        model.ignores_reset = true;
    });
    assert!(receive(&mut pairs[0]).is_empty());
    pairs[0].arm();
    let kept: Vec<_> = core::iter::from_fn(|| rig.pool.alloc()).collect();
    drop((pairs, control));
    drop(kept);
    assert!(rig.pool.free() < 600, "what it knew is kept");
}
