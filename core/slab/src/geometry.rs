//! How a slab is cut into objects.

/// Sizes of one kind of slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    object_bytes: u32,
    objects: u32,
    slab_bytes: u32,
    /// 2^32 through the object's size, rounded up: divides an offset by multiplying.
    reciprocal: u64,
}

impl Geometry {
    /// Slabs of `slab_bytes` (at most 128 KiB) whose last `reserved` bytes hold no objects.
    /// Objects have 16 bytes or more, and at least one fits.
    pub const fn new(object_bytes: usize, slab_bytes: usize, reserved: usize) -> Self {
        assert!(
            object_bytes >= 16 && object_bytes + reserved <= slab_bytes,
            "see the function's text"
        );
        assert!(
            slab_bytes <= 128 << 10,
            "the reciprocal is exact up to there"
        );
        Self {
            object_bytes: object_bytes as u32,
            objects: ((slab_bytes - reserved) / object_bytes) as u32,
            slab_bytes: slab_bytes as u32,
            reciprocal: (1_u64 << 32).div_ceil(object_bytes as u64),
        }
    }

    /// Bytes from one object to the next.
    pub const fn object_bytes(&self) -> usize {
        self.object_bytes as usize
    }

    /// Objects in a slab.
    pub const fn objects(&self) -> usize {
        self.objects as usize
    }

    /// Bytes of a slab.
    pub const fn slab_bytes(&self) -> usize {
        self.slab_bytes as usize
    }

    /// The number of the object that starts at `offset` bytes into its slab, or `None` if
    /// none starts there.
    pub const fn index_of(&self, offset: usize) -> Option<usize> {
        if offset >= self.slab_bytes as usize {
            return None;
        }
        let index = ((offset as u64 * self.reciprocal) >> 32) as usize;
        if index * self.object_bytes as usize == offset && index < self.objects as usize {
            Some(index)
        } else {
            None
        }
    }
}
