//! A program with its four rings.

use std::cell::RefCell;

use base::SharedMemory;
use xdp::{Descriptor, Entry, Geometry, Receiver, Sender, Umem, UmemRequest, offset};

pub const ENTRIES: u32 = 8;
pub const CHUNK: u64 = 2048;
pub const CHUNKS: u64 = 16;

/// Bytes that both can change.
pub struct Shared(RefCell<Vec<u8>>);

impl Shared {
    fn new(entry: Entry) -> Self {
        Self(RefCell::new(vec![0; geometry(entry).bytes()]))
    }

    pub fn words(&self) -> usize {
        self.0.borrow().len() / 4
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

pub fn geometry(entry: Entry) -> Geometry {
    Geometry::check(ENTRIES, entry).unwrap()
}

pub fn request() -> UmemRequest {
    UmemRequest {
        address: 0x10_0000,
        bytes: CHUNK * CHUNKS,
        chunk_bytes: CHUNK as u32,
        headroom: 0,
        flags: 0,
    }
}

/// The program's ends.
pub struct Program {
    pub fill: Shared,
    pub rx: Shared,
    pub tx: Shared,
    pub completion: Shared,
}

pub fn world() -> (Program, Receiver, Sender) {
    let umem = Umem::check(&request()).unwrap();
    let (addresses, frames) = (geometry(Entry::Address), geometry(Entry::Descriptor));
    let program = Program {
        fill: Shared::new(Entry::Address),
        rx: Shared::new(Entry::Descriptor),
        tx: Shared::new(Entry::Descriptor),
        completion: Shared::new(Entry::Address),
    };
    let receiver = Receiver::new(umem, addresses, frames);
    (program, receiver, Sender::new(umem, frames, addresses))
}

impl Program {
    /// Puts an entry into a ring, which has room.
    pub fn give(ring: &Shared, bytes: &[u8]) {
        let end = ring.load(offset::PRODUCER);
        let slot = (end % ENTRIES) as usize;
        ring.write(offset::ENTRIES + slot * bytes.len(), bytes);
        ring.store(offset::PRODUCER, end.wrapping_add(1));
    }

    /// Takes an entry from a ring.
    pub fn take<const N: usize>(ring: &Shared) -> Option<[u8; N]> {
        let next = ring.load(offset::CONSUMER);
        if next == ring.load(offset::PRODUCER) {
            return None;
        }
        let mut bytes = [0; N];
        ring.read(offset::ENTRIES + (next % ENTRIES) as usize * N, &mut bytes);
        ring.store(offset::CONSUMER, next.wrapping_add(1));
        Some(bytes)
    }

    /// Gives a chunk to be filled.
    pub fn fill(&self, address: u64) {
        Self::give(&self.fill, &address.to_ne_bytes());
    }

    /// Gives a frame to be sent.
    pub fn send(&self, address: u64, len: u32) {
        let frame = Descriptor {
            address,
            len,
            options: 0,
        };
        Self::give(&self.tx, &frame.to_bytes());
    }

    /// Takes a received frame.
    pub fn receive(&self) -> Option<Descriptor> {
        Self::take(&self.rx).map(Descriptor::from_bytes)
    }

    /// Takes a chunk whose frame is sent.
    pub fn completed(&self) -> Option<u64> {
        Self::take(&self.completion).map(u64::from_ne_bytes)
    }
}
