//! Size classes: which sizes share a list.

use core::alloc::Layout;

/// Bytes of each class. At most a quarter of an object is wasted; powers of two are
/// among them because they serve alignments above 16.
const SIZES: [u16; CLASSES] = [
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024, 1344,
    2048,
];
/// Number of size classes.
pub const CLASSES: usize = 21;
/// Bytes of the largest class; what is larger takes whole pages.
pub const LARGEST: usize = 2048;
/// Sizes are classified in steps of 16 bytes.
const STEP_SHIFT: u32 = 4;

const BY_STEP: [u8; (LARGEST >> STEP_SHIFT) + 1] = {
    let mut table = [0; (LARGEST >> STEP_SHIFT) + 1];
    let (mut step, mut class) = (0, 0);
    while step < table.len() {
        if step << STEP_SHIFT > SIZES[class] as usize {
            class += 1;
        }
        table[step] = class as u8;
        step += 1;
    }
    table
};

const BATCHES: [u8; CLASSES] = {
    let mut batches = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let objects = 4096 / SIZES[class];
        batches[class] = if objects > 32 { 32 } else { objects as u8 };
        class += 1;
    }
    batches
};

/// A size class, below [`CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(u8);

impl Class {
    /// The class for objects of this layout, or `None` if it takes whole pages.
    #[inline(always)]
    pub const fn of(layout: Layout) -> Option<Self> {
        let size = if layout.align() > 16 {
            aligned_size(layout)
        } else {
            layout.size()
        };
        if size > LARGEST {
            return None;
        }
        Some(Self(BY_STEP[(size + 15) >> STEP_SHIFT]))
    }

    /// Every class, smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..CLASSES as u8).map(Self)
    }

    /// The class's place in an array of [`CLASSES`].
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Bytes of its objects.
    pub const fn bytes(self) -> usize {
        SIZES[self.index()] as usize
    }

    /// Objects that move between a CPU and the depot at once: about a page's worth.
    pub const fn batch(self) -> usize {
        BATCHES[self.index()] as usize
    }

    /// Pages of one slab: small enough for short memory, large enough for four objects.
    pub const fn slab_pages(self) -> usize {
        if self.bytes() > 512 { 4 } else { 1 }
    }
}

/// A power of two is aligned to itself, since slabs start at a page.
const fn aligned_size(layout: Layout) -> usize {
    let larger = if layout.size() > layout.align() {
        layout.size()
    } else {
        layout.align()
    };
    larger.next_power_of_two()
}
