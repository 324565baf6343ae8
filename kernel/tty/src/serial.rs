//! The first serial port as a plain stream, for hosts that offer no streams of their own
//! ([`super::ports`]): one stream for all descriptors, which tells no end from a byte.
//!
//! Input is taken off the port by a softirq, so that the handler of the interrupt is short,
//! and only as far as there is room: the host waits while the port is full. The host
//! tells the end of a stream's input by the byte that a terminal's user would type for it.

use alloc::collections::VecDeque;

use mach::sync::Spin;
use mm::io::{Sink, Source};
use sched::{Softirq, raise};
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};

use vfs::file::{File, OpenFile};

/// Bytes of input that wait at most.
const INPUT_MAX: usize = 4096;
/// Bytes moved at once, on the stack.
const CHUNK_BYTES: usize = 512;
/// What ends the input of a stream: Ctrl-D.
const END_OF_INPUT: u8 = 4;

/// A serial port that is no terminal.
#[derive(Default)]
pub(super) struct Stream {
    state: Spin<StreamInput>,
    pollee: Pollee,
}

#[derive(Default)]
struct StreamInput {
    bytes: VecDeque<u8>,
    is_over: bool,
}

impl Stream {
    /// Bytes of input that it takes now.
    pub(super) fn input_room(&self) -> usize {
        INPUT_MAX - self.state.lock().bytes.len()
    }

    /// Takes bytes off the port.
    pub(super) fn input(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        let end = bytes.iter().position(|&byte| byte == END_OF_INPUT);
        if !state.is_over {
            state.bytes.extend(&bytes[..end.unwrap_or(bytes.len())]);
        }
        state.is_over |= end.is_some();
        drop(state);
        self.pollee.notify(Events::READABLE);
    }

    /// Moves input to `to`; 0 at the end, `None` if there is none yet.
    fn take(&self, to: &mut [u8]) -> Option<usize> {
        let mut state = self.state.lock();
        let count = to.len().min(state.bytes.len());
        for (place, byte) in to.iter_mut().zip(state.bytes.drain(..count)) {
            *place = byte;
        }
        // The port may hold more that had no room. Not for nothing: what it finds wakes
        // the reader, who looks again.
        if count != 0 {
            raise(Softirq::Console);
        }
        (count != 0 || state.is_over).then_some(count)
    }
}

impl File for Stream {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let mut bytes = [0; CHUNK_BYTES];
        let wanted = to.remaining().min(bytes.len());
        if wanted == 0 {
            return Ok(0);
        }
        let count = match open.is_nonblocking() {
            true => self.take(&mut bytes[..wanted]).ok_or(Error::WouldBlock)?,
            false => {
                let queue = &self.pollee.queue;
                queue.wait(Wait::INTERRUPTIBLE, || self.take(&mut bytes[..wanted]))?
            }
        };
        to.put(&bytes[..count])
    }

    fn write(&self, _open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            let mut bytes = [0; CHUNK_BYTES];
            match from.take(&mut bytes) {
                Ok(count) => {
                    mach::console::write(&bytes[..count]);
                    done += count;
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn poll(&self) -> Events {
        let state = self.state.lock();
        let is_waiting = state.bytes.is_empty() && !state.is_over;
        let readable = if is_waiting {
            Events::empty()
        } else {
            Events::READABLE
        };
        readable | Events::WRITABLE
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
