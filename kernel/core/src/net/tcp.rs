//! Stream sockets over TCP.

use alloc::sync::Arc;

use inet::{Endpoint, Shutdown, State, Transport};

use super::handle::{Blocking, Direction, Handle, stack};
use super::poll::after_send;
use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use crate::poll::Events;

/// A TCP socket: listening, connected, or neither yet.
pub struct TcpSocket {
    pub(super) handle: Handle,
}

impl TcpSocket {
    /// A socket without address.
    pub fn open() -> Result<Arc<Self>> {
        Ok(Arc::new(Self { handle: Handle::open(Transport::Tcp)? }))
    }

    pub(super) fn listen(&self, backlog: usize) -> Result<()> {
        stack(|stack, link| Ok(stack.listen(link, self.handle.id, backlog)?))
    }

    /// The next connection that waits.
    pub(super) fn accept(&self, blocking: Blocking) -> Result<Arc<Self>> {
        loop {
            let accepted = stack(|stack, link| {
                let id = stack.accept(link, self.handle.id)?;
                Ok(Arc::new(Self { handle: Handle::adopt(id, link) }))
            });
            match accepted {
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, blocking)?,
                done => return done,
            }
        }
    }

    /// Starts to connect and waits for the outcome, unless it may not wait.
    pub(super) fn connect(&self, peer: Endpoint, blocking: Blocking) -> Result<()> {
        if self.is_connecting() {
            return self.finish_connecting(blocking, Error::AlreadyInProgress);
        }
        stack(|stack, link| {
            stack.connect(link, self.handle.id, peer)?;
            super::poll::announce(link);
            Ok(())
        })?;
        self.finish_connecting(blocking, Error::InProgress)
    }

    fn is_connecting(&self) -> bool {
        let state = stack(|stack, _| Ok(stack.state(self.handle.id)?));
        matches!(state, Ok(State::SynSent | State::SynReceived))
    }

    fn finish_connecting(&self, blocking: Blocking, pending: Error) -> Result<()> {
        match self.handle.wait(Events::OUT, blocking) {
            Err(Error::WouldBlock) if self.is_connecting() => Err(pending),
            Err(error @ Error::Interrupted(_)) => Err(error),
            _ => self.handle.take_error().map_or(Ok(()), Err),
        }
    }

    /// Moves received bytes to `to`; 0 at the end of the stream.
    pub(super) fn receive(&self, to: &mut Sink<'_>, blocking: Blocking) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        loop {
            let max = to.remaining();
            let received = stack(|stack, link| {
                let count = stack.recv_with(link, self.handle.id, max, &mut |bytes| {
                    to.try_put(bytes)
                })?;
                after_send(link);
                Ok(count)
            });
            match received {
                Ok(0) if to.is_faulted() => to.resolve()?,
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, blocking)?,
                done => return done,
            }
        }
    }

    /// Copies received bytes to `to` and leaves them in the queue (MSG_PEEK).
    pub(super) fn peek(&self, to: &mut Sink<'_>, blocking: Blocking) -> Result<usize> {
        loop {
            let max = to.remaining();
            let seen = stack(|stack, _| {
                Ok(stack.peek_with(self.handle.id, max, &mut |bytes| to.try_put(bytes))?)
            });
            match seen {
                Ok(0) if to.is_faulted() => to.resolve()?,
                Err(Error::WouldBlock) => self.handle.wait(Events::IN, blocking)?,
                done => return done,
            }
        }
    }

    /// Moves bytes from `from` into the stream; all of them if it may block, else what
    /// fits.
    pub(super) fn send(&self, from: &mut Source<'_>, blocking: Blocking) -> Result<usize> {
        let before = from.done();
        loop {
            match self.send_some(from) {
                Ok(_) if from.is_faulted() => from.resolve()?,
                Ok(_) if from.remaining() == 0 => return Ok(from.done() - before),
                Ok(_) | Err(Error::WouldBlock) => {
                    if let Err(error) = self.handle.wait(Events::OUT, blocking) {
                        return partial(from.done() - before, error);
                    }
                }
                Err(error) => return partial(from.done() - before, error),
            }
        }
    }

    fn send_some(&self, from: &mut Source<'_>) -> Result<usize> {
        let max = from.remaining();
        stack(|stack, link| {
            let count = stack.send_with(link, self.handle.id, max, &mut |space| {
                from.try_take(space)
            })?;
            after_send(link);
            Ok(count)
        })
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.handle.shutdown(how)
    }

    pub(super) fn default_blocking(&self, open: &crate::file::OpenFile, d: Direction) -> Blocking {
        self.handle.blocking(open, d)
    }
}

/// What a call returns that moved `done` bytes before `error` stopped it.
fn partial(done: usize, error: Error) -> Result<usize> {
    if done == 0 { Err(error) } else { Ok(done) }
}
