//! Which socket of which shard a handle means, in one word.

use core::sync::atomic::{AtomicU64, Ordering};

use inet::SocketId;

/// A socket of one shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The shard's number.
    pub(super) shard: u16,
    /// The socket there.
    pub(super) id: SocketId,
}

/// The shard's number stands above the index, which a stack's limit of sockets keeps below.
const SHARD_SHIFT: u32 = 24;
const SHARD_MASK: u64 = 0xff;

impl Place {
    fn to_bits(self) -> u64 {
        self.id.to_bits() | u64::from(self.shard) << SHARD_SHIFT
    }
}

/// A place that changes while others look. It is changed only under the lock of the shard
/// that it names, so who holds that lock and sees it may rely on it.
pub(super) struct AtomicPlace(AtomicU64);

/// A place as it was seen, not taken apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(u64);

impl Seen {
    /// The shard's number.
    #[inline]
    pub(super) fn shard(self) -> u16 {
        (self.0 >> SHARD_SHIFT & SHARD_MASK) as u16
    }

    /// The socket there.
    #[inline]
    pub(super) fn id(self) -> SocketId {
        SocketId::from_bits(self.0 & !(SHARD_MASK << SHARD_SHIFT))
    }
}

impl AtomicPlace {
    pub(super) fn new(place: Place) -> Self {
        Self(AtomicU64::new(place.to_bits()))
    }

    #[inline]
    pub(super) fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    pub(super) fn load(&self) -> Place {
        let seen = self.look();
        Place {
            shard: seen.shard(),
            id: seen.id(),
        }
    }

    pub(super) fn store(&self, place: Place) {
        self.0.store(place.to_bits(), Ordering::Release);
    }
}
