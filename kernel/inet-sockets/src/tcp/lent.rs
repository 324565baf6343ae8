//! What a TCP socket sends without copying it: pages of files, and of the program.
//!
//! `transfer` finds a file's pages, `zerocopy` a program's and tells it when it has them back. Here
//! they go into the stream by the rules of write(2).

use alloc::sync::Arc;

use mbuf::Chain;
use mm::io::{Source, partial};
use sync::poll::Events;
use sync::{Error, Result, Wait};

use super::TcpSocket;
use super::zerocopy::{self, Completions, Ticket};
use crate::sigpipe;
use net::{after_bytes, after_refusal};
use vfs::file::OpenFile;
use vfs::socket::{Control, ExtendedError, MessageFlags, PageSink, Received, ReceivedFlags};

/// Parts that exist already.
impl PageSink for TcpSocket {
    fn write_pages(&self, open: &OpenFile, pages: Chain) -> Result<usize> {
        let flags = MessageFlags::of(open);
        let sent = self.put_chain(pages, self.handle.send_wait(flags.blocking()));
        sigpipe(sent, MessageFlags::empty())
    }
}

impl TcpSocket {
    /// Moves `bytes` into the stream as they are, by the same rules.
    fn put_chain(&self, mut bytes: Chain, how: Option<Wait>) -> Result<usize> {
        let total = bytes.len();
        loop {
            let step = match self.put_parts(&mut bytes) {
                Ok(_) if bytes.is_empty() => return Ok(total),
                Ok(_) | Err(Error::WouldBlock) => self.handle.wait(Events::OUT, how),
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                return partial(total - bytes.len(), error);
            }
        }
    }

    fn put_parts(&self, bytes: &mut Chain) -> Result<usize> {
        self.handle.with(|id, stack, link| {
            let sent = stack.send_chain(link, id, bytes);
            match sent {
                Ok(_) => after_bytes(stack, link),
                Err(_) => after_refusal(stack, link),
            }
            Ok(sent?)
        })
    }
}

/// Sends in the program's own memory (MSG_ZEROCOPY).
impl TcpSocket {
    /// Whether the program asks for such (SO_ZEROCOPY).
    pub(crate) fn lends_pages(&self) -> bool {
        self.completions.get().is_some_and(|sends| sends.is_on())
    }

    /// It does from now on, or no more.
    pub(crate) fn lend_pages(&self, on: bool) {
        if on || self.completions.get().is_some() {
            let waiter = &self.handle.waiter;
            let sends = self
                .completions
                .call_once(|| Completions::new(waiter.clone()));
            sends.turn(on);
        }
    }

    /// A send of `from`, one of those whose end the program hears of.
    pub(crate) fn send_in_place(
        &self,
        sends: &Arc<Completions>,
        from: &mut Source<'_>,
        how: Option<Wait>,
    ) -> Result<usize> {
        let ticket = sends.draw()?;
        let sent = self.put_in_place(from, how, &ticket)?;
        if sent != 0 {
            ticket.count();
        }
        Ok(sent)
    }

    /// What MSG_ERRQUEUE shows next.
    pub(crate) fn next_sends_over(&self) -> Result<Received> {
        let family = self.handle.family;
        let mut told = ExtendedError::room(family)?;
        let over = self.completions.get().and_then(|sends| sends.take());
        *told = over.ok_or(Error::WouldBlock)?.extended(family);
        Ok(Received {
            control: Control {
                error: Some(told),
                ..Control::default()
            },
            flags: ReceivedFlags::ERRQUEUE,
            ..Received::stream(0)
        })
    }

    /// Moves bytes from `from` into the stream as they lie in the program's memory, where they
    /// can be lent; `ticket` ends when the peer has them.
    fn put_in_place(
        &self,
        from: &mut Source<'_>,
        how: Option<Wait>,
        ticket: &Arc<Ticket>,
    ) -> Result<usize> {
        let mut done = 0;
        let may_lend = !self.is_to_ourselves();
        while from.remaining() != 0 {
            match self.put_stretch(from, how, may_lend, ticket) {
                Ok((offered, given)) => {
                    done += given;
                    if given < offered {
                        break;
                    }
                }
                Err(error) => return partial(done, error),
            }
        }
        Ok(done)
    }

    /// Lends a stretch of `from`, or copies all that is left; returns the bytes that were there,
    /// and those that were sent.
    fn put_stretch(
        &self,
        from: &mut Source<'_>,
        how: Option<Wait>,
        may_lend: bool,
        ticket: &Arc<Ticket>,
    ) -> Result<(usize, usize)> {
        if may_lend {
            let lent = zerocopy::lend(from, ticket)?;
            if !lent.is_empty() {
                return Ok((lent.len(), self.put_chain(lent, how)?));
            }
        }
        ticket.note_copy();
        Ok((from.remaining(), self.put(from, how)?))
    }

    /// Of a socket without both ends too, for which sending fails anyway.
    fn is_to_ourselves(&self) -> bool {
        let ends = self.handle.with(|id, stack, _| {
            let ends = (stack.local(id)?, stack.remote(id)?);
            Ok((ends.0.addr, ends.1.addr))
        });
        ends.map_or(true, |(local, remote)| {
            local == remote || local.is_loopback() || remote.is_loopback()
        })
    }
}
