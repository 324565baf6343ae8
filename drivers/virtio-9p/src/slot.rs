//! The buffer of one request under way.

use hal::{DmaBuf, DmaSource, Span};
use ninep::Request;
use virtq::Part;

/// Shared memory for a request and its reply, `msize` bytes each.
pub(crate) struct Slot {
    memory: DmaBuf,
    msize: usize,
}

/// Replies that carry no data are shorter than this, names and link texts included.
const SMALL_REPLY_BYTES: usize = 4096 + 64;

impl Slot {
    pub(crate) fn new(memory: &impl DmaSource, msize: usize) -> Option<Self> {
        let memory = memory.dma_alloc(2 * msize, 8)?;
        Some(Self { memory, msize })
    }

    /// The chain for `message`, which it copies in.
    pub(crate) fn chain(&self, message: &[u8], request: &Request<'_>) -> Option<[Part; 2]> {
        self.memory.copy_in(0, message);
        let asked = self.memory.span(0, message.len())?;
        Some([Part::Read(asked), Part::Write(self.room(request)?)])
    }

    /// Room for the reply: what can come, so that the device need not map more.
    fn room(&self, request: &Request<'_>) -> Option<Span> {
        let bytes = match *request {
            Request::Read { .. } | Request::Readdir { .. } => self.msize,
            _ => self.msize.min(SMALL_REPLY_BYTES),
        };
        self.memory.span(self.msize, bytes)
    }

    /// Copies the reply out.
    pub(crate) fn read_reply(&self, to: &mut [u8]) {
        self.memory.copy_out(self.msize, to);
    }
}
