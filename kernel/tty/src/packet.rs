//! Packet mode of a master (ioctl_tty(2), TIOCPKT): what happens to the terminal besides output.
//!
//! Each read of such a master begins with a byte: 0 and then output, or what happened since the
//! last one (its queues were emptied, its output halted or resumed) and nothing else. A
//! program that carries a terminal over a network does at once there what was done here.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use bitflags::bitflags;

bitflags! {
    /// What happened; the bits are Linux's own (TIOCPKT_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) struct PacketStatus: u8 {
        /// The input was thrown away.
        const FLUSHED_INPUT = 1;
        /// The output was thrown away.
        const FLUSHED_OUTPUT = 2;
        /// The output halts.
        const HALTED = 4;
        /// The output goes on.
        const RESUMED = 8;
        /// ^S and ^Q do not halt and resume it any more.
        const NO_KEYS = 16;
        /// They do from now on.
        const KEYS = 32;
    }
}

/// What ends when this happens.
const OPPOSITES: [(PacketStatus, PacketStatus); 2] = [
    (PacketStatus::HALTED, PacketStatus::RESUMED),
    (PacketStatus::NO_KEYS, PacketStatus::KEYS),
];

/// The packet mode of one master.
#[derive(Default)]
pub(super) struct PacketMode {
    is_on: AtomicBool,
    happened: AtomicU8,
}

impl PacketMode {
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }

    /// It begins with nothing to tell, or ends.
    pub(super) fn turn(&self, on: bool) {
        self.happened.store(0, Ordering::SeqCst);
        self.is_on.store(on, Ordering::SeqCst);
    }

    /// Keeps what happened for the next read; false if nobody wants to know.
    pub(super) fn note(&self, what: PacketStatus) -> bool {
        if !self.is_on() {
            return false;
        }
        let mut undone = PacketStatus::empty();
        for (one, other) in OPPOSITES {
            undone.set(other, what.contains(one));
            undone.set(one, what.contains(other));
        }
        self.happened.fetch_and(!undone.bits(), Ordering::SeqCst);
        self.happened.fetch_or(what.bits(), Ordering::SeqCst);
        true
    }

    /// Whether there is something to tell.
    pub(super) fn has_news(&self) -> bool {
        self.happened.load(Ordering::SeqCst) != 0
    }

    /// What happened since the last call; `None` if nothing.
    pub(super) fn take(&self) -> Option<u8> {
        Some(self.happened.swap(0, Ordering::SeqCst)).filter(|&bits| bits != 0)
    }
}
