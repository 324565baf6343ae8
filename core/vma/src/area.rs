//! One stretch of addresses with one meaning.

use core::ops::Range;

use base::VirtAddr;

/// What a program may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Load.
    pub read: bool,
    /// Store.
    pub write: bool,
    /// Execute.
    pub exec: bool,
}

impl Access {
    /// Nothing.
    pub const NONE: Self = Self {
        read: false,
        write: false,
        exec: false,
    };
    /// Load and store.
    pub const READ_WRITE: Self = Self {
        read: true,
        write: true,
        exec: false,
    };

    /// Whether everything that `other` allows is allowed.
    pub const fn covers(self, other: Self) -> bool {
        (self.read || !other.read) && (self.write || !other.write) && (self.exec || !other.exec)
    }

    /// Whether nothing is allowed.
    pub const fn is_none(self) -> bool {
        !(self.read || self.write || self.exec)
    }
}

/// How an area behaves beside its access rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traits {
    /// Stores reach the object and all who map it; otherwise they are private.
    pub shared: bool,
    /// A fault below it extends it downwards (a stack).
    pub grows_down: bool,
    /// A child does not inherit it.
    pub no_fork: bool,
    /// A child gets zeros in its place.
    pub wipe_on_fork: bool,
    /// It shall not count as promised memory.
    pub no_reserve: bool,
    /// It counts as promised memory.
    pub promised: bool,
    /// It counts as locked.
    pub locked: bool,
    /// It is the program's heap, grown by `brk`.
    pub heap: bool,
    /// Others hold its pages for good: they are never copied, a child gets copies at once.
    pub pinned: bool,
    /// Large pages are wanted.
    pub large_pages: bool,
    /// Large pages are not wanted.
    pub small_pages: bool,
}

impl Traits {
    /// Private memory that may be reserved, inherited and paged as usual.
    pub const NONE: Self = Self {
        shared: false,
        grows_down: false,
        no_fork: false,
        wipe_on_fork: false,
        no_reserve: false,
        promised: false,
        locked: false,
        heap: false,
        pinned: false,
        large_pages: false,
        small_pages: false,
    };
}

/// The part of an object that an area shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backing<O> {
    /// Handle of the object.
    pub object: O,
    /// Byte of the object at the area's start; a multiple of the page size.
    pub offset: u64,
}

/// Pages `[start, end)` with one meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Area<O> {
    /// First address.
    pub start: VirtAddr,
    /// First address behind.
    pub end: VirtAddr,
    /// What the program may do now.
    pub access: Access,
    /// What it may ask for later (a read-only file can not be mapped writable and shared).
    pub limit: Access,
    /// Its other properties.
    pub traits: Traits,
    /// The object that it shows, or `None` for anonymous memory.
    pub backing: Option<Backing<O>>,
}

impl<O> Area<O> {
    /// No pages at address 0.
    pub(crate) const EMPTY: Self = Self {
        start: VirtAddr(0),
        end: VirtAddr(0),
        access: Access::NONE,
        limit: Access::NONE,
        traits: Traits::NONE,
        backing: None,
    };
}

impl<O: Clone + PartialEq> Area<O> {
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Length in bytes if it counts as promised memory, else 0.
    pub fn promised_bytes(&self) -> u64 {
        if self.traits.promised {
            self.bytes()
        } else {
            0
        }
    }

    /// Whether `at` lies inside.
    pub fn contains(&self, at: VirtAddr) -> bool {
        self.start <= at && at < self.end
    }

    /// The addresses that this area and `range` share.
    pub fn clip(&self, range: &Range<VirtAddr>) -> Range<VirtAddr> {
        self.start.max(range.start)..self.end.min(range.end)
    }

    /// Where in its object the byte at `at` lies.
    pub fn offset_of(&self, at: VirtAddr) -> Option<u64> {
        Some(self.backing.as_ref()?.offset + (at - self.start))
    }

    /// The part in `range`, which lies inside.
    pub fn part(&self, range: Range<VirtAddr>) -> Self {
        let mut part = self.clone();
        if let Some(backing) = &mut part.backing {
            backing.offset += range.start - self.start;
        }
        (part.start, part.end) = (range.start, range.end);
        part
    }

    /// Whether `next` goes on where this area ends, with the same meaning.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        self.end == next.start
            && self.access == next.access
            && self.limit == next.limit
            && self.traits == next.traits
            && self.backing_joins(next)
    }

    fn backing_joins(&self, next: &Self) -> bool {
        match (&self.backing, &next.backing) {
            (None, None) => true,
            (Some(one), Some(two)) => {
                one.object == two.object && one.offset + self.bytes() == two.offset
            }
            _ => false,
        }
    }
}
