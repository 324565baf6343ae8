//! A card with several pairs of queues, taken apart.
//!
//! # Problem
//! One object for a card means one lock for all CPUs, on the way of every frame.
//!
//! # Idea
//! Bringing a card up yields its parts ([`NicParts`]): a [`QueuePair`] for each CPU that is
//! to have one, and one [`NicControl`]. Each part has one owner and no lock; parts share
//! only registers in which every bit belongs to one of them.
//!
//! # Interrupts
//! Each part has one message (MSI-X entry) of its own: `vector()` says which; nothing
//! else raises it. The handler wakes the owner and does not touch the card. A pair is
//! silent until [`FramePort::arm`]; the owner polls it, arms it, and looks again if `arm`
//! says that frames wait. One message comes for one `arm`; a card that cannot see to
//! that by itself may send more until the owner says [`FramePort::disarm`].
//!
//! # Ending
//! Dropping a part stops its transfers, then frees its memory; a queue that does not stop
//! keeps what it knows. The last part that goes resets the card. The order is free: a
//! pair whose control is gone goes on as it was set.
//!
//! # Not here
//! Which CPU owns a pair, and the addresses and hash that lead a frame to it
//! ([`NicControl`]).

use alloc::vec::Vec;

use mbuf::RxFrame;

use crate::{FramePort, NicControl};

/// A card that runs, in parts.
pub struct NicParts<P: QueuePair, C: NicControl> {
    /// Pair `n` is ring `n` of the card's [`NicShape`](crate::NicShape).
    pub pairs: Vec<P>,
    /// Everything that pairs share.
    pub control: C,
}

/// What a card says of a received frame, beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxNotes {
    /// The Toeplitz hash that chose the ring, if one did.
    pub hash: Option<u32>,
}

/// One pair of queues of a card that has several.
pub trait QueuePair: FramePort {
    /// The MSI-X entry that tells of frames to receive.
    fn vector(&self) -> u16;

    /// As [`FramePort::receive`], with what the card knows of each frame.
    fn receive_noted(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame, RxNotes)) -> usize;
}
