//! Stream sockets over TCP.

use alloc::sync::Arc;

use inet::{Endpoint, State, Transport};
use mach::sync::Once;

use super::handle::Handle;
use super::poll::after_send;
use super::zerocopy::Completions;
use super::{dial, shard};
use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use crate::poll::Events;
use crate::socket::Family;
use crate::sync::Wait;

/// A TCP socket: listening, connected, or neither yet.
pub struct TcpSocket {
    pub(super) handle: Handle,
    /// Of sends without a copy, once the program asked for such.
    pub(super) completions: Once<Arc<Completions>>,
}

impl TcpSocket {
    /// A socket without address.
    pub(super) fn open(family: Family) -> Result<Arc<Self>> {
        Ok(Arc::new(Self::of(Handle::open(Transport::Tcp, family)?)))
    }

    fn of(handle: Handle) -> Self {
        Self {
            handle,
            completions: Once::new(),
        }
    }

    pub(super) fn state(&self) -> Result<State> {
        self.handle.with(|id, stack, _| Ok(stack.state(id)?))
    }

    pub(super) fn start_listening(&self, backlog: usize) -> Result<()> {
        self.handle.listen(backlog)
    }

    /// The next connection that waits, of the calling CPU's shard if there is one.
    pub(super) fn next_connection(&self, how: Option<Wait>) -> Result<Arc<Self>> {
        loop {
            let accepted = self.handle.first_of(shard::own(), |id, stack, link| {
                let id = stack.accept(id)?;
                let handle = Handle::adopt(id, Transport::Tcp, self.handle.family, stack, link)?;
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

    /// Starts to connect and waits for the outcome, unless it may not wait.
    pub(super) fn connect_to(&self, peer: Endpoint, how: Option<Wait>) -> Result<()> {
        if self.is_connecting() {
            return self.finish_connecting(how, Error::AlreadyInProgress);
        }
        self.start_connecting(peer)?;
        self.finish_connecting(how, Error::InProgress)
    }

    fn start_connecting(&self, peer: Endpoint) -> Result<()> {
        let mut outcome = Err(Error::AddressNotAvailable);
        for shard in dial::shards_in_turn() {
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
            _ => self.handle.take_error().map_or(Ok(()), Err),
        }
    }

    /// Moves received bytes to `to`; 0 at the end of the stream.
    pub(super) fn take(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        loop {
            match self.take_some(to) {
                Ok(0) if to.is_faulted() => to.resolve()?,
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, how)?,
                done => return done,
            }
        }
    }

    fn take_some(&self, to: &mut Sink<'_>) -> Result<usize> {
        let max = to.remaining();
        self.handle.move_bytes(|id, stack, link| {
            let mut copy = |bytes: &[u8]| to.try_put(bytes);
            let count = stack.recv_with(link, id, max, &mut copy)?;
            self.handle.notice.after_read(stack.poll(id));
            after_send(link);
            Ok(count)
        })
    }

    /// Like [`take`](Self::take) until `to` is full or the stream ends (MSG_WAITALL).
    pub(super) fn take_all(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<usize> {
        let before = to.done();
        while to.remaining() != 0 {
            match self.take(to, how) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return partial(to.done() - before, error),
            }
        }
        Ok(to.done() - before)
    }

    /// Copies received bytes to `to` and leaves them in the queue (MSG_PEEK).
    pub(super) fn peek(&self, to: &mut Sink<'_>, how: Option<Wait>) -> Result<usize> {
        loop {
            let max = to.remaining();
            let mut copy = |bytes: &[u8]| to.try_put(bytes);
            let seen = self
                .handle
                .with(|id, stack, _| Ok(stack.peek_with(id, max, &mut copy)?));
            match seen {
                Ok(0) if to.is_faulted() => to.resolve()?,
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, how)?,
                done => return done,
            }
        }
    }

    /// Moves bytes from `from` into the stream: all of them if it may wait, else what fits.
    pub(super) fn put(&self, from: &mut Source<'_>, how: Option<Wait>) -> Result<usize> {
        let before = from.done();
        loop {
            let step = match self.put_some(from) {
                Ok(_) if from.is_faulted() => from.resolve(),
                Ok(_) if from.remaining() == 0 => return Ok(from.done() - before),
                Ok(_) | Err(Error::WouldBlock) => self.handle.wait(Events::OUT, how),
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
            let count = stack.send_with(link, id, max, &mut copy)?;
            after_send(link);
            Ok(count)
        })
    }
}

/// What a call returns that moved `done` bytes before `error` stopped it.
pub(super) fn partial(done: usize, error: Error) -> Result<usize> {
    if done == 0 { Err(error) } else { Ok(done) }
}
