//! The card's side of registers and rings: honest, and trusting in what it is told.

extern crate std;

use std::cell::Cell;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

use base::DeviceAddr;
use hal::sim::SimMemory;
use hal::{Mmio, Registers};
use mbuf::FreeList;

use crate::device::{E1000, Error, Parts};
use crate::registers::{CTRL_RESET, RING_BYTES, RX_RING, TCTL, TX_RING};
use intel::filters::{ADDRESS_HIGH, RCTL, address};
use intel::link::{CTRL, CTRL_HANDLE_TAGS};

/// The driver of such a card.
pub(super) type Port = E1000<Window>;

/// The card's registers, as the driver reaches them: memory, but for the reset.
pub(super) struct Window {
    whole: Mmio,
    at: usize,
    bytes: usize,
    ignores_reset: Rc<Cell<bool>>,
}

/// As a card does after a reset.
fn load_address(registers: &Mmio) {
    registers.write32(address(0), 0x1200_5452);
    registers.write32(address(0) + ADDRESS_HIGH, 0x8000_5634);
}

impl Registers for Window {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn window(&self, offset: usize, bytes: usize) -> Option<Self> {
        (offset + bytes <= self.bytes).then(|| Self {
            whole: self.whole.window(0, self.whole.bytes()).expect("all of it"),
            at: self.at + offset,
            bytes,
            ignores_reset: self.ignores_reset.clone(),
        })
    }

    fn read32(&self, offset: usize) -> u32 {
        self.whole.read32(self.at + offset)
    }

    fn write32(&self, offset: usize, value: u32) {
        let resets = self.at + offset == CTRL && value & CTRL_RESET != 0;
        if !resets || self.ignores_reset.get() {
            return self.whole.write32(self.at + offset, value);
        }
        let rings = [RX_RING, TX_RING].into_iter();
        let rings = rings.flat_map(|ring| (ring..ring + RING_BYTES).step_by(4));
        rings
            .chain([RCTL, TCTL])
            .chain((0..32).map(|half| address(0) + 4 * half))
            .for_each(|at| self.whole.write32(at, 0));
        load_address(&self.whole);
        self.whole.write32(CTRL, value & !CTRL_RESET);
    }
}

const BASE_LOW: usize = 0x00;
const BASE_HIGH: usize = 0x04;
const LENGTH: usize = 0x08;
const HEAD: usize = 0x10;
const TAIL: usize = 0x18;

/// Status of a good frame: done, last, its checksum verified.
pub(super) const GOOD: u8 = 0x23;

pub(super) struct Card {
    pub(super) memory: SimMemory,
    pub(super) registers: Mmio,
    pub(super) pool: &'static FreeList,
    /// The card does not come out of its reset.
    pub(super) ignores_reset: Rc<Cell<bool>>,
    /// Bytes of frames that went to memory which nobody gave to the card.
    pub(super) astray: usize,
    context: Option<[u64; 2]>,
}

/// A frame as it goes over the wire, and the context that its checksum was filled in by.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    pub(super) context: Option<[u64; 2]>,
    /// The tag that the card put in.
    pub(super) tag: Option<u16>,
}

impl Card {
    pub(super) fn new(buffers: usize) -> Self {
        let memory = SimMemory::new();
        let pool = match buffers {
            0 => std::boxed::Box::leak(std::boxed::Box::default()),
            _ => memory.packet_pool(buffers),
        };
        Self::with_pool(memory, pool)
    }

    pub(super) fn with_pool(memory: SimMemory, pool: &'static FreeList) -> Self {
        let registers = memory.registers(0x6000 / 8);
        load_address(&registers);
        Self {
            memory,
            registers,
            pool,
            ignores_reset: Rc::default(),
            astray: 0,
            context: None,
        }
    }

    pub(super) fn start(&self) -> Result<Port, Error> {
        self.parts().map(|parts| parts.port)
    }

    pub(super) fn parts(&self) -> Result<Parts<Window>, Error> {
        let bytes = self.registers.bytes();
        let window = Window {
            whole: self.registers.window(0, bytes).unwrap(),
            at: 0,
            bytes,
            ignores_reset: self.ignores_reset.clone(),
        };
        E1000::start(window, &self.memory, self.pool)
    }

    fn read(&self, addr: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory
            .read(DeviceAddr(addr), &mut bytes)
            .expect("the driver owns what it names");
        bytes
    }

    fn descriptor_at(&self, ring: usize, slot: u32) -> u64 {
        let low = self.registers.read32(ring + BASE_LOW);
        let high = self.registers.read32(ring + BASE_HIGH);
        (u64::from(high) << 32 | u64::from(low)) + u64::from(slot) * 16
    }

    fn words_at(&self, addr: u64) -> [u64; 2] {
        let bytes = self.read(addr, 16);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        [word(0), word(8)]
    }

    /// The slot of the next descriptor that the card owns, and the one behind it.
    fn next(&self, ring: usize) -> Option<(u32, u32)> {
        let head = self.registers.read32(ring + HEAD);
        let slots = self.registers.read32(ring + LENGTH) / 16;
        (head != self.registers.read32(ring + TAIL)).then_some((head, (head + 1) % slots))
    }

    /// Empty buffers that the card has.
    pub(super) fn buffers(&self) -> u32 {
        let slots = self.registers.read32(RX_RING + LENGTH) / 16;
        let tail = self.registers.read32(RX_RING + TAIL);
        (tail + slots - self.registers.read32(RX_RING + HEAD)) % slots
    }

    /// Stores a frame that came over the wire; false if there is no buffer.
    pub(super) fn store(&mut self, frame: &[u8]) -> bool {
        self.store_with(frame, frame.len() as u16, GOOD, 0)
    }

    /// As [`store`](Self::store), with these claims about it.
    pub(super) fn store_with(&mut self, frame: &[u8], len: u16, status: u8, errors: u8) -> bool {
        let Some((slot, after)) = self.next(RX_RING) else {
            return false;
        };
        let at = self.descriptor_at(RX_RING, slot);
        let [buffer, _] = self.words_at(at);
        if self.memory.write(DeviceAddr(buffer), frame).is_err() {
            self.astray += frame.len();
        }
        let word = u64::from(len) | u64::from(status) << 32 | u64::from(errors) << 40;
        let done = self.memory.write(DeviceAddr(at + 8), &word.to_le_bytes());
        done.expect("a descriptor");
        self.registers.write32(RX_RING + HEAD, after);
        true
    }

    /// The card stores a frame out of which it took this tag.
    pub(super) fn store_tagged(&mut self, frame: &[u8], tag: u16) -> bool {
        let Some((slot, _)) = self.next(RX_RING) else {
            return false;
        };
        let at = self.descriptor_at(RX_RING, slot);
        assert!(self.store_with(frame, frame.len() as u16, GOOD | 1 << 3, 0));
        let done = self.memory.write(DeviceAddr(at + 14), &tag.to_le_bytes());
        done.is_ok()
    }

    /// Sends the next frame that the driver queued.
    pub(super) fn send(&mut self) -> Option<Sent> {
        let mut bytes = Vec::new();
        loop {
            let (slot, after) = self.next(TX_RING)?;
            let at = self.descriptor_at(TX_RING, slot);
            let [addr, word] = self.words_at(at);
            assert_ne!(word & 1 << 29, 0, "extended descriptors only");
            self.registers.write32(TX_RING + HEAD, after);
            if word >> 20 & 0xf == 0 {
                self.context = Some([addr, word]);
                continue;
            }
            bytes.extend(self.read(addr, (word & 0xf_ffff) as usize));
            if word & 1 << 27 != 0 {
                let done = (word | 1 << 32).to_le_bytes();
                self.memory.write(DeviceAddr(at + 8), &done).unwrap();
            }
            if word & 1 << 24 != 0 {
                let context = self.context.filter(|_| word & 1 << 41 != 0);
                let handles_tags = self.registers.read32(CTRL) & CTRL_HANDLE_TAGS != 0;
                let tag = (handles_tags && word & 1 << 30 != 0).then_some((word >> 48) as u16);
                return Some(Sent {
                    bytes,
                    context,
                    tag,
                });
            }
        }
    }
}
