//! Which chunks the kernel has, and the buffers that stand for them (the crate's **Kept**).
//!
//! A chunk is at most one of: posted, to be written once; in flight, to be read for one frame or for
//! several (a segment and its repetition, two segments that lie in one chunk). Frames are counted, for the
//! kernel may be done with them in any order.

use mbuf::Mbuf;

/// What the kernel has of one chunk.
#[derive(Default)]
struct Loan {
    buffer: Option<Mbuf>,
    /// Frames in flight; zero for a chunk that is posted.
    frames: u32,
}

/// See the module.
pub struct Loans {
    chunks: Box<[Loan]>,
    in_flight: u32,
}

impl Loans {
    /// The kernel has none.
    pub fn new(chunks: usize) -> Self {
        Self {
            chunks: (0..chunks).map(|_| Loan::default()).collect(),
            in_flight: 0,
        }
    }

    /// Frames that the kernel has to read.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The kernel may write to a chunk whose only buffer this is.
    #[inline]
    pub fn post(&mut self, chunk: usize, buffer: Mbuf) {
        if let Some(loan) = self.chunks.get_mut(chunk) {
            loan.buffer = Some(buffer);
        }
    }

    /// The kernel has written to a chunk; `None` for one that was not posted.
    #[inline]
    pub fn take(&mut self, chunk: usize) -> Option<Mbuf> {
        let loan = self.chunks.get_mut(chunk)?;
        match loan.frames {
            0 => loan.buffer.take(),
            _ => None,
        }
    }

    /// The kernel may read a frame in a chunk. Of several frames in it one buffer is kept: it keeps
    /// the chunk, and keeps others from being its only one.
    #[inline]
    pub fn fly(&mut self, chunk: usize, frame: Mbuf) {
        if let Some(loan) = self.chunks.get_mut(chunk) {
            loan.buffer.get_or_insert(frame);
            loan.frames += 1;
            self.in_flight += 1;
        }
    }

    /// The kernel has read a frame in a chunk; false if it had none.
    #[inline]
    pub fn land(&mut self, chunk: usize) -> bool {
        let loan = self.chunks.get_mut(chunk).filter(|loan| loan.frames != 0);
        let Some(loan) = loan else { return false };
        loan.frames -= 1;
        if loan.frames == 0 {
            loan.buffer = None;
        }
        self.in_flight -= 1;
        true
    }
}
