//! Where the parts of a queue lie in its memory, and how a descriptor looks.

use base::DeviceAddr;
use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};

/// Memory that driver and device use at the same time.
pub(crate) type SharedBuf = DmaBuf<WriteBack, Shared>;

/// The largest queue that the specification allows.
pub const SIZE_MAX: u16 = 32768;

/// `VIRTQ_DESC_F_NEXT`: the chain goes on at `next`.
pub(crate) const DESC_NEXT: u16 = 1;
/// `VIRTQ_DESC_F_WRITE`: the device writes.
pub(crate) const DESC_WRITE: u16 = 2;
/// `VIRTQ_DESC_F_INDIRECT`: the part is a table of descriptors.
pub(crate) const DESC_INDIRECT: u16 = 4;
/// `VIRTQ_AVAIL_F_NO_INTERRUPT` and `VIRTQ_USED_F_NO_NOTIFY`.
pub(crate) const RING_QUIET: u16 = 1;

/// Bytes of one descriptor.
pub(crate) const DESC_BYTES: usize = 16;
/// The used ring starts on a cache line of its own: the device writes it.
const USED_ALIGN: usize = 64;
/// The descriptor table's alignment is 16; a page keeps a queue within one where it fits.
const MEMORY_ALIGN: usize = 4096;

/// What the device must be told about a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// The descriptor table.
    pub descriptors: DeviceAddr,
    /// The available ring ("driver area").
    pub available: DeviceAddr,
    /// The used ring ("device area").
    pub used: DeviceAddr,
}

/// The three rings of `size` entries in one piece of memory.
pub(crate) struct Rings {
    memory: SharedBuf,
    size: u16,
    available: usize,
    used: usize,
}

impl Rings {
    pub(crate) fn new(memory: &impl DmaSource, size: u16) -> Option<Self> {
        let entries = usize::from(size);
        let available = entries * DESC_BYTES;
        let used = (available + 6 + entries * 2).next_multiple_of(USED_ALIGN);
        let bytes = used + 6 + entries * 8;
        let memory = shared(memory, bytes, MEMORY_ALIGN)?;
        Some(Self {
            memory,
            size,
            available,
            used,
        })
    }

    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// See [`hal::DmaBuf::retire`].
    pub(crate) fn retire(&mut self) {
        self.memory.retire();
    }

    pub(crate) fn addresses(&self) -> Option<Addresses> {
        let at = |offset| self.memory.dev_addr(offset, 0).map(|span| span.addr());
        Some(Addresses {
            descriptors: at(0)?,
            available: at(self.available)?,
            used: at(self.used)?,
        })
    }

    #[inline]
    pub(crate) fn write_descriptor(&self, index: u16, span: Span, flags: u16, next: u16) {
        write_descriptor(
            &self.memory,
            usize::from(index) * DESC_BYTES,
            span,
            flags,
            next,
        );
    }

    #[inline]
    pub(crate) fn write_available(&self, at: u16, head: u16) {
        let slot = usize::from(at & (self.size - 1));
        self.memory.write_u16(self.available + 4 + slot * 2, head);
    }

    #[inline]
    pub(crate) fn publish_available(&self, index: u16) {
        self.memory.release_u16(self.available + 2, index);
    }

    pub(crate) fn write_available_flags(&self, flags: u16) {
        self.memory.write_u16(self.available, flags);
    }

    /// `used_event`: the device interrupts when it goes past this index.
    #[inline]
    pub(crate) fn write_used_event(&self, index: u16) {
        self.memory
            .write_u16(self.available + 4 + usize::from(self.size) * 2, index);
    }

    #[inline]
    pub(crate) fn used_flags(&self) -> u16 {
        self.memory.read_u16(self.used)
    }

    #[inline]
    pub(crate) fn used_index(&self) -> u16 {
        self.memory.acquire_u16(self.used + 2)
    }

    /// A used entry: the chain's head, and the bytes that the device claims to have written.
    #[inline]
    pub(crate) fn used_entry(&self, at: u16) -> (u32, u32) {
        let slot = self.used + 4 + usize::from(at & (self.size - 1)) * 8;
        (self.memory.read_u32(slot), self.memory.read_u32(slot + 4))
    }

    /// `avail_event`: the device wants a doorbell when we go past this index.
    #[inline]
    pub(crate) fn available_event(&self) -> u16 {
        self.memory
            .read_u16(self.used + 4 + usize::from(self.size) * 8)
    }
}

/// Zeroed memory for a ring or a table.
pub(crate) fn shared(memory: &impl DmaSource, bytes: usize, align: usize) -> Option<SharedBuf> {
    let buffer = memory.dma_alloc(&DmaRequest::new(bytes, align)).ok()?;
    Some(DmaBuf::share(buffer))
}

/// Writes a descriptor into a table.
#[inline]
pub(crate) fn write_descriptor(table: &SharedBuf, at: usize, span: Span, flags: u16, next: u16) {
    let tail = u64::from(span.len()) | u64::from(flags) << 32 | u64::from(next) << 48;
    let words = [span.addr().0, tail].map(u64::to_le_bytes);
    table.copy_in(at, words.as_flattened());
}
