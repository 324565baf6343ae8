//! Frame chains: what moves through the link layer in one call.
//!
//! A chain is a run of frames in their order of arrival. Every step that sorts frames
//! (by client, by flow, by CPU) turns one chain into one sub-chain for each target and
//! hands each on in one call, so that locks, wakeups and doorbells are paid per chain.

use alloc::collections::VecDeque;

use mbuf::{Chain, RxFrame, TxFrame};

/// A frame of either direction.
pub trait Frame {
    /// Its bytes, from the Ethernet header on.
    fn bytes(&self) -> &Chain;
}

impl Frame for RxFrame {
    fn bytes(&self) -> &Chain {
        &self.chain
    }
}

impl Frame for TxFrame {
    fn bytes(&self) -> &Chain {
        &self.chain
    }
}

/// Frames in order. Who lets one grow bounds it.
#[derive(Debug)]
pub struct FrameChain<F> {
    frames: VecDeque<F>,
    bytes: u64,
}

/// Received frames.
pub type RxChain = FrameChain<RxFrame>;
/// Frames to send.
pub type TxChain = FrameChain<TxFrame>;

impl<F> Default for FrameChain<F> {
    fn default() -> Self {
        Self {
            frames: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<F: Frame> FrameChain<F> {
    /// No frames.
    pub fn new() -> Self {
        Self::default()
    }

    /// Frames in the chain.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a frame at the end.
    pub fn push(&mut self, frame: F) {
        self.bytes += frame.bytes().len() as u64;
        self.frames.push_back(frame);
    }

    /// Puts a frame back that [`pop`](Self::pop) gave.
    pub fn unpop(&mut self, frame: F) {
        self.bytes += frame.bytes().len() as u64;
        self.frames.push_front(frame);
    }

    /// Takes the first frame.
    pub fn pop(&mut self) -> Option<F> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.bytes().len() as u64;
        Some(frame)
    }

    /// Moves all frames of `other` behind these.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return core::mem::swap(self, other);
        }
        self.bytes += core::mem::take(&mut other.bytes);
        self.frames.append(&mut other.frames);
    }

    /// Drops all frames; their room is kept.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.bytes = 0;
    }

    /// The frames in order.
    pub fn iter(&self) -> impl Iterator<Item = &F> {
        self.frames.iter()
    }

    /// Takes all frames out in order; the room is kept.
    pub fn drain(&mut self) -> impl Iterator<Item = F> + '_ {
        self.bytes = 0;
        self.frames.drain(..)
    }
}

impl<F: Frame> FromIterator<F> for FrameChain<F> {
    fn from_iter<T: IntoIterator<Item = F>>(frames: T) -> Self {
        let mut chain = Self::new();
        frames.into_iter().for_each(|frame| chain.push(frame));
        chain
    }
}
