//! Size classes: which sizes share a magazine.
//!
//! Steps of 16 bytes up to 512, then four classes for each doubling: above 512 bytes at
//! most a fifth of an object is wasted. Powers of two are among them because they serve
//! large alignments.

use core::alloc::Layout;

/// Number of size classes.
pub const CLASSES: usize = 56;
/// Bytes of the largest class.
pub const LARGEST: usize = 32 << 10;

/// Classes up to this size are `STEP` bytes apart.
const FINE: usize = 512;
const STEP_SHIFT: u32 = 4;
/// The class of `FINE`; the next is the first of four for a doubling.
const FINE_CLASSES: usize = FINE >> STEP_SHIFT;

const SIZES: [u16; CLASSES + 1] = {
    let mut sizes = [0; CLASSES + 1];
    let mut class = 1;
    while class <= CLASSES {
        sizes[class] = if class <= FINE_CLASSES {
            (class << STEP_SHIFT) as u16
        } else {
            let (doubling, quarter) = (
                (class - FINE_CLASSES - 1) / 4,
                (class - FINE_CLASSES - 1) % 4,
            );
            ((5 + quarter) << (doubling + 7)) as u16
        };
        class += 1;
    }
    sizes
};
const _: () = assert!(SIZES[FINE_CLASSES] as usize == FINE);
const _: () = assert!(SIZES[CLASSES] as usize == LARGEST);

/// A size class: 1 to [`CLASSES`], or [`Class::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(u8);

impl Class {
    /// What an empty object, and an address without a class, has.
    pub const NONE: Self = Self(0);

    /// The class for objects of `size` bytes, [`Class::NONE`] for 0, or `None` above
    /// [`LARGEST`].
    #[inline(always)]
    pub const fn of_size(size: usize) -> Option<Self> {
        if size <= FINE {
            return Some(Self(((size + 15) >> STEP_SHIFT) as u8));
        }
        if size > LARGEST {
            return None;
        }
        let last = size - 1;
        let doubling = last.ilog2();
        let quarter = (last >> (doubling - 2)) & 3;
        Some(Self(
            (FINE_CLASSES + 1 + (doubling as usize - 9) * 4 + quarter) as u8,
        ))
    }

    /// The class for objects of this layout. Alignments above 16 take a power of two,
    /// which is aligned to itself when slabs are.
    #[inline(always)]
    pub const fn of_layout(layout: Layout) -> Option<Self> {
        let size = if layout.align() <= 16 {
            layout.size()
        } else if layout.size() > layout.align() {
            layout.size().next_power_of_two()
        } else {
            layout.align()
        };
        Self::of_size(size)
    }

    /// The class with this index, if there is one.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index >= 1 && index <= CLASSES {
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Every class, smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=CLASSES as u8).map(Self)
    }

    /// The class's place in an array of [`CLASSES`] + 1.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Bytes of its objects.
    pub const fn bytes(self) -> usize {
        SIZES[self.index()] as usize
    }
}
