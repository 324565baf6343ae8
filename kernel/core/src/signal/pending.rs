//! Signals that have arrived and wait for delivery.
//!
//! A standard signal is pending or not; a second one is the same fact. Real-time signals
//! queue, each with its information, up to a limit (RLIMIT_SIGPENDING).

use alloc::collections::VecDeque;

use super::{Info, SignalSet};
use crate::error::{Error, Result};

/// Signals in the order of their arrival.
#[derive(Default)]
pub struct Pending {
    set: SignalSet,
    queue: VecDeque<Info>,
}

impl Pending {
    /// Which signals wait.
    pub fn set(&self) -> SignalSet {
        self.set
    }

    /// Adds a signal; `WouldBlock` if a real-time signal finds `limit` others.
    pub fn push(&mut self, info: Info, limit: usize) -> Result<()> {
        if !info.signal.is_realtime() && self.set.contains(info.signal) {
            return Ok(());
        }
        if info.signal.is_realtime() && self.queue.len() >= limit {
            return Err(Error::WouldBlock);
        }
        self.set = self.set.with(info.signal);
        self.queue.push_back(info);
        Ok(())
    }

    /// Takes the most urgent of the signals in `wanted`.
    pub fn take(&mut self, wanted: SignalSet) -> Option<Info> {
        let signal = (self.set & wanted).first()?;
        let index = self.queue.iter().position(|info| info.signal == signal)?;
        let info = self.queue.remove(index)?;
        if !self.queue.iter().any(|info| info.signal == signal) {
            self.set = self.set.without(SignalSet::of(&[signal]));
        }
        Some(info)
    }

    /// Forgets the signals in `unwanted`.
    pub fn discard(&mut self, unwanted: SignalSet) {
        if (self.set & unwanted).is_empty() {
            return;
        }
        self.set = self.set.without(unwanted);
        self.queue.retain(|info| !unwanted.contains(info.signal));
    }

    /// Adds one expiration to a timer's signal that still waits; false if none does.
    pub fn add_overrun(&mut self, timer: u32) -> bool {
        for info in &mut self.queue {
            if let super::Origin::Timer { id, overrun, .. } = &mut info.origin
                && *id == timer
            {
                *overrun = overrun.saturating_add(1);
                return true;
            }
        }
        false
    }
}
