//! When the card is told of frames: once for a batch of them.
//!
//! The problem: to tell the card is an exit to the hypervisor, and so is an alarm that makes up
//! for not telling it. A server that answers fifty clients in turn wants one doorbell for all
//! answers; one that answers a single client wants it at once, and no alarm.
//!
//! The idea: a batch is what is sent between two rests of the program, and the next batch will
//! have as many frames as the last one. With the last of these the card is told at once. Where
//! the guess is too low, the rest of the frames is announced at the next rest; where it is too
//! high, all of them are, or at the alarm that the sender sets.
//!
//! The counts change under the lock of whoever gives frames to the card. They are atomic for
//! those who only look, and a guess that races costs a doorbell.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Frames on their way into one queue of the card.
#[derive(Debug, Default)]
pub struct TxBatch {
    /// Since the card was last told.
    unannounced: AtomicU32,
    /// Since the last rest.
    sent: AtomicU32,
    /// Between the two rests before, if there were any.
    expected: AtomicU32,
}

impl TxBatch {
    /// Of a queue that was given nothing yet.
    pub const fn new() -> Self {
        Self {
            unannounced: AtomicU32::new(0),
            sent: AtomicU32::new(0),
            expected: AtomicU32::new(0),
        }
    }

    /// The card was given a frame.
    #[inline]
    pub fn note_sent(&self) {
        self.unannounced.store(self.unannounced() + 1, Relaxed);
        let sent = self.sent.load(Relaxed);
        self.sent.store(sent.saturating_add(1), Relaxed);
    }

    /// Frames that the card was given and not told of.
    #[inline]
    pub fn unannounced(&self) -> u32 {
        self.unannounced.load(Relaxed)
    }

    /// Whether the last frame was the last of the batch, as far as one can guess.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.sent.load(Relaxed) == self.expected.load(Relaxed)
    }

    /// Whether the batch is likely to be a single frame.
    #[inline]
    pub fn expects_one(&self) -> bool {
        self.expected.load(Relaxed) == 1
    }

    /// The card is told now; returns whether there is something to tell.
    #[inline]
    pub fn announce(&self) -> bool {
        let has_news = self.unannounced() != 0;
        if has_news {
            self.unannounced.store(0, Relaxed);
        }
        has_news
    }

    /// The program rests: the batch is over.
    #[inline]
    pub fn rest(&self) {
        let sent = self.sent.load(Relaxed);
        if sent != 0 {
            self.expected.store(sent, Relaxed);
            self.sent.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(batch: &TxBatch, frames: u32) -> u32 {
        let tell = |_: &u32| {
            batch.note_sent();
            batch.is_complete() && batch.announce()
        };
        let told = (0..frames).filter(tell).count() as u32;
        let at_rest = u32::from(batch.announce());
        batch.rest();
        told + at_rest
    }

    #[test]
    fn every_batch_costs_one_doorbell_once_its_length_is_known() {
        let batch = TxBatch::new();
        for frames in [1, 1, 1, 50, 50, 50] {
            let expected_before = batch.expected.load(Relaxed);
            let told = send(&batch, frames);
            let is_longer = expected_before != 0 && frames > expected_before;
            assert_eq!(told, 1 + u32::from(is_longer), "{frames} frames");
        }
    }

    #[test]
    fn a_single_answer_is_announced_at_once_from_the_second_on() {
        let batch = TxBatch::new();
        send(&batch, 1);
        batch.note_sent();
        assert!(batch.is_complete());
    }

    #[test]
    fn a_rest_without_frames_forgets_nothing() {
        let batch = TxBatch::new();
        send(&batch, 1);
        batch.rest();
        batch.note_sent();
        assert!(batch.is_complete());
    }
}
