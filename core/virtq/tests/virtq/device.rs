//! The device's side of a queue, over the simulated bus: honest, or lying on purpose.

use base::DeviceAddr;
use hal::sim::SimMemory;
use std::collections::VecDeque;
use virtq::Addresses;

/// A descriptor as the device reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub addr: u64,
    pub len: u32,
    pub flags: u16,
    pub next: u16,
}

/// A chain that the device has fetched.
pub struct Fetched {
    pub head: u16,
    pub parts: Vec<Descriptor>,
}

impl Fetched {
    pub fn writable(&self) -> u32 {
        self.parts
            .iter()
            .filter(|part| part.flags & 2 != 0)
            .map(|part| part.len)
            .sum()
    }
}

pub struct Device {
    pub memory: SimMemory,
    rings: Addresses,
    size: u16,
    fetched: u16,
    used: u16,
    pub pending: VecDeque<Fetched>,
}

impl Device {
    pub fn new(memory: &SimMemory, rings: Addresses, size: u16) -> Self {
        let pending = VecDeque::new();
        Self {
            memory: memory.clone(),
            rings,
            size,
            fetched: 0,
            used: 0,
            pending,
        }
    }

    fn read<const N: usize>(&self, addr: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory
            .read(DeviceAddr(addr), &mut bytes)
            .expect("inside of a buffer");
        bytes
    }

    fn word(&self, addr: u64) -> u16 {
        u16::from_le_bytes(self.read(addr))
    }

    fn descriptor(&self, table: u64, index: u16) -> Descriptor {
        let bytes: [u8; 16] = self.read(table + u64::from(index) * 16);
        Descriptor {
            addr: u64::from_le_bytes(bytes[..8].try_into().unwrap()),
            len: u32::from_le_bytes(bytes[8..12].try_into().unwrap()),
            flags: u16::from_le_bytes(bytes[12..14].try_into().unwrap()),
            next: u16::from_le_bytes(bytes[14..].try_into().unwrap()),
        }
    }

    fn chain(&self, table: u64, head: u16) -> Vec<Descriptor> {
        let mut parts = vec![self.descriptor(table, head)];
        while let Some(last) = parts.last().filter(|part| part.flags & 1 != 0) {
            assert!(
                parts.len() <= usize::from(self.size),
                "the driver made a loop"
            );
            parts.push(self.descriptor(table, last.next));
        }
        parts
    }

    /// Fetches all that the driver has published; returns how many chains.
    pub fn fetch(&mut self) -> u16 {
        let published = self.word(self.rings.available.0 + 2);
        let count = published.wrapping_sub(self.fetched);
        assert!(
            count <= self.size,
            "more published than there are descriptors"
        );
        for _ in 0..count {
            let slot = u64::from(self.fetched % self.size);
            let head = self.word(self.rings.available.0 + 4 + slot * 2);
            let mut parts = self.chain(self.rings.descriptors.0, head);
            if let [only] = parts[..]
                && only.flags & 4 != 0
            {
                assert_eq!(only.len % 16, 0);
                parts = self.chain(only.addr, 0);
                assert_eq!(parts.len(), only.len as usize / 16);
            }
            self.pending.push_back(Fetched { head, parts });
            self.fetched = self.fetched.wrapping_add(1);
        }
        count
    }

    /// Stores a completion without publishing it.
    pub fn store_used(&mut self, id: u32, len: u32) {
        let slot = self.rings.used.0 + 4 + u64::from(self.used % self.size) * 8;
        self.memory
            .write(DeviceAddr(slot), &id.to_le_bytes())
            .unwrap();
        self.memory
            .write(DeviceAddr(slot + 4), &len.to_le_bytes())
            .unwrap();
        self.used = self.used.wrapping_add(1);
    }

    pub fn set_used_index(&mut self, index: u16) {
        self.memory
            .write(DeviceAddr(self.rings.used.0 + 2), &index.to_le_bytes())
            .unwrap();
    }

    /// Completes a chain; returns whether the driver asked for an interrupt.
    pub fn complete(&mut self, id: u32, len: u32) -> bool {
        self.store_used(id, len);
        self.set_used_index(self.used);
        let event = self.word(self.rings.available.0 + 4 + u64::from(self.size) * 2);
        self.used.wrapping_sub(1) == event
    }

    /// `avail_event`: asks for a doorbell when the available index passes `index`.
    pub fn want_doorbell_after(&self, index: u16) {
        let addr = self.rings.used.0 + 4 + u64::from(self.size) * 8;
        self.memory
            .write(DeviceAddr(addr), &index.to_le_bytes())
            .unwrap();
    }

    pub fn want_no_doorbells(&self) {
        self.memory
            .write(DeviceAddr(self.rings.used.0), &1u16.to_le_bytes())
            .unwrap();
    }

    pub fn fetched(&self) -> u16 {
        self.fetched
    }

    /// Scribbles over any byte of the rings.
    pub fn scribble(&self, rings_bytes: u64, at: u64, value: u8) {
        let addr = DeviceAddr(self.rings.descriptors.0 + at % rings_bytes);
        let _ = self.memory.write(addr, &[value]);
    }
}

/// A small generator whose seed is printed when a test fails.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Runs `test` for many seeds, or for the one in the environment's `SEED`.
pub fn for_each_seed(test: impl Fn(&mut Random) + std::panic::RefUnwindSafe) {
    let one = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..400, |seed: u64| seed..seed + 1);
    for seed in seeds {
        eprintln!("SEED={seed}");
        test(&mut Random(seed));
    }
}
