//! Datagrams in and out.

use epoll::Events;
use inet::{Datagram, Endpoint, Failure, SendOptions};

use crate::ancillary::Heard;
use crate::errno::Result;
use crate::failure::ExtendedError;
use crate::host::{Host, Link};
use crate::open::Open;
use crate::pieces::{Gather, Scatter};

impl<L: Link> Host<L> {
    /// Takes the next datagram; bytes that do not fit are lost.
    ///
    /// Errors: `AGAIN` if none waits.
    pub fn take_datagram(&mut self, open: &Open, to: &mut Scatter<'_, '_>) -> Result<Heard> {
        self.check_link()?;
        self.note_watched(open);
        let taken = self.parts().0.recv_from(open.id());
        self.refresh(open);
        self.expect_return(open.ready().contains(Events::READABLE));
        Ok(deliver(&taken?, to))
    }

    /// Copies it and leaves it (MSG_PEEK).
    pub fn peek_datagram(&mut self, open: &Open, to: &mut Scatter<'_, '_>) -> Result<Heard> {
        self.check_link()?;
        self.note_watched(open);
        let seen = self.parts().0.peek_from(open.id());
        Ok(deliver(seen?, to))
    }

    /// Takes the next datagram that did not arrive (MSG_ERRQUEUE): the start of its bytes, whom it was for in its sender's place,
    /// and why.
    ///
    /// Errors: `AGAIN` if there is none.
    pub fn take_failure(
        &mut self,
        open: &Open,
        to: &mut Scatter<'_, '_>,
    ) -> Result<(Heard, ExtendedError)> {
        self.check_link()?;
        let (stack, world) = self.parts();
        let failure = stack.take_failure(world, open.id());
        self.refresh(open);
        let failure = failure?;
        to.put(&failure.payload);
        Ok((heard_of(&failure), ExtendedError::of(&failure)))
    }

    /// Sends all bytes as one datagram, or as several of a size, to the socket's peer if nobody is named.
    pub fn put_datagram(
        &mut self,
        open: &Open,
        from: &mut Gather<'_, '_>,
        own: SendOptions,
    ) -> Result<()> {
        self.check_link()?;
        // Answers may come from anybody.
        self.note_watched(open);
        let len = from.left();
        let (stack, world) = self.parts();
        let sent = stack.send_to(world, open.id(), own, len, &mut |space| from.take(space));
        // One that was refused has left it without a name.
        if sent.is_ok() {
            open.settle();
        }
        self.refresh(open);
        self.after_sending();
        Ok(sent.map(drop)?)
    }
}

/// What the headers of the message said that told of it.
fn heard_of(failure: &Failure) -> Heard {
    let message = failure.message;
    Heard {
        from: failure.to,
        to: message.map_or(Endpoint::ANY, |message| Endpoint::new(message.to, 0)),
        len: failure.payload.len(),
        hop_limit: message.map_or(0, |message| message.hop_limit),
        tos: message.map_or(0, |message| message.tos),
        drops: 0,
    }
}

fn deliver(datagram: &Datagram, to: &mut Scatter<'_, '_>) -> Heard {
    for piece in datagram.payload.slices() {
        to.put(piece);
    }
    Heard {
        from: datagram.from,
        to: datagram.to,
        len: datagram.payload.len(),
        hop_limit: datagram.hop_limit,
        tos: datagram.tos,
        drops: datagram.drops,
    }
}
