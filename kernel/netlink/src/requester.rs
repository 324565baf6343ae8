//! A request, and how who asked hears of it.

use alloc::sync::Arc;

use netlink::{Ack, Emit, Flags, Header, Message};
use sync::Error;

use super::answer::{self, Refusal};
use super::endpoint::Endpoint;
use net::NetStack;
use vfs::socket::OptionName;

/// What an acknowledgement adds to the request that it repeats: header, number, attributes.
const ACK_BYTES: usize = 512;

/// See the module.
pub(super) struct Requester<'a> {
    pub endpoint: &'a Endpoint,
    pub header: Header,
}

impl Requester<'_> {
    /// The stack that is asked about.
    pub fn stack(&self) -> &Arc<NetStack> {
        &self.endpoint.stack
    }

    /// Whether a dump is to hold only what the request's values select.
    pub fn is_strict(&self) -> bool {
        self.endpoint.flags.has(OptionName::NetlinkStrict)
    }

    /// Whether the message has one of these flags.
    pub fn has(&self, flags: Flags) -> bool {
        self.header.flags.any(flags)
    }

    /// Answers with an object.
    pub fn answer(&self, answer: &impl Emit) -> Result<(), Error> {
        let bytes = answer::object(answer, self.header.sequence, self.endpoint.port())?;
        self.endpoint.deliver(bytes);
        Ok(())
    }

    /// Says how `request`, which this is, went.
    pub fn acknowledge(&self, request: &Message<'_>, refusal: Option<Refusal>) {
        let Endpoint { flags, dialect, .. } = self.endpoint;
        let explains = flags.has(OptionName::NetlinkExtendedAck);
        let told = refusal.filter(|_| explains);
        let text = told.and_then(|refusal| refusal.text);
        let offset = told.and_then(|refusal| refusal.offset);
        let ack = Ack {
            error: refusal.map_or(0, |refusal| (dialect.error_number)(refusal.error)),
            text: text.map(str::as_bytes),
            offset: offset.map(|offset| offset as u32),
            is_capped: flags.has(OptionName::NetlinkCapAck),
        };
        let room = request.bytes().len() + ACK_BYTES;
        let port = self.endpoint.port();
        match answer::datagram(room, |to| ack.emit(request, port, to)) {
            Ok(bytes) => self.endpoint.deliver(bytes),
            Err(_) => self.endpoint.lose(),
        }
    }
}
