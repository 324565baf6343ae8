//! Telling the unit what to forget, and hearing that it did (6.5.2).
//!
//! A ring of descriptors of two words. Each request is followed by a descriptor that makes the
//! unit write a number to memory once all before it are done. Whoever asks waits for that
//! number, so the ring never holds more than one request.

use hal::caching::WriteBack;
use hal::{DmaError, DmaSource, Registers};

use crate::Error;
use crate::registers::{
    FAULT_STATUS, QUEUE_ADDRESS, QUEUE_TAIL, QUEUED_INVALIDATION, command, write64,
};
use crate::table::{Page, TABLE_BYTES};

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: usize = 16;
/// Looks at the number until the unit is given up.
const LOOKS_MAX: u32 = 10_000_000;

/// Kinds of descriptors.
const CONTEXT_CACHE: u64 = 1;
const IOTLB: u64 = 2;
const INTERRUPTS: u64 = 4;
const WAIT: u64 = 5;
/// How much of it: everything, or one domain.
const GLOBAL: u64 = 1 << 4;
const OF_DOMAIN: u64 = 2 << 4;
const DRAIN_WRITES: u64 = 1 << 6;
const DRAIN_READS: u64 = 1 << 7;
const DOMAIN_SHIFT: u32 = 16;
/// Of interrupts: one entry, which stands in the upper half.
const OF_ENTRY: u64 = 1 << 4;
const ENTRY_SHIFT: u32 = 32;
/// A wait writes a number, which stands in the upper half.
const WRITE_STATUS: u64 = 1 << 5;
const STATUS_SHIFT: u32 = 32;

/// What to forget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forget {
    /// Which functions are led where.
    Contexts,
    /// All translations.
    Translations,
    /// Those of a domain.
    Domain(u16),
    /// All entries of the table of interrupts.
    Interrupts,
    /// One of them.
    Interrupt(u8),
}

/// The ring, and the word in which the unit says how far it is.
pub(crate) struct Queue {
    ring: Page<WriteBack>,
    status: Page<WriteBack>,
    /// Bytes from the start of the ring to the next descriptor.
    tail: usize,
    /// The number of the last request.
    number: u32,
    /// Bits that make requests that are under way end first.
    drain: u64,
}

impl Queue {
    pub(crate) fn new(
        source: &impl DmaSource,
        (drains_reads, drains_writes): (bool, bool),
    ) -> Result<Self, DmaError> {
        let bit = |has: bool, bit| if has { bit } else { 0 };
        Ok(Self {
            ring: Page::new(source)?,
            status: Page::new(source)?,
            tail: 0,
            number: 0,
            drain: bit(drains_reads, DRAIN_READS) | bit(drains_writes, DRAIN_WRITES),
        })
    }

    /// Tells the unit of the ring.
    pub(crate) fn start(&self, registers: &impl Registers) -> Result<(), Error> {
        write64(registers, QUEUE_TAIL, 0);
        write64(registers, QUEUE_ADDRESS, self.ring.address);
        command(registers, QUEUED_INVALIDATION)
    }

    /// Returns when the unit has forgotten all that is asked for.
    pub(crate) fn run(&mut self, registers: &impl Registers, all: &[Forget]) -> Result<(), Error> {
        for &forget in all {
            let word = self.descriptor(forget);
            self.put([word, 0]);
        }
        self.number = self.number.wrapping_add(1);
        let wait = WAIT | WRITE_STATUS | u64::from(self.number) << STATUS_SHIFT;
        self.put([wait, self.status.address]);
        write64(registers, QUEUE_TAIL, self.tail as u64);
        self.wait(registers)
    }

    fn wait(&self, registers: &impl Registers) -> Result<(), Error> {
        let is_done = |_| {
            core::hint::spin_loop();
            self.status.memory.acquire_u32(0) == self.number
        };
        match (0..LOOKS_MAX).any(is_done) {
            true => Ok(()),
            false => Err(Error::InvalidationStuck {
                status: registers.read32(FAULT_STATUS),
            }),
        }
    }

    fn descriptor(&self, forget: Forget) -> u64 {
        match forget {
            Forget::Contexts => CONTEXT_CACHE | GLOBAL,
            Forget::Translations => IOTLB | GLOBAL | self.drain,
            Forget::Interrupts => INTERRUPTS,
            Forget::Interrupt(index) => INTERRUPTS | OF_ENTRY | u64::from(index) << ENTRY_SHIFT,
            Forget::Domain(domain) => {
                IOTLB | OF_DOMAIN | self.drain | u64::from(domain) << DOMAIN_SHIFT
            }
        }
    }

    fn put(&mut self, [low, high]: [u64; 2]) {
        self.ring.memory.write_u64(self.tail + 8, high);
        self.ring.memory.release_u64(self.tail, low);
        self.tail = (self.tail + DESCRIPTOR_BYTES) % TABLE_BYTES;
    }
}
