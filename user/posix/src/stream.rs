//! Bytes in and out of streams; as `kernel/inet-sockets/src/tcp/stream.rs`.

use inet::{Error, Events, Transport};

use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::Open;
use crate::pieces::{Gather, Scatter};

/// Bytes that are given to the stack at once: few enough that their frames fit the ring.
const STEP_BYTES: usize = 64 * 1024;

impl<L: Link> Host<L> {
    /// Takes received bytes that wait, as far as there is room for them; none are left at the end of the stream.
    ///
    /// Errors: `AGAIN` if none wait.
    #[inline(always)]
    pub fn take(&mut self, open: &Open, to: &mut Scatter<'_, '_>) -> Result<()> {
        self.check_link()?;
        let (max, has_some) = (to.room(), to.done() != 0);
        let (stack, world) = self.parts();
        // The error behind them is for the next call.
        if has_some
            && stack.unread(open.id())? == 0
            && stack.poll(open.id()).contains(Events::READABLE)
        {
            return Ok(());
        }
        let taken = stack.recv_with(world, open.id(), max, &mut |bytes| to.put(bytes));
        self.refresh_after_read(open);
        Ok(taken.map(drop)?)
    }

    /// The same for a call that waits as long as they are fewer than its program wants (SO_RCVLOWAT).
    ///
    /// Errors: `AGAIN` as long as they are.
    #[inline(always)]
    pub fn take_enough(&mut self, open: &Open, to: &mut Scatter<'_, '_>) -> Result<()> {
        self.take(open, to)?;
        match open.is_nonblocking() {
            true => Ok(()),
            false => {
                let least = self.low_water(open)?;
                self.take_more(open, to, least)
            }
        }
    }

    /// The same until there is no room, or no more will come (MSG_WAITALL).
    pub fn take_all(&mut self, open: &Open, to: &mut Scatter<'_, '_>) -> Result<()> {
        self.take_more(open, to, usize::MAX)
    }

    fn take_more(&mut self, open: &Open, to: &mut Scatter<'_, '_>, least: usize) -> Result<()> {
        while to.room() != 0 && to.done() < least {
            let before = to.done();
            self.take(open, to)?;
            if to.done() == before {
                break;
            }
        }
        Ok(())
    }

    /// Bytes for which a program waits.
    fn low_water(&mut self, open: &Open) -> Result<usize> {
        let (stack, _) = self.parts();
        Ok(stack.options(open.id())?.receive_low_water as usize)
    }

    /// Whether a call that copies bytes and may wait has enough of them: as many as there is room for, or with
    /// `is_for_all` unset those for which the program waits.
    ///
    /// Errors: `AGAIN` if not.
    pub fn check_enough(&mut self, open: &Open, room: usize, is_for_all: bool) -> Result<()> {
        let least = match is_for_all {
            true => room,
            false => self.low_water(open)?.min(room),
        };
        match !self.is_up() || self.parts().0.has_unread(open.id(), least) {
            true => Ok(()),
            false => Err(Errno::AGAIN),
        }
    }

    /// Copies bytes that wait, and leaves them (MSG_PEEK).
    pub fn peek(&mut self, open: &Open, to: &mut Scatter<'_, '_>) -> Result<()> {
        self.check_link()?;
        let max = to.room();
        let (stack, _) = self.parts();
        Ok(stack
            .peek_with(open.id(), 0, max, &mut |bytes| to.put(bytes))
            .map(drop)?)
    }

    /// Sends all bytes that there is room for.
    ///
    /// Errors: `AGAIN` if there was none for all of them.
    #[inline]
    pub fn put(&mut self, open: &Open, from: &mut Gather<'_, '_>) -> Result<()> {
        self.check_link()?;
        let outcome = loop {
            let step = from.left().min(STEP_BYTES);
            let (stack, world) = self.parts();
            let sent = stack.send_with(world, open.id(), step, &mut |space| from.take(space));
            match sent {
                Ok(_) if from.left() == 0 => break Ok(()),
                Ok(sent) if sent < step => break Err(Errno::AGAIN),
                Ok(_) => {}
                // It waits for connections and will never be one.
                Err(Error::InvalidState) => break Err(Errno::BROKEN_PIPE),
                Err(error) => break Err(error.into()),
            }
            if self.is_crowded() {
                self.flush();
            }
        };
        match outcome {
            // A link may be lost while much is sent.
            Ok(()) if self.is_up() => self.refresh_after_send(open),
            _ => self.refresh(open),
        }
        self.after_sending();
        outcome
    }

    /// Bytes that wait (FIONREAD).
    pub fn unread(&mut self, open: &Open) -> Result<usize> {
        Ok(self.parts().0.unread(open.id())?)
    }

    /// Bytes that were not even sent (SIOCOUTQNSD).
    ///
    /// Errors: `NOT_A_TERMINAL`, as for what is no request, without a stream.
    pub fn untransmitted(&mut self, open: &Open) -> Result<usize> {
        match open.transport {
            Transport::Tcp => Ok(self.parts().0.info(open.id())?.unsent),
            Transport::Udp => Err(Errno::NOT_A_TERMINAL),
        }
    }

    /// Bytes that the peer has not acknowledged (SIOCOUTQ).
    pub fn unsent(&mut self, open: &Open) -> Result<usize> {
        match open.transport {
            Transport::Tcp => Ok(self.parts().0.unsent(open.id())?),
            Transport::Udp => Ok(0),
        }
    }
}
