//! Operations on sockets: tried, and tried again when something has changed; as `kernel/uring/src/attempt.rs`.

use core::cell::Cell;

use ::uring::{Buffers, CqeFlags, Operation};
use base::SharedMemory;

use super::Ring;
use super::request::Slot;
use super::world::{Target, Task, World};
use crate::errno::{Errno, Result};

/// Completions that a request posts before others have their turn.
const SHOTS_MAX: usize = 32;
const WAIT_ALL: u32 = libc::MSG_WAITALL as u32;
const DONT_WAIT: u32 = libc::MSG_DONTWAIT as u32;
const NO_WAIT: u32 = libc::RWF_NOWAIT as u32;

/// What came of a try.
enum Tried {
    /// It would have to wait.
    Waits,
    /// It moved some of its bytes, and shall move all.
    Partly,
    /// It is over, or with this shot.
    Done(Result<i32>, CqeFlags),
    /// It is over, however many shots it may have.
    Ended(i32, CqeFlags),
}

impl<M: SharedMemory> Ring<M> {
    /// Tries until it is done or has to wait.
    pub(super) fn attempt(&mut self, world: &mut impl World, slot: Slot) {
        let Some(target) = self.requests.get(slot).and_then(|request| request.target) else {
            return;
        };
        for _ in 0..SHOTS_MAX {
            match self.attempt_once(world, slot, target) {
                Tried::Partly => {}
                Tried::Waits => match target {
                    Target::Own(number) if self.watched.is_watched(number) => {
                        return self.watched.push(number, slot, &mut self.requests);
                    }
                    // Something may have happened before it was watched: it is tried once more.
                    Target::Own(number) => {
                        if let Err(error) = self.watch(world, number) {
                            return self.resolve_again(world, slot, error);
                        }
                    }
                    _ => return self.forward_wait(world, slot, target),
                },
                Tried::Done(Err(Errno::MOVED), _) => {
                    return self.resolve_again(world, slot, Errno::NETWORK_DOWN);
                }
                Tried::Ended(result, flags) => {
                    return self.finish_flagged(world, slot, Ok(result), flags);
                }
                Tried::Done(outcome, flags) => {
                    if !self.has_more_shots(slot, outcome, flags) {
                        return self.finish_flagged(world, slot, outcome, flags);
                    }
                }
            }
        }
        // Whatever it does, it does not keep others from theirs.
        self.wake(slot);
    }

    /// The socket has become the kernel's, because its peer is, or there is an error.
    fn resolve_again(&mut self, world: &mut impl World, slot: Slot, error: Errno) {
        let Some(request) = self.requests.get_mut(slot) else {
            return;
        };
        if let Some(Target::Own(number)) = request.target
            && let Ok(target @ Target::Kernel(_)) = world.target(number)
        {
            request.target = Some(target);
            return self.forward(world, slot, target);
        }
        self.finish(world, slot, Err(error));
    }

    /// Whether it goes on after this result, which is posted.
    fn has_more_shots(&mut self, slot: Slot, outcome: Result<i32>, flags: CqeFlags) -> bool {
        let Some(request) = self.requests.get(slot) else {
            return false;
        };
        let is_stream = matches!(request.operation, Operation::Message { .. });
        let is_multishot = request.operation.is_multishot();
        match outcome {
            Ok(0) if is_stream => false,
            Ok(result) => is_multishot && self.post_more(slot, result, flags),
            Err(_) => false,
        }
    }

    fn attempt_once(&mut self, world: &mut impl World, slot: Slot, target: Target) -> Tried {
        let Some(request) = self.requests.get_mut(slot) else {
            return failed(Errno::INVALID);
        };
        let is_again = core::mem::replace(&mut request.is_tried, true);
        let (operation, done) = (request.operation, request.done);
        let mut lent = None;
        let buffer = match (operation.buffer_group(), fixed(&operation)) {
            (Some((group, len)), _) => match self.registered.next_buffer(world, group, len) {
                Ok((address, len, number)) => {
                    lent = Some((group, number));
                    Some((address, len))
                }
                Err(error) => return failed(error),
            },
            (_, Some((index, address, len))) => match self.registered.within(index, address, len) {
                Ok(()) => Some((address, len)),
                Err(error) => return failed(error),
            },
            _ => None,
        };
        let task = Task {
            operation: &operation,
            target,
            buffer,
            done,
            is_again,
            has_ended: Cell::new(false),
        };
        let outcome = world.attempt(&task);
        let mut flags = CqeFlags::empty();
        if let (Ok(1..), Some((group, number))) = (outcome, lent) {
            self.registered.use_buffer(group);
            flags = CqeFlags::buffer(number);
        }
        match outcome {
            Err(Errno::AGAIN | Errno::IN_PROGRESS | Errno::ALREADY) if may_wait(&operation) => {
                Tried::Waits
            }
            Ok(moved) if is_short(&operation, done, moved) => {
                if let Some(request) = self.requests.get_mut(slot) {
                    request.done += moved as usize;
                }
                Tried::Partly
            }
            Ok(result) if task.has_ended.get() => Tried::Ended(result, flags),
            Ok(moved) => Tried::Done(Ok(moved + done as i32), flags),
            Err(_) if done != 0 => Tried::Done(Ok(done as i32), flags),
            Err(error) => failed(error),
        }
    }
}

fn failed(error: Errno) -> Tried {
    Tried::Done(Err(error), CqeFlags::empty())
}

/// The range of a registered buffer that it names.
fn fixed(operation: &Operation) -> Option<(u16, u64, u32)> {
    match *operation {
        Operation::Transfer {
            buffers:
                Buffers::Fixed {
                    address,
                    len,
                    index,
                },
            ..
        } => Some((index, address, len)),
        _ => None,
    }
}

/// Whether it moved some bytes where it shall move all.
fn is_short(operation: &Operation, done: usize, moved: i32) -> bool {
    match *operation {
        Operation::Message {
            buffers: Buffers::One { len, .. },
            flags,
            ..
        } => flags & WAIT_ALL != 0 && moved > 0 && done + (moved as usize) < len as usize,
        _ => false,
    }
}

/// Whether the program lets it wait.
fn may_wait(operation: &Operation) -> bool {
    match *operation {
        Operation::Transfer { flags, .. } => flags & NO_WAIT == 0,
        Operation::Message { flags, .. } | Operation::Header { flags, .. } => {
            flags & DONT_WAIT == 0
        }
        _ => true,
    }
}
