//! A context: requests under way, and who waits for their ends.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;

use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use mm::io::Sink;
use mm::{FaultError, MemoryObject, Page, Sharing};
use sync::{Error, Mutex, Result, Wait, WaitQueue};
use vfs::file::OpenFile;
use vfs::file::transfer::{Tag, TransferEnd};

use super::Promise;
use super::ring::{EVENT_BYTES, Ring};
use crate::eventfd::EventFd;

/// What is locked together.
struct State {
    tail: u32,
    under_way: u32,
    /// Nothing more is handed in.
    is_ended: bool,
    waiters: u32,
    /// Ends that the least patient of them waits for.
    wanted: u32,
    /// The counters of requests that have one, by their numbers.
    signals: Vec<Option<Arc<OpenFile>>>,
}

/// A context of io_setup(2).
pub struct Context {
    ring: Ring,
    /// Linux's number of an error.
    number: fn(Error) -> i32,
    state: Spin<State>,
    enough: WaitQueue,
    /// One takes ends at a time.
    reading: Mutex<()>,
    me: Weak<Self>,
    _promise: Promise,
}

/// Places for ends of requests that are about to begin; what is not used is given back.
pub struct Reserved<'a> {
    context: &'a Context,
    left: u32,
}

impl Reserved<'_> {
    /// One of them is the request's that is about to begin; false if there is none.
    pub fn take(&mut self) -> bool {
        match self.left {
            0 => false,
            left => {
                self.left = left - 1;
                true
            }
        }
    }

    /// That request was refused.
    pub fn give_back(&mut self) {
        self.left += 1;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if self.left != 0 {
            self.context.retire(self.left);
        }
    }
}

impl Context {
    /// A context for so many requests, not 0.
    ///
    /// Errors: `WouldBlock` beyond the machine's limit, `OutOfMemory`.
    pub fn new(requests: u32, number: fn(Error) -> i32) -> Result<Arc<Self>> {
        let promise = Promise::new(requests)?;
        let ring = Ring::new(requests)?;
        fallible::room_for_arc::<Self>()?;
        Ok(Arc::new_cyclic(|me| Self {
            ring,
            number,
            state: Spin::new(State {
                tail: 0,
                under_way: 0,
                is_ended: false,
                waiters: 0,
                wanted: 0,
                signals: Vec::new(),
            }),
            enough: WaitQueue::new(),
            reading: Mutex::new(()),
            me: me.clone(),
            _promise: promise,
        }))
    }

    /// A counted reference.
    pub fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// Bytes of its ring.
    pub fn bytes(&self) -> u64 {
        self.size()
    }

    /// Places for at most `count` more requests.
    ///
    /// Errors: `WouldBlock` if there is none, `Invalid` if the context was ended.
    pub fn reserve(&self, count: u32) -> Result<Reserved<'_>> {
        let mut state = self.state.lock();
        if state.is_ended {
            return Err(Error::Invalid);
        }
        let used = state.under_way + self.ring.ready(state.tail);
        let left = count.min(self.ring.capacity().saturating_sub(used));
        if left == 0 {
            return Err(Error::WouldBlock);
        }
        state.under_way += left;
        Ok(Reserved {
            context: self,
            left,
        })
    }

    /// A number under which the counter hears of one end.
    ///
    /// Errors: `Invalid` if it is no eventfd, `OutOfMemory`.
    pub fn add_signal(&self, open: Arc<OpenFile>) -> Result<u64> {
        if !open.file.as_any().is::<EventFd>() {
            return Err(Error::Invalid);
        }
        let mut state = self.state.lock();
        let free = state.signals.iter().position(Option::is_none);
        let at = match free {
            Some(at) => at,
            None => {
                state.signals.make_room(1)?;
                state.signals.push(None);
                state.signals.len() - 1
            }
        };
        if let Some(place) = state.signals.get_mut(at) {
            *place = Some(open);
        }
        Ok(at as u64 + 1)
    }

    /// Requests that are not to begin after all.
    fn retire(&self, count: u32) {
        let is_last = {
            let mut state = self.state.lock();
            state.under_way -= count;
            state.under_way == 0 && state.is_ended
        };
        if is_last {
            self.enough.wake_all();
        }
    }

    /// Nothing more begins; waits until all that did has ended, as a device sees to it in a while.
    pub fn end(&self) -> Result<()> {
        self.state.lock().is_ended = true;
        self.enough.wake_all();
        let is_idle = || (self.state.lock().under_way == 0).then_some(());
        self.enough.wait(Wait::UNINTERRUPTIBLE, is_idle)
    }

    /// Takes at most `most` ends, and waits for `least`, into the program's memory; how many. What has been
    /// taken when the wait ends early is returned.
    ///
    /// Errors: those of `how` and of the memory, if none was taken.
    pub fn take(&self, least: u32, most: u32, to: &mut Sink<'_>, how: Wait) -> Result<u32> {
        let mut taken = 0;
        loop {
            match self.take_ready(most - taken, to) {
                Ok(count) => taken += count,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => return Ok(taken),
            }
            if taken >= least {
                return Ok(taken);
            }
            let more = (least - taken).min(self.ring.capacity());
            match self.wait(more, how) {
                Ok(()) => {}
                // What came in time is taken.
                Err(error) => match self.take_ready(most - taken, to).map(|count| taken + count) {
                    Ok(0) if error == Error::TimedOut => return Ok(0),
                    Ok(0) | Err(_) if taken == 0 => return Err(error),
                    Ok(count) => return Ok(count),
                    Err(_) => return Ok(taken),
                },
            }
        }
    }

    fn wait(&self, more: u32, how: Wait) -> Result<()> {
        {
            let mut state = self.state.lock();
            state.wanted = match state.waiters {
                0 => more,
                _ => state.wanted.min(more),
            };
            state.waiters += 1;
        }
        let is_over = || {
            let state = self.state.lock();
            (state.is_ended || self.ring.ready(state.tail) >= more).then_some(state.is_ended)
        };
        let waited = self.enough.wait(how, is_over);
        self.state.lock().waiters -= 1;
        match waited? {
            true => Err(Error::Invalid),
            false => Ok(()),
        }
    }

    fn take_ready(&self, most: u32, to: &mut Sink<'_>) -> Result<u32> {
        let _alone = self.reading.lock();
        let tail = self.state.lock().tail;
        let mut taken = 0;
        loop {
            let head = self.ring.head();
            let left = self.ring.ready(tail).min(most - taken);
            if left == 0 {
                return Ok(taken);
            }
            let (page, at, count) = self.ring.run(head, left).ok_or(Error::Invalid)?;
            let bytes = count as usize * EVENT_BYTES;
            let put = match to.put_page(page, at, bytes) {
                Ok(put) => put,
                Err(_) if taken != 0 => return Ok(taken),
                Err(error) => return Err(error),
            };
            let whole = (put / EVENT_BYTES) as u32;
            self.ring.set_head(self.ring.next(head, whole));
            taken += whole;
            if put < bytes {
                return Ok(taken);
            }
        }
    }

    /// A request ended in its own call.
    pub fn post(&self, tag: Tag, result: Result<usize>) {
        self.ended(tag, result);
    }
}

impl TransferEnd for Context {
    /// The tag: what the program calls it, where its control block is, the number of its counter or 0.
    fn ended(&self, tag: Tag, result: Result<usize>) {
        let Tag([data, block, signal]) = tag;
        let number = match result {
            Ok(bytes) => bytes as i64,
            Err(error) => i64::from((self.number)(error)),
        };
        let (is_enough, signal) = {
            let mut state = self.state.lock();
            state.tail = self.ring.put(state.tail, [data, block, number as u64, 0]);
            state.under_way -= 1;
            let place = (signal as usize).checked_sub(1);
            let signal = place.and_then(|at| state.signals.get_mut(at)?.take());
            let is_wanted = state.waiters != 0 && self.ring.ready(state.tail) >= state.wanted;
            (is_wanted || state.is_ended, signal)
        };
        if is_enough {
            self.enough.wake_all();
        }
        let signal = signal.as_ref();
        if let Some(counter) = signal.and_then(|open| open.file.as_any().downcast_ref::<EventFd>())
        {
            counter.signal();
        }
    }
}

impl MemoryObject for Context {
    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        self.ready_page(index, sharing).ok_or(FaultError::Bus)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        self.ring.pages.get(usize::try_from(index).ok()?).cloned()
    }

    fn size(&self) -> u64 {
        (self.ring.pages.len() * base::PAGE_BYTES) as u64
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn label(&self) -> &'static str {
        "/[aio]"
    }
}
