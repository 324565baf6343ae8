//! Where things lie in the memory that both share.

use base::SharedMemory;
use bitflags::bitflags;

/// Bytes of a submission queue entry.
pub const SQE_BYTES: usize = 64;
/// Bytes of a completion queue entry.
pub const CQE_BYTES: usize = 16;
/// Entries of the largest submission queue (IORING_MAX_ENTRIES).
const SQ_ENTRIES_MAX: u32 = 32_768;
/// Entries of the largest completion queue (IORING_MAX_CQ_ENTRIES).
const CQ_ENTRIES_MAX: u32 = 2 * SQ_ENTRIES_MAX;

/// Where the words of the rings lie. Each end that somebody writes has a cache line of its own.
pub mod offset {
    /// Next entry that the kernel takes; it writes.
    pub const SQ_HEAD: usize = 0;
    /// Behind the last entry that the program gave; it writes.
    pub const SQ_TAIL: usize = 64;
    /// Next completion that the program takes; it writes.
    pub const CQ_HEAD: usize = 128;
    /// Behind the last completion; the kernel writes.
    pub const CQ_TAIL: usize = 192;
    /// Entries less one.
    pub const SQ_MASK: usize = 256;
    /// Entries less one.
    pub const CQ_MASK: usize = 260;
    /// How many entries there are.
    pub const SQ_ENTRIES: usize = 264;
    /// How many completions fit.
    pub const CQ_ENTRIES: usize = 268;
    /// Entries with an index that is none.
    pub const SQ_DROPPED: usize = 272;
    /// What the kernel says ([`SqFlags`](super::SqFlags)).
    pub const SQ_FLAGS: usize = 276;
    /// What the program says of completions.
    pub const CQ_FLAGS: usize = 280;
    /// Completions that were lost; always 0.
    pub const CQ_OVERFLOW: usize = 284;
    /// The completions.
    pub const CQES: usize = 320;
}

bitflags! {
    /// What the kernel tells in the submission ring (IORING_SQ_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct SqFlags: u32 {
        /// The kernel's thread sleeps.
        const NEED_WAKEUP = 1;
        /// Completions wait for room.
        const CQ_OVERFLOW = 2;
        /// There is work that only a call does.
        const TASKRUN = 4;
    }
}

/// Why there can be no such ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No entries, or more than there may be and nobody asked for fewer.
    Entries,
    /// Fewer completions than submissions.
    Completions,
}

/// The sizes of both rings: powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    sq_entries: u32,
    cq_entries: u32,
}

impl Geometry {
    /// Rings for `entries`, and for `completions` if the program says how many; `clamp` takes
    /// the most there may be for what is more.
    pub fn check(entries: u32, completions: Option<u32>, clamp: bool) -> Result<Self, Refusal> {
        let sq_entries = bounded(entries, SQ_ENTRIES_MAX, clamp)?;
        let cq_entries = match completions {
            None => 2 * sq_entries,
            Some(wanted) => bounded(wanted, CQ_ENTRIES_MAX, clamp)?,
        };
        if cq_entries < sq_entries {
            return Err(Refusal::Completions);
        }
        Ok(Self {
            sq_entries,
            cq_entries,
        })
    }

    /// Entries of the submission queue.
    pub fn sq_entries(&self) -> u32 {
        self.sq_entries
    }

    /// Entries of the completion queue.
    pub fn cq_entries(&self) -> u32 {
        self.cq_entries
    }

    /// Where the array of indices lies.
    pub fn array(&self) -> usize {
        offset::CQES + self.cq_entries as usize * CQE_BYTES
    }

    /// Bytes of both rings, which lie in one.
    pub fn ring_bytes(&self) -> usize {
        self.array() + self.sq_entries as usize * size_of::<u32>()
    }

    /// Bytes of the entries.
    pub fn sqe_bytes(&self) -> usize {
        self.sq_entries as usize * SQE_BYTES
    }

    /// Says the sizes in the rings, where programs read them.
    pub fn publish(&self, rings: &impl SharedMemory) {
        rings.store(offset::SQ_MASK, self.sq_entries - 1);
        rings.store(offset::CQ_MASK, self.cq_entries - 1);
        rings.store(offset::SQ_ENTRIES, self.sq_entries);
        rings.store(offset::CQ_ENTRIES, self.cq_entries);
    }
}

fn bounded(wanted: u32, most: u32, clamp: bool) -> Result<u32, Refusal> {
    match wanted {
        0 => Err(Refusal::Entries),
        wanted if wanted > most && clamp => Ok(most),
        wanted if wanted > most => Err(Refusal::Entries),
        wanted => Ok(wanted.next_power_of_two()),
    }
}
