//! When the kernel is told of frames.
//!
//! Each time costs a system call, so answers to several ready sockets leave together: a program that was just told of
//! `n` ready sockets has `n` sends that may be left lying, and the last of them takes all along, as does the next
//! question for what is ready. One that took a datagram while more wait comes back for them, so its answer may lie
//! as well. If the program does neither, somebody else must look after what lies there: while nobody
//! does ([`Host::watch`]) each send leaves at once.
//!
//! More than a part of the ring is never left lying: what does not fit there is lost.

use base::Instant;
use rt::FrameIo;

use crate::host::{Host, Link};

/// See the module.
pub(crate) struct Sending {
    /// Sends that may be left lying.
    deferrable: usize,
    is_watched: bool,
    /// With so many frames in flight they leave at once.
    frames_max: u32,
}

impl Sending {
    pub(crate) fn new(ring_entries: u32) -> Self {
        Self {
            deferrable: 0,
            is_watched: false,
            frames_max: ring_entries / 4,
        }
    }
}

impl<L: Link> Host<L> {
    /// The program was told of so many ready sockets.
    #[inline]
    pub fn expect_answers(&mut self, count: usize) {
        self.sending.deferrable = count;
    }

    /// The program took something, and `has_more` waits on the same socket.
    #[inline]
    pub(crate) fn expect_return(&mut self, has_more: bool) {
        if has_more {
            self.sending.deferrable = self.sending.deferrable.max(2);
        }
    }

    /// Somebody looks from time to time whether frames were left lying, or does not any more.
    pub fn watch(&mut self, is_watched: bool) {
        self.sending.is_watched = is_watched;
        if !is_watched {
            self.flush();
        }
    }

    /// The program has sent something.
    #[inline]
    pub(crate) fn after_sending(&mut self) {
        self.sending.deferrable = self.sending.deferrable.saturating_sub(1);
        let may_lie = self.sending.is_watched && self.sending.deferrable != 0;
        if !may_lie || self.is_crowded() {
            self.flush();
        }
    }

    /// Whether so much is under way that more could be lost.
    pub(crate) fn is_crowded(&mut self) -> bool {
        self.station.io().in_flight() >= self.sending.frames_max
    }

    /// Has the kernel send all that was staged.
    #[inline]
    pub fn flush(&mut self) {
        let io = self.station.io();
        if io.flush() && self.link.kick(io).is_err() {
            self.lose_link();
        }
        self.station.io().reclaim();
    }

    /// One turn of who looks from time to time; true if there is nothing that it could do before `now`, and a
    /// frame or the next deadline brings something to do.
    pub fn look_after(&mut self, now: Instant) -> bool {
        self.flush();
        let taken = self.look(now);
        self.flush();
        taken == 0 && self.station.io().in_flight() == 0
    }
}
