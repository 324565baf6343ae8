//! Headers and last bytes of a queue's commands (section 5.2.6).

use alloc::vec::Vec;

use block::{Command, Operation, Verdict};
use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};
use virtq::Token;

/// Types of commands.
const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const DISCARD: u32 = 11;
const WRITE_ZEROES: u32 = 13;

/// The device may give up the room of zeroes.
const UNMAP: u32 = 1;

/// How a command ended.
const OK: u16 = 0;
const UNSUPPORTED: u16 = 2;
/// What stands there before the device says anything.
const SILENCE: u16 = 0xff;

/// A slot: the header, the range of a command without data, and the last byte.
const SLOT_BYTES: usize = 64;
const HEADER_BYTES: usize = 16;
const RANGE: usize = 16;
const RANGE_BYTES: usize = 16;
const STATUS: usize = 32;

/// The slots of one queue, one for each token.
pub(crate) struct Slots {
    memory: DmaBuf<WriteBack, Shared>,
    /// Of each slot, with its range.
    places: Vec<Around>,
}

/// What the device is told besides memory.
#[derive(Clone, Copy)]
pub(crate) struct Around {
    pub header: Span,
    /// Of a command without data.
    pub range: Option<Span>,
    pub status: Span,
}

impl Slots {
    pub(crate) fn new(memory: &impl DmaSource, count: u16) -> Option<Self> {
        let bytes = usize::from(count) * SLOT_BYTES;
        let memory: DmaBuf = memory.dma_alloc(&DmaRequest::new(bytes, SLOT_BYTES)).ok()?;
        let memory = memory.share();
        let places = (0..count).map(|slot| around(&memory, usize::from(slot) * SLOT_BYTES));
        let places = places.collect::<Option<_>>()?;
        Some(Self { memory, places })
    }

    /// Where a slot lies.
    pub(crate) fn place(&self, token: Token) -> Option<&Around> {
        self.places.get(token.index())
    }

    /// Fills the slot of the chain that will carry `command`.
    #[inline]
    pub(crate) fn fill(&self, token: Token, command: &Command<'_>) {
        let at = token.index() * SLOT_BYTES;
        let (kind, first) = match command.operation {
            Operation::Read => (IN, command.sectors.first),
            Operation::Write(_) => (OUT, command.sectors.first),
            _ => (self.fill_range(at, command), 0),
        };
        self.memory.write_u64(at, u64::from(kind));
        self.memory.write_u64(at + 8, first);
        self.memory.write_u16(at + STATUS, SILENCE);
    }

    /// The same for a read or a write of sectors from `first` on.
    #[inline]
    pub(crate) fn fill_transfer(&self, token: Token, is_write: bool, first: u64) {
        let at = token.index() * SLOT_BYTES;
        let kind = if is_write { OUT } else { IN };
        let header = [u64::from(kind), first].map(u64::to_le_bytes);
        self.memory.copy_in(at, header.as_flattened());
        self.memory.write_u16(at + STATUS, SILENCE);
    }

    /// What a command without data is about, in its range; which type it is.
    #[cold]
    fn fill_range(&self, at: usize, command: &Command<'_>) -> u32 {
        let (kind, flags) = match command.operation {
            Operation::Discard => (DISCARD, 0),
            Operation::WriteZeroes { may_unmap } => {
                (WRITE_ZEROES, if may_unmap { UNMAP } else { 0 })
            }
            _ => return FLUSH,
        };
        self.memory.write_u64(at + RANGE, command.sectors.first);
        let count = command.sectors.count as u32;
        self.memory.write_u32(at + RANGE + 8, count);
        self.memory.write_u32(at + RANGE + 12, flags);
        kind
    }

    /// The command has ended: what the device said, whatever that is.
    #[inline]
    pub(crate) fn end(&self, token: Token) -> Verdict {
        let status = self.memory.read_u16(token.index() * SLOT_BYTES + STATUS);
        match status & 0xff {
            OK => Verdict::Done,
            UNSUPPORTED => Verdict::Unsupported,
            _ => Verdict::Failed,
        }
    }

    /// The device has been stopped.
    pub(crate) fn retire(&mut self) {
        self.memory.retire();
    }
}

/// Where the device finds the parts of the slot at `at`.
fn around(memory: &DmaBuf<WriteBack, Shared>, at: usize) -> Option<Around> {
    Some(Around {
        header: memory.dev_addr(at, HEADER_BYTES)?,
        range: memory.dev_addr(at + RANGE, RANGE_BYTES),
        status: memory.dev_addr(at + STATUS, 1)?,
    })
}
