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
pub(crate) enum Until {
    /// It has what is queued, and no less than the program waits for (SO_RCVLOWAT).
    LowWater,
    /// It has all that it asked for (MSG_WAITALL).
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
        self.gather(to, how, Until::LowWater)
    }

    /// Bytes for which a call waits that has room for so many.
    fn least(&self, room: usize, until: Until) -> usize {
        match until {
            Until::LowWater => self.handle.common.low_water(room),
            Until::Full => room,
        }
    }

    /// Takes bytes until the queue is empty and it has enough or may not wait, or `to` is full, however often a page of
    /// `to` has to be brought in meanwhile.
    pub(crate) fn gather(
        &self,
        to: &mut Sink<'_>,
        how: Option<Wait>,
        until: Until,
    ) -> Result<usize> {
        let before = to.done();
        let least = self.least(to.remaining(), until);
        while to.remaining() != 0 {
            let had = to.done() - before;
            let step = match self.take_some(to, had) {
                Ok(_) if to.is_faulted() => to.resolve(),
                Ok(0) => break,
                Ok(_) if to.done() - before >= least => break,
                Ok(_) => Ok(()),
                Err(Error::WouldBlock) if had < least => self.wait_for_bytes(1, how),
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

    /// Waits for so many bytes, or as many as the stream will hold.
    fn wait_for_bytes(&self, least: usize, how: Option<Wait>) -> Result<()> {
        if least == self.handle.common.low_water(usize::MAX) {
            return self.handle.wait(Events::IN, how);
        }
        let ready = || self.has_unread(least).then_some(());
        let queue = &self.handle.waiter.pollee.queue;
        queue.wait(how.ok_or(Error::WouldBlock)?, ready)
    }

    fn has_unread(&self, least: usize) -> bool {
        let found = self.handle.look(|id, stack| stack.has_unread(id, least));
        found.unwrap_or(true)
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
                self.handle.waiter.after_read(stack.poll_after_read(id));
                after_bytes(stack, link);
            }
            Ok(taken?)
        })
    }

    /// Copies received bytes to `to` and leaves them in the queue (MSG_PEEK).
    pub(crate) fn peek(&self, to: &mut Sink<'_>, how: Option<Wait>, until: Until) -> Result<usize> {
        let before = to.done();
        let least = self.least(to.remaining(), until);
        if least > 1 && how.is_some() {
            // In the end it has what there is.
            self.wait_for_bytes(least, how).ok();
        }
        loop {
            let (max, seen) = (to.remaining(), to.done() - before);
            let mut copy = |bytes: &[u8]| to.try_put(bytes);
            let outcome = self
                .handle
                .with(|id, stack, _| Ok(stack.peek_with(id, seen, max, &mut copy)?));
            let step = match outcome {
                Ok(_) if to.is_faulted() => to.resolve(),
                Ok(_) => return Ok(to.done() - before),
                Err(Error::WouldBlock) if seen == 0 => self.wait_for_bytes(least.max(1), how),
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
