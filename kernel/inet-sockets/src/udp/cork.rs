//! What a UDP socket sends: a datagram at once, or a piece of one that is gathered ([`cork`]).
//!
//! [`cork`]: sockets::cork

use inet::SendOptions;
use mm::io::Source;
use sync::{Error, Result};

use super::UdpSocket;
use net::after_send;
use sockets::cork::{Gathered, piece_of};
use vfs::socket::{Message, MessageFlags};

impl UdpSocket {
    /// Sends the bytes of `message` as one datagram, or as the next piece of one.
    pub(crate) fn put_message(
        &self,
        message: Message<'_, '_>,
        flags: MessageFlags,
    ) -> Result<usize> {
        if self.cork.is_idle() && !flags.contains(MessageFlags::MORE) {
            let how = self.handle.send_wait(flags.blocking());
            return self.put(
                self.send_options(message.to, &message.control)?,
                message.from,
                how,
            );
        }
        let piece = piece_of(message.from)?;
        let most = 2 * self.handle.options()?.send_buffer as usize;
        let (to, control) = (message.to, &message.control);
        self.cork.add(
            &piece,
            most,
            || self.first_message(self.send_options(to, control)?),
            |send, len| self.check(send, len),
        )?;
        if !flags.contains(MessageFlags::MORE) && !self.cork.is_on() {
            self.uncork()?;
        }
        Ok(piece.len())
    }

    /// Sends what was gathered, if there is something.
    fn uncork(&self) -> Result<()> {
        match self.cork.take() {
            Some(whole) => self.put_gathered(&whole),
            None => Ok(()),
        }
    }

    /// UDP_CORK: from now on all sends are pieces, or no more.
    pub(crate) fn turn_cork(&self, on: bool) {
        self.cork.turn(on);
        if !on {
            // As on Linux nobody hears that it could not be sent.
            self.uncork().ok();
        }
    }

    /// The first piece decides where the datagram goes, whatever the socket's peer is later.
    ///
    /// Errors: one that waits; `DestinationRequired`.
    fn first_message(&self, send: SendOptions) -> Result<SendOptions> {
        if let Some(error) = self.handle.take_error() {
            return Err(error);
        }
        let only = || self.handle.remote().ok();
        let to = send.to.or_else(only).ok_or(Error::DestinationRequired)?;
        self.handle.ensure_named()?;
        Ok(SendOptions {
            to: Some(to),
            ..send
        })
    }

    /// Whether a datagram of so many bytes may be sent.
    fn check(&self, send: &SendOptions, len: usize) -> Result<()> {
        let member = self.handle.member(self.shard_to(send));
        self.handle.stack.in_shard(member.shard, |stack, link| {
            Ok(stack.check_message(link, member.id, send, len)?)
        })
    }

    fn put_gathered(&self, whole: &Gathered<SendOptions>) -> Result<()> {
        let mut from = Source::kernel(&whole.bytes);
        let member = self.handle.member(self.shard_to(&whole.header));
        self.handle.stack.in_shard(member.shard, |stack, link| {
            let mut copy = |space: &mut [u8]| from.try_take(space);
            let len = whole.bytes.len();
            stack.send_message(link, member.id, &whole.header, len, &mut copy)?;
            after_send(link);
            Ok(())
        })
    }
}
