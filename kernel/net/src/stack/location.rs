//! Which socket of which shard a handle means, in one word.

use core::sync::atomic::{AtomicU64, Ordering};

use inet::SocketId;

/// A socket of one shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    /// The shard's number.
    pub(crate) shard: u16,
    /// The socket there.
    pub(crate) id: SocketId,
}

/// The shard's number stands above the index, which a stack's limit of sockets keeps below.
const SHARD_SHIFT: u32 = 24;
const SHARD_MASK: u64 = 0xff;

impl Location {
    fn to_bits(self) -> u64 {
        self.id.to_bits() | u64::from(self.shard) << SHARD_SHIFT
    }
}

/// A location that changes while others look. It is changed only under the lock of the shard
/// that it names, so who holds that lock and sees it may rely on it.
pub(crate) struct AtomicLocation(AtomicU64);

/// A location as it was seen, not taken apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen(u64);

impl Seen {
    /// The shard's number.
    #[inline]
    pub(crate) fn shard(self) -> u16 {
        (self.0 >> SHARD_SHIFT & SHARD_MASK) as u16
    }

    /// The socket there.
    #[inline]
    pub(crate) fn id(self) -> SocketId {
        SocketId::from_bits(self.0 & !(SHARD_MASK << SHARD_SHIFT))
    }
}

impl AtomicLocation {
    pub(crate) fn new(location: Location) -> Self {
        Self(AtomicU64::new(location.to_bits()))
    }

    #[inline]
    pub(crate) fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn load(&self) -> Location {
        let seen = self.look();
        Location {
            shard: seen.shard(),
            id: seen.id(),
        }
    }

    pub(crate) fn store(&self, location: Location) {
        self.0.store(location.to_bits(), Ordering::Release);
    }
}
