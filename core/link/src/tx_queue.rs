//! Frames that wait for room in a card's transmit queue.
//!
//! # Problem
//! A server that answers a thousand clients at once sends more frames than the card has descriptors,
//! and the host may be busy with something else just then. A frame that is dropped for that costs its
//! connection a retransmission timeout, two hundred milliseconds at least, though the card would have
//! had room a moment later.
//!
//! # Idea
//! What the card has no room for waits here, and goes on when the card is told of frames the next
//! time. While anything waits, new frames go behind it. The length is that of Linux' (`txqueuelen`):
//! whoever sends more than that for longer must notice. While packet memory is scarce nothing begins to wait,
//! for frames that do hold buffers which the card needs to receive.
//!
//! # Invariants
//! - Frames leave in the order in which they came.
//! - At most [`FRAMES_MAX`] wait. One that comes back goes nowhere: its sender counts it.
//! - A card whose room ran out was told of all that it has.
//! - A sender that finds no place has looked whether the card has room: it does not wait for anybody else's look.
//!
//! # Not here
//! When the card is looked at again (the owner's alarm). Frames of links over a card wait in its lane.

use alloc::collections::VecDeque;

use hal::FramePort;
use mbuf::TxFrame;

use crate::lane::FRAMES_BEFORE_WAIT;

/// Frames that wait at most.
pub const FRAMES_MAX: usize = 1000;
const _: () = assert!(FRAMES_MAX <= FRAMES_BEFORE_WAIT, "a lane can take all over");

/// See the module.
#[derive(Debug)]
pub struct TxQueue {
    frames: VecDeque<TxFrame>,
    frames_max: usize,
}

impl TxQueue {
    /// Of a card.
    pub const fn new() -> Self {
        Self {
            frames: VecDeque::new(),
            frames_max: FRAMES_MAX,
        }
    }

    /// Of a port whose frames wait elsewhere: all that it has no room for come back.
    pub const fn none() -> Self {
        Self {
            frames: VecDeque::new(),
            frames_max: 0,
        }
    }

    /// Sends a frame, or has it wait; it comes back where too many do, or memory `is_scarce`.
    #[inline]
    pub fn send<P: FramePort + ?Sized>(
        &mut self,
        port: &mut P,
        frame: TxFrame,
        is_scarce: fn() -> bool,
    ) -> Result<(), TxFrame> {
        if !self.frames.is_empty() {
            return self.send_behind(port, frame, is_scarce);
        }
        match port.transmit(frame) {
            Ok(()) => Ok(()),
            Err(back) => self.send_after_kick(port, back, is_scarce),
        }
    }

    #[cold]
    fn send_behind<P: FramePort + ?Sized>(
        &mut self,
        port: &mut P,
        frame: TxFrame,
        is_scarce: fn() -> bool,
    ) -> Result<(), TxFrame> {
        if self.frames.len() >= self.frames_max && self.flush_waiting(port) {
            port.kick();
        }
        self.push(frame, is_scarce)
    }

    /// A card sends nothing that it was not told of; one that does so at once has room now.
    #[cold]
    fn send_after_kick<P: FramePort + ?Sized>(
        &mut self,
        port: &mut P,
        frame: TxFrame,
        is_scarce: fn() -> bool,
    ) -> Result<(), TxFrame> {
        if self.frames_max == 0 {
            return Err(frame);
        }
        port.kick();
        let Err(back) = port.transmit(frame) else {
            return Ok(());
        };
        self.push(back, is_scarce)
    }

    fn push(&mut self, frame: TxFrame, is_scarce: fn() -> bool) -> Result<(), TxFrame> {
        let is_full = self.frames.len() >= self.frames_max;
        if is_full || is_scarce() || self.frames.try_reserve(1).is_err() {
            return Err(frame);
        }
        self.frames.push_back(frame);
        Ok(())
    }

    /// Gives the card what it has room for, and says whether that is anything: the card is to be
    /// told of it.
    #[inline]
    pub fn flush<P: FramePort + ?Sized>(&mut self, port: &mut P) -> bool {
        !self.frames.is_empty() && self.flush_waiting(port)
    }

    #[cold]
    fn flush_waiting<P: FramePort + ?Sized>(&mut self, port: &mut P) -> bool {
        let before = self.frames.len();
        while let Some(frame) = self.frames.pop_front() {
            if let Err(back) = port.transmit(frame) {
                self.frames.push_front(back);
                return self.frames.len() < before;
            }
        }
        // A burst is rare, and its room is given back.
        self.frames = VecDeque::new();
        true
    }

    /// Frames that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether none does.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Takes those that wait, in their order.
    pub fn take(&mut self) -> impl Iterator<Item = TxFrame> + use<> {
        core::mem::take(&mut self.frames).into_iter()
    }
}

impl Default for TxQueue {
    fn default() -> Self {
        Self::new()
    }
}
