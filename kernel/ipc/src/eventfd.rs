//! eventfd: a counter that threads wait for.

use alloc::string::String;
use alloc::sync::Arc;

use mach::sync::Spin;
use mm::io::{Sink, Source};
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};

use vfs::file::{File, OpenFile};

/// The counter stays below this (eventfd(2)).
const LIMIT: u64 = u64::MAX;

/// What a read takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All of it.
    Counter,
    /// One (EFD_SEMAPHORE).
    Semaphore,
}

/// The object of eventfd(2).
pub struct EventFd {
    count: Spin<u64>,
    mode: Mode,
    pollee: Pollee,
}

impl EventFd {
    /// A counter that starts at `count`.
    pub fn new(count: u64, mode: Mode) -> Arc<Self> {
        Arc::new(Self {
            count: Spin::new(count),
            mode,
            pollee: Pollee::new(),
        })
    }

    /// Adds 1 for who cannot wait: at the limit nothing is added, and readers are told all the same.
    pub fn signal(&self) {
        _ = self.try_add(1);
        self.pollee.notify(Events::READABLE);
    }

    fn try_take(&self) -> Option<u64> {
        let mut count = self.count.lock();
        let taken = match self.mode {
            Mode::Counter => *count,
            Mode::Semaphore => (*count).min(1),
        };
        *count -= taken;
        (taken != 0).then_some(taken)
    }

    fn try_add(&self, amount: u64) -> Option<()> {
        let mut count = self.count.lock();
        let sum = count.checked_add(amount).filter(|sum| *sum < LIMIT)?;
        *count = sum;
        Some(())
    }

    /// Tries, and unless told otherwise waits until it succeeds.
    fn until<T>(&self, open: &OpenFile, attempt: impl FnMut() -> Option<T>) -> Result<T> {
        let mut attempt = attempt;
        if open.is_nonblocking() {
            return attempt().ok_or(Error::WouldBlock);
        }
        self.pollee.queue.wait(Wait::INTERRUPTIBLE, attempt)
    }
}

impl File for EventFd {
    fn ignores_seeks(&self) -> bool {
        true
    }

    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        if to.remaining() < size_of::<u64>() {
            return Err(Error::Invalid);
        }
        let taken = self.until(open, || self.try_take())?;
        self.pollee.notify(Events::WRITABLE);
        to.put_whole(&taken.to_ne_bytes())
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let mut bytes = [0; size_of::<u64>()];
        if from.remaining() < bytes.len() {
            return Err(Error::Invalid);
        }
        from.take_whole(&mut bytes)?;
        let amount = u64::from_ne_bytes(bytes);
        if amount == LIMIT {
            return Err(Error::Invalid);
        }
        self.until(open, || self.try_add(amount))?;
        self.pollee.notify(Events::READABLE);
        Ok(bytes.len())
    }

    fn poll(&self) -> Events {
        let count = *self.count.lock();
        let mut events = Events::empty();
        if count != 0 {
            events |= Events::IN;
        }
        if count < LIMIT - 1 {
            events |= Events::OUT;
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn label(&self) -> String {
        String::from("anon_inode:[eventfd]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
