//! Memory that program and kernel share, and a source of numbers.

use std::cell::RefCell;

use base::SharedMemory;
use uring::{Geometry, SQE_BYTES, offset};

/// Bytes that both can change.
pub struct Shared(RefCell<Vec<u8>>);

impl Shared {
    pub fn new(bytes: usize) -> Self {
        Self(RefCell::new(vec![0; bytes]))
    }

    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }
}

impl SharedMemory for Shared {
    fn load(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        self.read(at, &mut word);
        u32::from_ne_bytes(word)
    }

    fn store(&self, at: usize, value: u32) {
        self.write(at, &value.to_ne_bytes());
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }
}

/// A program with its ring.
pub struct Program {
    pub geometry: Geometry,
    pub rings: Shared,
    pub sqes: Shared,
}

impl Program {
    pub fn new(entries: u32, completions: Option<u32>) -> Self {
        let geometry = Geometry::check(entries, completions, false).unwrap();
        let rings = Shared::new(geometry.ring_bytes());
        geometry.publish(&rings);
        Self {
            rings,
            sqes: Shared::new(geometry.sqe_bytes()),
            geometry,
        }
    }

    /// Gives an entry with this name.
    pub fn give(&self, name: u64) {
        let tail = self.rings.load(offset::SQ_TAIL);
        let slot = tail & (self.geometry.sq_entries() - 1);
        let at = slot as usize * SQE_BYTES;
        self.sqes.write(at + 32, &name.to_ne_bytes());
        self.rings
            .store(self.geometry.array() + slot as usize * 4, slot);
        self.rings.store(offset::SQ_TAIL, tail.wrapping_add(1));
    }

    /// Takes the next completion: its name and result.
    pub fn take(&self) -> Option<(u64, i32)> {
        let head = self.rings.load(offset::CQ_HEAD);
        if head == self.rings.load(offset::CQ_TAIL) {
            return None;
        }
        let slot = (head & (self.geometry.cq_entries() - 1)) as usize;
        let mut bytes = [0; 16];
        self.rings.read(offset::CQES + slot * 16, &mut bytes);
        self.rings.store(offset::CQ_HEAD, head.wrapping_add(1));
        let name = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
        Some((name, i32::from_ne_bytes(bytes[8..12].try_into().unwrap())))
    }
}

/// Numbers from a seed (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Runs `test` with several seeds, or with that of the environment.
pub fn for_each_seed(test: impl Fn(u64, Random)) {
    let given = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in given.map_or(0..50, |seed: u64| seed..seed + 1) {
        println!("SEED={seed}");
        test(seed, Random(seed));
    }
}
