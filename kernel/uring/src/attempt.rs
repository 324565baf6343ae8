//! Operations on files: tried, and tried again when the file says that something changed.

use alloc::sync::Arc;
use core::cell::Cell;

use mm::io::UserRange;
use sync::poll::{Events, Sharing};
use sync::{Error, Result};
use task::Thread;
use uring::{Buffers, CqeFlags, Direction, Operation, SqeFlags};
use vfs::file::OpenFile;

use crate::abi::{Attempt, Failure};
use crate::no_wait::without_waiting;
use crate::request::Request;
use crate::ring::Ring;

/// Completions that a request posts before others have their turn.
const SHOTS_MAX: usize = 32;
/// MSG_DONTWAIT, MSG_WAITALL.
const DONT_WAIT: u32 = 0x40;
const WAIT_ALL: u32 = 0x100;
/// RWF_NOWAIT.
const NO_WAIT: u32 = 8;

/// What came of a try.
enum Tried {
    /// It would have to wait.
    Waits,
    /// It moved some of its bytes, and shall move all.
    Partly,
    /// It is over, or with this shot.
    Done(core::result::Result<i32, Failure>, CqeFlags),
    /// It is over, however many shots it may have.
    Ended(i32, CqeFlags),
}

impl Request {
    /// Tries until it is done or has to wait.
    pub fn attempt(&self, thread: &Thread) {
        let open = match self.operation.needs_file() {
            true => match self.resolve(thread) {
                Ok(open) => Some(open),
                Err(error) => return self.fail(error),
            },
            false => None,
        };
        for _ in 0..SHOTS_MAX {
            match self.attempt_once(thread, open.as_ref()) {
                Tried::Partly => {}
                Tried::Waits => match &open {
                    Some(open) if self.observe(open, self.awaited()) => {}
                    _ => return,
                },
                Tried::Ended(result, flags) => return self.finish(Ok(result), flags),
                Tried::Done(outcome, flags) => {
                    if !self.has_more_shots(&outcome, flags) {
                        return self.finish(outcome, flags);
                    }
                }
            }
        }
        // Whatever it does, it does not keep others from theirs.
        self.wake();
    }

    /// Whether it goes on after this result, which is posted.
    fn has_more_shots(
        &self,
        outcome: &core::result::Result<i32, Failure>,
        flags: CqeFlags,
    ) -> bool {
        let is_stream = matches!(self.operation, Operation::Message { .. });
        match outcome {
            Ok(0) if is_stream => false,
            Ok(result) => self.operation.is_multishot() && self.post_more(*result, flags),
            Err(_) => false,
        }
    }

    fn attempt_once(&self, thread: &Thread, open: Option<&Arc<OpenFile>>) -> Tried {
        let (done, is_again) = {
            let mut progress = self.progress.lock();
            let is_again = core::mem::replace(&mut progress.is_tried, true);
            (progress.done, is_again)
        };
        // What is chosen from the program's buffers stays locked until it is used or not.
        let mut registered = None;
        let mut lent = None;
        let buffer = match (self.operation.buffer_group(), self.fixed()) {
            (Some((group, len)), _) => {
                let locked = registered.insert(self.ring.registered.lock());
                match locked.next_buffer(group, len) {
                    Ok((range, number)) => {
                        lent = Some((group, number));
                        Some(range)
                    }
                    Err(error) => return failed(error),
                }
            }
            (_, Some((index, range))) => match self.ring.registered.lock().within(index, range) {
                Ok(range) => Some(range),
                Err(error) => return failed(error),
            },
            _ => None,
        };
        let attempt = Attempt {
            thread,
            operation: &self.operation,
            fd: self.sqe.fd,
            open,
            buffer,
            done,
            is_again,
            has_ended: Cell::new(false),
        };
        let can_observe = open.is_some_and(|open| open.file.pollee().is_some());
        let outcome = match can_observe {
            true => without_waiting(|| self.ring.abi.attempt(&attempt)),
            false => self.ring.abi.attempt(&attempt),
        };
        let mut flags = CqeFlags::empty();
        if let (Ok(1..), Some((group, number)), Some(locked)) = (&outcome, lent, &mut registered) {
            locked.use_buffer(group);
            flags = CqeFlags::buffer(number);
        }
        drop(registered);
        match outcome {
            Err(Error::WouldBlock | Error::InProgress) if can_observe && self.may_wait() => {
                Tried::Waits
            }
            Ok(moved) if self.is_short(done, moved) => {
                self.progress.lock().done += moved as usize;
                Tried::Partly
            }
            Ok(result) if attempt.has_ended.get() => Tried::Ended(result, flags),
            Ok(moved) => Tried::Done(Ok(moved + done as i32), flags),
            Err(_) if done != 0 => Tried::Done(Ok(done as i32), flags),
            Err(error) => Tried::Done(Err(Failure::Error(error)), flags),
        }
    }

    /// Whether it moved some bytes where it shall move all.
    fn is_short(&self, done: usize, moved: i32) -> bool {
        match self.operation {
            Operation::Message {
                buffers: Buffers::One { len, .. },
                flags,
                ..
            } => flags & WAIT_ALL != 0 && moved > 0 && done + (moved as usize) < len as usize,
            _ => false,
        }
    }

    /// Whether the program lets it wait.
    fn may_wait(&self) -> bool {
        match self.operation {
            Operation::Transfer { flags, .. } => flags & NO_WAIT == 0,
            Operation::Message { flags, .. } | Operation::Header { flags, .. } => {
                flags & DONT_WAIT == 0
            }
            _ => true,
        }
    }

    /// What its file has to become for another try.
    fn awaited(&self) -> Events {
        let direction = match self.operation {
            Operation::Transfer { direction, .. }
            | Operation::Message { direction, .. }
            | Operation::Header { direction, .. } => direction,
            Operation::Connect { .. } => Direction::Out,
            _ => Direction::In,
        };
        match direction {
            Direction::In => Events::READABLE | Events::PRI | Events::RDHUP | Events::ALWAYS,
            Direction::Out => Events::WRITABLE | Events::ALWAYS,
        }
    }

    fn fixed(&self) -> Option<(u16, UserRange)> {
        match self.operation {
            Operation::Transfer {
                buffers:
                    Buffers::Fixed {
                        address,
                        len,
                        index,
                    },
                ..
            } => Some((
                index,
                UserRange {
                    start: base::VirtAddr(address),
                    len: len as usize,
                },
            )),
            _ => None,
        }
    }

    /// The file that its entry names, found once: when its turn comes.
    pub fn resolve(&self, thread: &Thread) -> Result<Arc<OpenFile>> {
        if let Some(open) = &self.progress.lock().open {
            return Ok(open.clone());
        }
        let is_fixed = self.has(SqeFlags::FIXED_FILE);
        let open = self.ring.file(thread, self.sqe.fd, is_fixed)?;
        self.progress.lock().open = Some(open.clone());
        Ok(open)
    }

    /// Hears of the file's changes from now on; false if it did before.
    pub fn observe(&self, open: &OpenFile, interest: Events) -> bool {
        let is_new = {
            let mut progress = self.progress.lock();
            !core::mem::replace(&mut progress.is_observing, true)
        };
        if is_new && let Some(pollee) = open.file.pollee() {
            pollee.observe(self.observer(), interest, Sharing::Shared);
        }
        is_new
    }

    /// Hears of them no longer.
    pub fn stop_observing(&self) {
        let open = {
            let mut progress = self.progress.lock();
            match core::mem::take(&mut progress.is_observing) {
                true => progress.open.clone(),
                false => None,
            }
        };
        if let Some(pollee) = open.as_ref().and_then(|open| open.file.pollee()) {
            pollee.forget(&self.observer());
        }
    }
}

impl Ring {
    /// The file of a descriptor, or of an index among the ring's.
    pub fn file(&self, thread: &Thread, fd: i32, is_fixed: bool) -> Result<Arc<OpenFile>> {
        match is_fixed {
            true => self.registered.lock().file(fd),
            false => thread.files.with(|files| files.get(fd as u32)),
        }
    }
}

fn failed(error: Error) -> Tried {
    Tried::Done(Err(Failure::Error(error)), CqeFlags::empty())
}
