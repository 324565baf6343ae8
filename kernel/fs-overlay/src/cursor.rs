//! Where a list of several layers goes on, as one number that programs see (`d_off`).
//!
//! ```text
//! 63 62 61      56 55                       0
//!  0  1 |  layer  | names before it in there |     a lower layer
//!  0  0 | the upper layer's cursor, packed   |     the upper layer
//! ```
//!
//! The upper layer's cursors are counts and places up to 2^33, which stay as they are, or ext4's hashes, even 32 bits
//! above 32 others. Of those the lowest two bits are rounded up: of two names whose hashes differ in nothing else, the
//! second may be missed.

/// Set for lower layers.
const LOWER: u64 = 1 << 62;
const LAYER_SHIFT: u32 = 56;
/// Lower layers that a cursor can tell apart.
pub const LOWERS_MAX: usize = 64;
/// Cursors of the upper layer from here on are hashes.
const HASHES: u64 = 1 << 33;
/// Bits that a packed hash has of its lower half.
const MINOR_BITS: u32 = 30;

/// Where a list goes on.
#[derive(Clone, Copy)]
pub enum Cursor {
    /// In the upper layer, at its own cursor.
    Upper(u64),
    /// In a lower layer, behind as many names.
    Lower {
        /// Which one, from the top.
        index: usize,
        /// Names before it.
        before: u64,
    },
}

impl Cursor {
    /// What a program gave.
    pub fn from_number(number: u64) -> Self {
        if number & LOWER != 0 {
            let index = (number & !LOWER) >> LAYER_SHIFT;
            return Self::Lower {
                index: index as usize,
                before: number & ((1 << LAYER_SHIFT) - 1),
            };
        }
        let Some(packed) = number.checked_sub(HASHES) else {
            return Self::Upper(number);
        };
        let (major, minor) = (packed >> MINOR_BITS, packed & ((1 << MINOR_BITS) - 1));
        Self::Upper(major << 33 | minor << (32 - MINOR_BITS))
    }

    /// What programs see.
    pub fn number(self) -> u64 {
        match self {
            Self::Lower { index, before } => LOWER | (index as u64) << LAYER_SHIFT | before,
            Self::Upper(cursor) if cursor < HASHES => cursor,
            Self::Upper(cursor) => HASHES + pack(cursor),
        }
    }
}

/// A hash without the lowest bit of its upper half, which is 0, and without two of the lower one.
fn pack(cursor: u64) -> u64 {
    const ODD: u64 = 1 << 32;
    let up = cursor.saturating_add((1 << (32 - MINOR_BITS)) - 1);
    let major = up.saturating_add(ODD) >> 33;
    let minor = match up & ODD {
        0 => up as u32 >> (32 - MINOR_BITS),
        // It was carried into the upper half, and goes on behind all of that.
        _ => 0,
    };
    major << MINOR_BITS | u64::from(minor)
}
