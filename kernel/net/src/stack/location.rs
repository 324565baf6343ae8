//! Which socket of which shard a handle means, in one word.

use core::sync::atomic::{AtomicU64, Ordering};

use inet::SocketId;

/// A socket of one shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The shard's number.
    pub shard: u16,
    /// The socket there.
    pub id: SocketId,
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
pub struct AtomicLocation(AtomicU64);

/// A location as it was seen, not taken apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seen(u64);

impl Seen {
    /// The shard's number.
    #[inline]
    pub fn shard(self) -> u16 {
        (self.0 >> SHARD_SHIFT & SHARD_MASK) as u16
    }

    /// The socket there.
    #[inline]
    pub fn id(self) -> SocketId {
        SocketId::from_bits(self.0 & !(SHARD_MASK << SHARD_SHIFT))
    }
}

impl AtomicLocation {
    /// A socket that is there.
    pub fn new(location: Location) -> Self {
        Self(AtomicU64::new(location.to_bits()))
    }

    #[inline]
    /// A look, to be compared with another one later.
    pub fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Where it is.
    pub fn load(&self) -> Location {
        let seen = self.look();
        Location {
            shard: seen.shard(),
            id: seen.id(),
        }
    }

    /// It is elsewhere from now on.
    pub fn store(&self, location: Location) {
        self.0.store(location.to_bits(), Ordering::Release);
    }
}
