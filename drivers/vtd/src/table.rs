//! A table of a page: words that the unit reads at any time.

use hal::caching::{MemoryType, Uncached};
use hal::owner::Shared;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource, HasDeviceAddr};

/// Bytes of every table.
pub(crate) const TABLE_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;

/// Shared memory of a page, which the unit knows by an address.
pub(crate) struct Page<M: MemoryType> {
    pub(crate) memory: DmaBuf<M, Shared>,
    pub(crate) address: u64,
}

impl<M: MemoryType> Page<M> {
    /// Zeros.
    pub(crate) fn new(source: &impl DmaSource) -> Result<Self, DmaError> {
        let bytes = TABLE_BYTES;
        let memory = source
            .dma_alloc::<M>(&DmaRequest::new(bytes, bytes))?
            .share();
        let span = memory.dev_addr(0, bytes);
        let address = span.ok_or(DmaError::OutOfMemory { bytes })?.addr().0;
        Ok(Self { memory, address })
    }
}

/// A table: none of its entries is present at first.
pub(crate) struct Table(Page<Uncached>);

impl Table {
    pub(crate) fn new(source: &impl DmaSource) -> Result<Self, DmaError> {
        Page::new(source).map(Self)
    }

    /// Where the unit finds it.
    pub(crate) fn address(&self) -> u64 {
        self.0.address
    }

    /// The unit knows it no more: it is freed. One that is dropped otherwise is kept for good.
    pub(crate) fn retire(mut self) {
        self.0.memory.retire();
    }

    /// Word `index`.
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.0.memory.read_u64(index * WORD_BYTES)
    }

    /// Sets word `index`, after all that was written before.
    pub(crate) fn set(&self, index: usize, value: u64) {
        self.0.memory.release_u64(index * WORD_BYTES, value);
    }
}
