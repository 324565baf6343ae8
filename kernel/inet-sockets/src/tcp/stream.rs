//! What read(2) and write(2) do on a TCP socket: they move bytes, and wait where none are there or
//! none fit.

use alloc::string::String;
use core::any::Any;

use mm::io::{Sink, Source, partial};
use net::{after_bytes, after_refusal};
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{MessageFlags, Socket};

use super::TcpSocket;
use crate::{ioctl, sigpipe};

/// When a receiving call has enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// It has what is queued.
    Queued,
    /// It has all that it asked for.
    Full,
}

impl File for TcpSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        self.take(
            to,
            self.handle.receive_wait(MessageFlags::of(open).blocking()),
        )
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let sent = self.put(
            from,
            self.handle.send_wait(MessageFlags::of(open).blocking()),
        );
        sigpipe(sent, MessageFlags::empty())
    }

    fn poll(&self) -> Events {
        let over = self.completions.get().map(|sends| sends.poll());
        self.handle.poll() | over.unwrap_or(Events::empty())
    }

    fn poll_for(&self, interest: Events) -> Events {
        // The stack's waiter tells nothing of sends without a copy.
        match self.completions.get() {
            Some(_) => self.poll(),
            None => self.handle.poll_for(interest),
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.handle.waiter.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        ioctl::ioctl(&self.handle, request, argument)
    }

    fn as_socket(&self) -> Option<&dyn Socket> {
        Some(self)
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(self.handle.metadata())
    }

    fn label(&self) -> String {
        self.handle.label()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl TcpSocket {
    /// Moves received bytes to `to`, waiting for the first; 0 at the end of the stream.
    pub(crate) fn take(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<usize> {
        self.gather(to, how, Until::Queued)
    }

    /// Like [`take`](Self::take) until `to` is full or the stream ends (MSG_WAITALL).
    pub(crate) fn take_all(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<usize> {
        self.gather(to, how, Until::Full)
    }

    /// Takes bytes until the queue is empty or `to` is full, however often a page of `to` has
    /// to be brought in meanwhile.
    fn gather(&self, to: &mut Sink<'_>, how: Option<Wait>, until: Until) -> Result<usize> {
        let before = to.done();
        while to.remaining() != 0 {
            let had = to.done() - before;
            let step = match self.take_some(to, had) {
                Ok(_) if to.is_faulted() => to.resolve(),
                Ok(0) => break,
                Ok(_) if until == Until::Queued => break,
                Ok(_) => Ok(()),
                Err(Error::WouldBlock) if had == 0 || until == Until::Full => {
                    self.handle.wait(Events::IN, how)
                }
                // What is being repaired may be looked at only.
                Err(Error::Invalid) if self.is_frozen() => Err(Error::NotPermitted),
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                return partial(to.done() - before, error);
            }
        }
        Ok(to.done() - before)
    }

    /// Takes what is queued, up to a page that is not there. Once the call `had` bytes, the
    /// error at the end of the stream is left for the next one.
    fn take_some(&self, to: &mut Sink<'_>, had: usize) -> Result<usize> {
        if self.handle.waiter.known() == Some(Events::empty()) {
            return Err(Error::WouldBlock);
        }
        let max = to.remaining();
        self.handle.move_bytes(|id, stack, link| {
            if had != 0 && stack.unread(id)? == 0 && stack.poll(id).contains(inet::Events::READABLE)
            {
                return Ok(0);
            }
            let mut copy = |bytes: &[u8]| to.try_put(bytes);
            let taken = stack.recv_with(link, id, max, &mut copy);
            if let Ok(_) | Err(inet::Error::WouldBlock) = taken {
                self.handle.waiter.after_read(stack.poll_but_writable(id));
                after_bytes(stack, link);
            }
            Ok(taken?)
        })
    }

    /// Copies received bytes to `to` and leaves them in the queue (MSG_PEEK).
    pub(crate) fn peek(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<usize> {
        let before = to.done();
        loop {
            let (max, seen) = (to.remaining(), to.done() - before);
            let mut copy = |bytes: &[u8]| to.try_put(bytes);
            let outcome = self
                .handle
                .with(|id, stack, _| Ok(stack.peek_with(id, seen, max, &mut copy)?));
            let step = match outcome {
                Ok(_) if to.is_faulted() => to.resolve(),
                Ok(_) => return Ok(to.done() - before),
                Err(Error::WouldBlock) if seen == 0 => self.handle.wait(Events::IN, how),
                Err(Error::Invalid) if self.is_frozen() => return self.peek_frozen(to),
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                return partial(to.done() - before, error);
            }
        }
    }

    /// Moves bytes from `from` into the stream: all of them if it may wait, else what fits.
    pub(crate) fn put(&self, from: &mut Source<'_>, how: Option<Wait>) -> Result<usize> {
        let before = from.done();
        loop {
            let step = match self.put_some(from) {
                Ok(_) if from.is_faulted() => from.resolve(),
                Ok(_) if from.remaining() == 0 => return Ok(from.done() - before),
                Ok(_) | Err(Error::WouldBlock) => self.handle.wait(Events::OUT, how),
                Err(Error::Invalid) if self.is_frozen() => return self.fill(from),
                // It waits for connections and will never be one.
                Err(Error::Invalid) => Err(Error::BrokenPipe),
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                return partial(from.done() - before, error);
            }
        }
    }

    fn put_some(&self, from: &mut Source<'_>) -> Result<usize> {
        let max = from.remaining();
        self.handle.move_bytes(|id, stack, link| {
            let mut copy = |space: &mut [u8]| from.try_take(space);
            let sent = stack.send_with(link, id, max, &mut copy);
            match sent {
                Ok(_) => after_bytes(stack, link),
                Err(_) => after_refusal(stack, link),
            }
            Ok(sent?)
        })
    }
}
