//! A program's hold on one socket of the stack: what TCP and UDP sockets share.

use alloc::string::String;
use alloc::sync::Arc;

use inet::{Endpoint, Options, SocketId, Transport};

use super::shard::{self, Link, with_stack};
use crate::error::{Error, Result};
use crate::fs::Metadata;
use crate::poll::{Events, Pollee};
use crate::socket::{self, Blocking, CommonOptions, Family, Held, Shutdown, wait_on};
use crate::sync::Wait;

/// A socket of the stack; dropping it closes it.
pub(super) struct Handle {
    pub(super) id: SocketId,
    pub(super) family: Family,
    pub(super) pollee: Arc<Pollee>,
    pub(super) common: CommonOptions,
    _held: Held,
}

impl Handle {
    /// What stat(2) says of the socket; its number is also in /proc/net.
    pub(super) fn metadata(&self) -> Metadata {
        socket::metadata(self.number())
    }

    /// Its name in /proc/PID/fd.
    pub(super) fn label(&self) -> String {
        socket::label(self.number())
    }

    fn number(&self) -> u64 {
        super::sockets::number_of(self.id)
    }

    /// A new socket of the stack.
    pub(super) fn open(transport: Transport, family: Family) -> Result<Self> {
        stack(|stack, link| {
            let id = match family {
                Family::Inet6 => stack.open_v6(transport)?,
                _ => stack.open(transport)?,
            };
            Self::adopt(id, family, stack, link)
        })
    }

    /// Holds a socket that the stack made (an accepted connection).
    ///
    /// Errors: `NoBuffers`; the socket is closed then.
    pub(super) fn adopt(
        id: SocketId,
        family: Family,
        stack: &mut inet::Stack,
        link: &mut Link,
    ) -> Result<Self> {
        let pollee = Arc::new(Pollee::new());
        if let Err(error) = link.register(id, pollee.clone()) {
            stack.close(link, id)?;
            return Err(error);
        }
        Ok(Self {
            id,
            family,
            pollee,
            common: CommonOptions::default(),
            _held: Held::one(),
        })
    }

    /// What is ready now.
    pub(super) fn poll(&self) -> Events {
        with_stack(|stack, _| shard::events_of(stack.poll(self.id))).unwrap_or(Events::ERR)
    }

    /// Waits by the rules of `how` until one of `events` or an error is there.
    pub(super) fn wait(&self, events: Events, how: Option<Wait>) -> Result<()> {
        let wanted = events | Events::ALWAYS;
        let ready = || self.poll().intersects(wanted).then_some(());
        wait_on(&self.pollee.queue, how, ready)
    }

    pub(super) fn receive_wait(&self, blocking: Blocking) -> Option<Wait> {
        self.common.receive_wait(blocking)
    }

    pub(super) fn send_wait(&self, blocking: Blocking) -> Option<Wait> {
        self.common.send_wait(blocking)
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

    pub(super) fn shutdown(&self, how: Shutdown) -> Result<()> {
        let how = match how {
            Shutdown::Read => inet::Shutdown::Read,
            Shutdown::Write => inet::Shutdown::Write,
            Shutdown::Both => inet::Shutdown::Both,
        };
        stack(|stack, link| {
            stack.shutdown(link, self.id, how)?;
            super::poll::after_send(link);
            Ok(())
        })
    }

    /// `IPV6_V6ONLY`.
    pub(super) fn is_v6_only(&self) -> Result<bool> {
        Ok(self.options()?.v6_only)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        with_stack(|stack, link| {
            link.unregister(self.id);
            let closed = stack.close(link, self.id);
            debug_assert!(closed.is_ok(), "a handle owns a live socket");
            super::poll::after_send(link);
        });
    }
}

/// Calls into the stack; fails where there is none (before boot has come so far).
pub(super) fn stack<R>(work: impl FnOnce(&mut inet::Stack, &mut Link) -> Result<R>) -> Result<R> {
    with_stack(work).unwrap_or(Err(Error::NetworkDown))
}
