//! Entries of page tables (Intel SDM volume 3, 4.5) and what user entries mean here.

use base::PAGE_SHIFT;
use frames::FrameNo;
use hal::caching::Caching;

pub(super) const PRESENT: u64 = 1 << 0;
pub(super) const WRITE: u64 = 1 << 1;
pub(super) const USER: u64 = 1 << 2;
pub(super) const WRITE_THROUGH: u64 = 1 << 3;
pub(super) const UNCACHED: u64 = 1 << 4;
pub(super) const ACCESSED: u64 = 1 << 5;
pub(super) const DIRTY: u64 = 1 << 6;
pub(super) const LARGE: u64 = 1 << 7;
pub(super) const GLOBAL: u64 = 1 << 8;
/// Not present for the processor (no access is allowed), yet the entry owns its page.
pub(super) const HELD: u64 = 1 << 9;
/// Shows the page of zeros, which the entry does not own; never with [`WRITE`].
pub(super) const ZEROS: u64 = 1 << 10;
pub(super) const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// What a program may do with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prot {
    /// Loads.
    pub read: bool,
    /// Stores; implies loads on this processor.
    pub write: bool,
    /// Instruction fetches; implies loads on this processor.
    pub exec: bool,
    /// How the processor caches it. Set when a page is mapped; later changes of
    /// permissions leave it as it is.
    pub caching: Caching,
}

impl Prot {
    /// No access at all.
    pub const NONE: Self = Self {
        read: false,
        write: false,
        exec: false,
        caching: Caching::WriteBack,
    };
    /// Loads only.
    pub const READ: Self = Self {
        read: true,
        write: false,
        exec: false,
        caching: Caching::WriteBack,
    };
    /// Loads and stores.
    pub const READ_WRITE: Self = Self {
        read: true,
        write: true,
        exec: false,
        caching: Caching::WriteBack,
    };

    /// The same without stores. The processor lets what may be stored to be loaded, so
    /// that right stays even if it was not asked for.
    #[must_use]
    pub const fn without_write(self) -> Self {
        Self {
            read: self.read || self.write,
            write: false,
            ..self
        }
    }

    pub(super) const fn bits(self) -> u64 {
        if !(self.read || self.write || self.exec) {
            return HELD;
        }
        let write = if self.write { WRITE } else { 0 };
        let exec = if self.exec { 0 } else { NO_EXECUTE };
        PRESENT | USER | write | exec | caching_bits(self.caching)
    }
}

/// The bits that choose a type of memory; see `arch::caching`.
pub(super) const CACHING: u64 = WRITE_THROUGH | UNCACHED;

const fn caching_bits(caching: Caching) -> u64 {
    match caching {
        Caching::WriteBack => 0,
        Caching::WriteCombining => WRITE_THROUGH,
        Caching::Uncached => WRITE_THROUGH | UNCACHED,
    }
}

/// What is known of one mapped page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The program may load from it.
    pub present: bool,
    /// The program may store to it.
    pub writable: bool,
    /// It was stored to through this mapping since the bit was last cleared.
    pub dirty: bool,
    /// It was used through this mapping.
    pub accessed: bool,
    /// Somebody else owns the same frame.
    pub shared: bool,
    /// It is the page of zeros, which takes no memory.
    pub zeros: bool,
    /// It is part of a large page.
    pub large: bool,
}

/// The entry that links to `frame`.
#[inline(always)]
pub(super) const fn link(frame: FrameNo, bits: u64) -> u64 {
    frame << PAGE_SHIFT | bits
}

/// The frame that an entry links to.
#[inline(always)]
pub(super) const fn frame(entry: u64) -> FrameNo {
    (entry & ADDRESS) >> PAGE_SHIFT
}

/// Whether a user entry owns a page (**Leaf**).
#[inline(always)]
pub(super) const fn owns_page(entry: u64) -> bool {
    entry & (PRESENT | HELD) != 0 && entry & ZEROS == 0
}
