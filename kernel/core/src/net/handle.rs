//! A program's hold on one socket of the stack: what TCP and UDP sockets share.

use alloc::sync::Arc;

use base::{Duration, Instant};
use inet::{Endpoint, Options, SocketId, Transport};
use mach::sync::Spin;

use super::shard::{self, Link, with_stack};
use crate::error::{Error, Result};
use crate::file::OpenFile;
use crate::poll::{Events, Pollee};
use crate::sync::Wait;

/// A socket of the stack; closing it is dropping it.
pub(super) struct Handle {
    pub(super) id: SocketId,
    pub(super) pollee: Arc<Pollee>,
    timeouts: Spin<Timeouts>,
}

/// `SO_RCVTIMEO` and `SO_SNDTIMEO`; `None` waits for ever.
#[derive(Clone, Copy, Default)]
pub(super) struct Timeouts {
    pub(super) receive: Option<Duration>,
    pub(super) send: Option<Duration>,
}

/// Which limit applies to a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Receive,
    Send,
}

impl Handle {
    /// A new socket of the stack.
    pub(super) fn open(transport: Transport) -> Result<Self> {
        stack(|stack, link| {
            let id = stack.open(transport)?;
            Ok(Self::adopt(id, link))
        })
    }

    /// Holds a socket that the stack made (an accepted connection).
    pub(super) fn adopt(id: SocketId, link: &mut Link) -> Self {
        let pollee = Arc::new(Pollee::new());
        link.register(id, pollee.clone());
        Self { id, pollee, timeouts: Spin::default() }
    }

    /// What is ready now.
    pub(super) fn poll(&self) -> Events {
        with_stack(|stack, _| shard::events_of(stack.poll(self.id))).unwrap_or(Events::ERR)
    }

    /// Waits until one of `events` (or an error) is ready, unless the opening or the
    /// call says not to block.
    pub(super) fn wait(&self, events: Events, blocking: Blocking) -> Result<()> {
        let Blocking::Until(deadline) = blocking else { return Err(Error::WouldBlock) };
        let wanted = events | Events::ALWAYS;
        let how = Wait::INTERRUPTIBLE.until(deadline);
        let waited =
            self.pollee.queue.wait(how, || self.poll().intersects(wanted).then_some(()));
        // A socket's own limit ends as if the call did not block (socket(7)).
        waited.map_err(|error| if error == Error::TimedOut { Error::WouldBlock } else { error })
    }

    /// How long a call through `open` may wait.
    pub(super) fn blocking(&self, open: &OpenFile, direction: Direction) -> Blocking {
        if open.is_nonblocking() {
            return Blocking::No;
        }
        let timeouts = *self.timeouts.lock();
        let limit = match direction {
            Direction::Receive => timeouts.receive,
            Direction::Send => timeouts.send,
        };
        Blocking::Until(limit.map_or(Instant::NEVER, |limit| mach::time::now() + limit))
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        *self.timeouts.lock()
    }

    pub(super) fn set_timeouts(&self, timeouts: Timeouts) {
        *self.timeouts.lock() = timeouts;
    }

    pub(super) fn options(&self) -> Result<Options> {
        stack(|stack, _| Ok(*stack.options(self.id)?))
    }

    pub(super) fn configure(&self, change: impl FnOnce(&mut Options)) -> Result<()> {
        stack(|stack, link| {
            stack.configure(link, self.id, change)?;
            super::poll::after_send(link);
            Ok(())
        })
    }

    pub(super) fn bind(&self, local: Endpoint) -> Result<()> {
        stack(|stack, _| Ok(stack.bind(self.id, local)?))
    }

    pub(super) fn local(&self) -> Result<Endpoint> {
        stack(|stack, _| Ok(stack.local(self.id)?))
    }

    pub(super) fn remote(&self) -> Result<Endpoint> {
        stack(|stack, _| Ok(stack.remote(self.id)?))
    }

    /// The pending error, which is thereby cleared.
    pub(super) fn take_error(&self) -> Option<Error> {
        with_stack(|stack, _| stack.take_error(self.id))?.map(Error::from)
    }

    pub(super) fn shutdown(&self, how: inet::Shutdown) -> Result<()> {
        stack(|stack, link| {
            stack.shutdown(link, self.id, how)?;
            super::poll::after_send(link);
            Ok(())
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        with_stack(|stack, link| {
            link.unregister(self.id);
            stack.close(link, self.id);
            super::poll::after_send(link);
        });
    }
}

/// Whether a call may wait, and how long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocking {
    /// It may not.
    No,
    /// Until this moment.
    Until(Instant),
}

/// Calls into the stack; fails where there is none (before boot has come so far).
pub(super) fn stack<R>(
    work: impl FnOnce(&mut inet::Stack, &mut Link) -> Result<R>,
) -> Result<R> {
    with_stack(work).unwrap_or(Err(Error::NetworkDown))
}
