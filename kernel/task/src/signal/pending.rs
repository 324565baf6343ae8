//! Signals that have arrived and wait for delivery.
//!
//! A standard signal is pending or not; a second one is the same fact. Real-time signals
//! queue, each with its information, as many as their receiver's user may have in all its
//! processes (RLIMIT_SIGPENDING). A timer's signal was paid for when the timer was made.
//!
//! What must not be lost waits without its information where there is no memory for it, as a
//! signal of kill(2) from nobody; so Linux does, too.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use cred::{Account, Charge, Counted};
use mach::mem::fallible::TryGrow;
use sync::{Error, Result};

use super::{Info, Origin, Signal, SignalSet, code};

/// A queue that had more is given back once it is empty.
const KEPT_MAX: usize = 32;

struct Waiting {
    info: Info,
    _charge: Option<Charge>,
}

/// Signals in the order of their arrival.
#[derive(Default)]
pub struct Pending {
    set: SignalSet,
    /// Those that wait without their information.
    bare: SignalSet,
    queue: VecDeque<Waiting>,
}

/// Who pays for a signal's information, and how many may wait.
pub struct Payer {
    /// The receiver's user.
    pub account: Arc<Account>,
    /// The receiver's limit.
    pub limit: u64,
}

impl Pending {
    /// Which signals wait.
    pub fn set(&self) -> SignalSet {
        self.set
    }

    /// Adds a signal; `WouldBlock` if one of sigqueue(3) finds the limit reached or no memory.
    pub fn push(&mut self, info: Info, payer: Option<&Payer>) -> Result<()> {
        if !info.signal.is_realtime() && self.set.contains(info.signal) {
            return Ok(());
        }
        match self
            .queue
            .make_room(1)
            .ok()
            .and_then(|()| pay(&info, payer))
        {
            Some(charge) => self.queue.push_back(Waiting {
                info,
                _charge: charge,
            }),
            None if may_be_refused(&info) => return Err(Error::WouldBlock),
            None => self.bare = self.bare.with(info.signal),
        }
        self.set = self.set.with(info.signal);
        Ok(())
    }

    /// Takes the most urgent of the signals in `wanted`.
    pub fn take(&mut self, wanted: SignalSet) -> Option<Info> {
        let signal = (self.set & wanted).first()?;
        let only = SignalSet::of(&[signal]);
        let found = |waiting: &Waiting| waiting.info.signal == signal;
        let index = self.queue.iter().position(found);
        let info = match index.and_then(|index| self.queue.remove(index)) {
            Some(waiting) => waiting.info,
            None => {
                self.bare = self.bare.without(only);
                nameless(signal)
            }
        };
        if !self.queue.iter().any(found) {
            self.set = self.set.without(only) | self.bare;
        }
        self.shrink();
        Some(info)
    }

    /// Forgets the signals in `unwanted`.
    pub fn discard(&mut self, unwanted: SignalSet) {
        if (self.set & unwanted).is_empty() {
            return;
        }
        self.set = self.set.without(unwanted);
        self.bare = self.bare.without(unwanted);
        self.queue
            .retain(|waiting| !unwanted.contains(waiting.info.signal));
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.queue.is_empty() && self.queue.capacity() > KEPT_MAX {
            self.queue = VecDeque::new();
        }
    }

    /// Adds one expiration to a timer's signal that still waits; false if none does.
    pub fn add_overrun(&mut self, timer: u32) -> bool {
        for waiting in &mut self.queue {
            if let Origin::Timer { id, overrun, .. } = &mut waiting.info.origin
                && *id == timer
            {
                *overrun = overrun.saturating_add(1);
                return true;
            }
        }
        false
    }
}

/// The charge for the signal's information, if it costs anything; `None` beyond the limit.
#[expect(
    clippy::option_option,
    reason = "the inner one is what the queue keeps"
)]
fn pay(info: &Info, payer: Option<&Payer>) -> Option<Option<Charge>> {
    if !costs(info) {
        return Some(None);
    }
    let payer = payer?;
    let charge = payer.account.charge(Counted::Signals, payer.limit);
    charge.ok().map(Some)
}

/// Whether each one of the signal costs: a queue holds one of each standard signal, and one
/// of each timer.
pub(super) fn costs(info: &Info) -> bool {
    info.signal.is_realtime() && !matches!(info.origin, Origin::Timer { .. })
}

/// kill(2) and the kernel are not refused, sigqueue(3) is.
fn may_be_refused(info: &Info) -> bool {
    costs(info) && info.code != code::USER
}

/// What a signal tells whose information found no memory.
pub(super) fn nameless(signal: Signal) -> Info {
    Info {
        signal,
        code: code::USER,
        origin: Origin::Process { pid: 0, uid: 0 },
    }
}
