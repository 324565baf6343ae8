//! Headers and last bytes of a queue's commands (section 5.2.6).

use alloc::vec::Vec;

use block::{Command, Operation, Tag, Verdict};
use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};

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

/// The slots of one queue.
pub(crate) struct Slots {
    memory: DmaBuf<WriteBack, Shared>,
    free: Vec<u16>,
}

/// What the device is told besides memory.
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
        Some(Self {
            memory: memory.share(),
            free: (0..count).rev().collect(),
        })
    }

    /// A slot filled for `command`; `None` if all are in use.
    pub(crate) fn fill(&mut self, command: &Command<'_>) -> Option<(Tag, Around)> {
        let tag = self.free.pop()?;
        let at = usize::from(tag) * SLOT_BYTES;
        let (kind, flags) = match command.operation {
            Operation::Read => (IN, None),
            Operation::Write(_) => (OUT, None),
            Operation::Flush => (FLUSH, None),
            Operation::Discard => (DISCARD, Some(0)),
            Operation::WriteZeroes { may_unmap } => {
                (WRITE_ZEROES, Some(if may_unmap { UNMAP } else { 0 }))
            }
        };
        let first = if command.operation.has_data() {
            command.sectors.first
        } else {
            0
        };
        self.memory.write_u64(at, u64::from(kind));
        self.memory.write_u64(at + 8, first);
        if let Some(flags) = flags {
            self.memory.write_u64(at + RANGE, command.sectors.first);
            let count = command.sectors.count as u32;
            self.memory.write_u32(at + RANGE + 8, count);
            self.memory.write_u32(at + RANGE + 12, flags);
        }
        self.memory.write_u16(at + STATUS, SILENCE);
        let around = self.around(at, flags.is_some());
        if around.is_none() {
            self.free.push(tag);
        }
        Some((Tag(tag), around?))
    }

    fn around(&self, at: usize, has_range: bool) -> Option<Around> {
        let range = self.memory.dev_addr(at + RANGE, RANGE_BYTES);
        Some(Around {
            header: self.memory.dev_addr(at, HEADER_BYTES)?,
            range: range.filter(|_| has_range),
            status: self.memory.dev_addr(at + STATUS, 1)?,
        })
    }

    /// The command has ended: what the device said, whatever that is.
    pub(crate) fn end(&mut self, tag: Tag) -> Verdict {
        let status = self
            .memory
            .read_u16(usize::from(tag.0) * SLOT_BYTES + STATUS)
            & 0xff;
        self.give_back(tag);
        match status {
            OK => Verdict::Done,
            UNSUPPORTED => Verdict::Unsupported,
            _ => Verdict::Failed,
        }
    }

    /// The command was not sent.
    pub(crate) fn give_back(&mut self, tag: Tag) {
        self.free.push(tag.0);
    }

    /// The device has been stopped.
    pub(crate) fn retire(&mut self) {
        self.memory.retire();
    }
}
