//! What became of the frames of a direction.

use std::fmt;

/// Why a frame was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// By chance, as the weather wants it.
    Loss,
    /// Too many bytes wait for their turn.
    QueueFull,
    /// Too many frames are under way.
    TooManyFlights,
    /// Longer than any frame that QEMU sends.
    TooLong,
    /// Nobody listens at the other end.
    NoReceiver,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "lost by chance",
            Self::QueueFull => "the queue is full",
            Self::TooManyFlights => "too many frames under way",
            Self::TooLong => "the frame is too long",
            Self::NoReceiver => "nobody listens",
        })
    }
}

/// Counts of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames that came in.
    pub received: u64,
    /// Frames handed over, second copies included.
    pub delivered: u64,
    /// Second copies made.
    pub doubled: u64,
    /// Copies sent on a detour.
    pub detours: u64,
    /// Copies with a wrong bit that were handed over.
    pub damaged: u64,
    /// Copies under way.
    pub flying: u64,
    /// Dropped: by chance.
    pub lost: u64,
    /// Dropped: no room in the queue.
    pub queue_full: u64,
    /// Dropped: too many under way.
    pub too_many_flights: u64,
    /// Dropped: too long.
    pub too_long: u64,
    /// Dropped: nobody listened.
    pub no_receiver: u64,
}

impl Counts {
    /// Counts a frame or a copy that goes no further.
    pub fn drop(&mut self, reason: DropReason) {
        *match reason {
            DropReason::Loss => &mut self.lost,
            DropReason::QueueFull => &mut self.queue_full,
            DropReason::TooManyFlights => &mut self.too_many_flights,
            DropReason::TooLong => &mut self.too_long,
            DropReason::NoReceiver => &mut self.no_receiver,
        } += 1;
    }

    /// Frames and copies dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.lost + self.queue_full + self.too_many_flights + self.too_long + self.no_receiver
    }

    /// Whether every frame that came in, and every second copy, is accounted for.
    pub fn is_complete(&self) -> bool {
        self.received + self.doubled == self.delivered + self.flying + self.dropped()
    }
}
