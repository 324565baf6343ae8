//! Buffers that a program lends in a ring of its own (io_uring_register_buf_ring(3)).
//!
//! The ring lies in the program's memory: 16 bytes a buffer, and the tail in the unused half
//! word of the first. The head is the kernel's and is not shown.

/// Bytes of a `struct io_uring_buf`.
const ENTRY_BYTES: u64 = 16;
/// Where the tail lies in the ring.
const TAIL_OFFSET: u64 = 14;
/// Buffers that a ring may have.
const ENTRIES_MAX: u32 = 32_768;

/// A buffer as the ring says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingBuffer {
    /// Where it is.
    pub address: u64,
    /// Its bytes.
    pub len: u32,
    /// What the program calls it.
    pub number: u16,
}

impl RingBuffer {
    /// From the words of a `struct io_uring_buf`.
    pub fn from_words([address, rest]: [u64; 2]) -> Self {
        Self {
            address,
            len: rest as u32,
            number: (rest >> 32) as u16,
        }
    }
}

/// Where the next buffer is described.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lent {
    /// Bytes from the beginning of the ring.
    pub offset: u64,
}

/// A ring of buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferRing {
    entries: u32,
    head: u16,
}

impl BufferRing {
    /// A ring of `entries` buffers: a power of two below 65536.
    pub fn new(entries: u32) -> Option<Self> {
        let fits = entries.is_power_of_two() && entries <= ENTRIES_MAX;
        fits.then_some(Self { entries, head: 0 })
    }

    /// Where the tail is to be read: bytes from the beginning of the ring.
    pub fn tail_offset(&self) -> u64 {
        TAIL_OFFSET
    }

    /// Bytes of the ring.
    pub fn bytes(&self) -> u64 {
        u64::from(self.entries) * ENTRY_BYTES
    }

    /// The next buffer, if the program's tail says that there is one.
    pub fn next(&self, tail: u16) -> Option<Lent> {
        (tail != self.head).then(|| Lent {
            offset: u64::from(u32::from(self.head) & (self.entries - 1)) * ENTRY_BYTES,
        })
    }

    /// The next buffer is used.
    pub fn advance(&mut self) {
        self.head = self.head.wrapping_add(1);
    }
}
