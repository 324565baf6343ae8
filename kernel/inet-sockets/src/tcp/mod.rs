//! Stream sockets over TCP.

mod lent;
pub(crate) mod socket;
mod zerocopy;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use inet::{Endpoint, State, Transport};
use mach::sync::Once;
use mm::io::{Sink, Source, partial};
use sync::poll::Events;
use sync::{Error, Result, Wait};

use self::zerocopy::Completions;
use crate::dial;
use crate::handle::Handle;
use net::{after_bytes, after_refusal, after_send};
use vfs::socket::Family;

/// A TCP socket: listening, connected, or neither yet.
pub struct TcpSocket {
    pub(crate) handle: Handle,
    /// Of sends without a copy, once the program asked for such.
    pub(crate) completions: Once<Arc<Completions>>,
    /// A call to connect did not wait, and no other has told yet how it ended.
    is_outcome_untold: AtomicBool,
}

/// When a receiving call has enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// It has what is queued.
    Queued,
    /// It has all that it asked for.
    Full,
}

impl TcpSocket {
    /// A socket without address.
    pub(crate) fn open(family: Family) -> Result<Arc<Self>> {
        Ok(Arc::new(Self::of(Handle::open(Transport::Tcp, family)?)))
    }

    fn of(handle: Handle) -> Self {
        Self {
            handle,
            completions: Once::new(),
            is_outcome_untold: AtomicBool::new(false),
        }
    }

    pub(crate) fn state(&self) -> Result<State> {
        self.handle.with(|id, stack, _| Ok(stack.state(id)?))
    }

    pub(crate) fn start_listening(&self, backlog: usize) -> Result<()> {
        self.handle.listen(backlog)
    }

    /// The next connection that waits, of the calling CPU's shard if there is one.
    pub(crate) fn next_connection(&self, how: Option<Wait>) -> Result<Arc<Self>> {
        loop {
            let accepted = self
                .handle
                .first_of(self.handle.stack.own(), |id, stack, link| {
                    let id = stack.accept(link, id)?;
                    after_send(link);
                    let handle = self.handle.adopt_accepted(id, stack, link)?;
                    handle.waiter.filter.inherit(&self.handle.waiter.filter);
                    Ok(Self::of(handle))
                });
            match accepted {
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, how)?,
                done => {
                    let accepted = done.map(Arc::new)?;
                    accepted.lend_pages(self.lends_pages());
                    return Ok(accepted);
                }
            }
        }
    }

    /// Starts to connect and waits for the outcome, unless it may not wait: then the outcome is
    /// for a later call, even where it is known at once (connect(2)).
    pub(crate) fn connect_to(&self, peer: Endpoint, how: Option<Wait>) -> Result<()> {
        if self.is_connecting() {
            return self.finish_connecting(how, Error::AlreadyInProgress);
        }
        if self.is_outcome_untold.swap(false, Ordering::Relaxed) {
            return self.handle.take_error().map_or(Ok(()), Err);
        }
        self.start_connecting(peer)?;
        if how.is_none() {
            self.is_outcome_untold.store(true, Ordering::Relaxed);
            return Err(Error::InProgress);
        }
        self.finish_connecting(how, Error::InProgress)
    }

    fn start_connecting(&self, peer: Endpoint) -> Result<()> {
        let mut outcome = Err(Error::AddressNotAvailable);
        for shard in dial::shards_in_turn(&self.handle.stack) {
            let may_choose = self.handle.move_to_connect(peer, shard)?;
            outcome = self.handle.with(|id, stack, link| {
                stack.connect(link, id, peer)?;
                after_send(link);
                Ok(())
            });
            if outcome != Err(Error::AddressNotAvailable) || !may_choose {
                break;
            }
            dial::note_exhausted(shard);
        }
        outcome
    }

    fn is_connecting(&self) -> bool {
        matches!(self.state(), Ok(State::SynSent | State::SynReceived))
    }

    fn finish_connecting(&self, how: Option<Wait>, pending: Error) -> Result<()> {
        match self.handle.wait(Events::OUT, how) {
            Err(Error::WouldBlock) if self.is_connecting() => Err(pending),
            Err(error @ Error::Interrupted(_)) => Err(error),
            _ => {
                self.is_outcome_untold.store(false, Ordering::Relaxed);
                self.handle.take_error().map_or(Ok(()), Err)
            }
        }
    }

    /// Moves received bytes to `to`, waiting for the first; 0 at the end of the stream.
    pub(crate) fn take(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
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
        let max = to.remaining();
        self.handle.move_bytes(|id, stack, link| {
            if had != 0 && stack.unread(id)? == 0 && stack.poll(id).contains(inet::Events::READABLE)
            {
                return Ok(0);
            }
            let mut copy = |bytes: &[u8]| to.try_put(bytes);
            let count = stack.recv_with(link, id, max, &mut copy)?;
            self.handle.waiter.after_read(stack.poll_but_writable(id));
            after_bytes(stack, link);
            Ok(count)
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
