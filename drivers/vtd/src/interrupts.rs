//! Which interrupts devices raise (5.1): a table of which each entry says a vector, a CPU, and the
//! one function that may name it. A device names an entry and never a vector; what names none, or
//! another's, is refused and recorded.

use hal::pci::MsiMessage;
use hal::{DmaError, DmaSource};

use crate::table::{TABLE_BYTES, Table};

/// Bytes of an entry.
const ENTRY_BYTES: usize = 16;
/// Entries: an index for each vector.
const ENTRIES: usize = TABLE_BYTES / ENTRY_BYTES;
const _: () = assert!(ENTRIES == 1 << 8, "an index is a byte");
/// In the table's address: how many entries there are, as a power of two, less one.
const SIZE: u64 = 7;

/// In the first word of an entry.
const PRESENT: u64 = 1 << 0;
const LEVEL: u64 = 1 << 4;
const NMI: u64 = 0b100 << 5;
const VECTOR_SHIFT: u32 = 16;
const CPU_SHIFT: u32 = 40;
/// In the second: the function is compared with all that stands in front of it.
const VERIFY: u64 = 1 << 18;

/// In a message's address: it names an entry, which follows from this bit on.
const NAMES_ENTRY: u64 = 1 << 4;
const INDEX_SHIFT: u32 = 5;
const MESSAGES: u64 = 0xfee0_0000;

/// An interrupt that one function may raise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Its vector.
    pub vector: u8,
    /// It is not to be masked, and has no vector.
    pub is_nmi: bool,
    /// It lasts until its device is served.
    pub is_level: bool,
    /// The local APIC that it goes to.
    pub apic_id: u8,
    /// The number of the function that may raise it.
    pub source: u16,
}

impl Interrupt {
    fn words(self) -> [u64; 2] {
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        let kind = bit(self.is_level, LEVEL) | bit(self.is_nmi, NMI);
        let vector = u64::from(self.vector) << VECTOR_SHIFT;
        let low = PRESENT | kind | vector | u64::from(self.apic_id) << CPU_SHIFT;
        [low, u64::from(self.source) | VERIFY]
    }
}

/// What a function sends to raise the interrupt of an entry.
pub fn message_of(index: u8) -> MsiMessage {
    MsiMessage {
        address: MESSAGES | NAMES_ENTRY | u64::from(index) << INDEX_SHIFT,
        data: 0,
    }
}

/// The table.
pub(crate) struct InterruptTable(Table);

impl InterruptTable {
    /// No entry is present.
    pub(crate) fn new(source: &impl DmaSource) -> Result<Self, DmaError> {
        Table::new(source).map(Self)
    }

    /// What the unit is told of it.
    pub(crate) fn address(&self) -> u64 {
        self.0.address() | SIZE
    }

    /// Sets an entry. The unit may remember what it was. While it stays one function's, the unit finds
    /// the one or the other at any time, so no interrupt is lost.
    pub(crate) fn set(&self, index: u8, interrupt: Interrupt) {
        let [low, high] = interrupt.words();
        let at = 2 * usize::from(index);
        if self.0.word(at + 1) != high {
            self.0.set(at, 0);
            self.0.set(at + 1, high);
        }
        self.0.set(at, low);
    }
}
