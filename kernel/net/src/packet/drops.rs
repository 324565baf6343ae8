//! Why listeners did not get packets that they wanted.

use mach::sync::{Lazy, Spin};

probes::counters! {
    /// Why a packet is not in a ring or queue, or was shown to nobody.
    pub enum DropReason => Drops {
        /// The program has not given back the ring's next block.
        NoFreeBlock = "no_free_block",
        /// The program has not given back the ring's next slot.
        NoFreeSlot = "no_free_slot",
        /// Headers are longer than a ring's offsets can say.
        HeadersTooLong = "headers_too_long",
        /// The queue holds as many bytes as the program allows.
        QueueFull = "queue_full",
        /// There is no memory for a copy.
        NoMemory = "no_memory",
        /// The frame ends before its link header does.
        Runt = "runt",
    }
}

/// Of all sniffers; it is told with the machine's drops.
static DROPS: Lazy<Spin<Drops>> = Lazy::new(|| Spin::new(Drops::default()));

impl From<capture::DropReason> for DropReason {
    fn from(reason: capture::DropReason) -> Self {
        match reason {
            capture::DropReason::NoFreeBlock => Self::NoFreeBlock,
            capture::DropReason::NoFreeSlot => Self::NoFreeSlot,
            capture::DropReason::HeadersTooLong => Self::HeadersTooLong,
        }
    }
}

pub(crate) fn count(reason: DropReason) {
    DROPS.lock().count(reason);
}

/// What was dropped so far, of all sockets.
pub fn drops() -> Drops {
    DROPS.lock().clone()
}
