//! Acknowledgements (`NLMSG_ERROR`, `struct nlmsgerr`) with what went wrong in words.

use crate::message::{Flags, HEADER_BYTES, Header, Message};
use crate::writer::{NoRoom, Writer};

const KIND: u16 = 2;
const MESSAGE: u16 = 1;
const OFFSET: u16 = 2;

/// How a request went.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ack<'a> {
    /// Zero, or Linux's number of the error, positive.
    pub error: u16,
    /// A sentence for the user (`NETLINK_EXT_ACK`), without a zero byte.
    pub text: Option<&'a [u8]>,
    /// Where in the request the attribute lies that is to blame.
    pub offset: Option<u32>,
    /// Whether the program asked not to get its request back (`NETLINK_CAP_ACK`); after a
    /// success it never does.
    pub is_capped: bool,
}

impl Ack<'_> {
    /// Appends the answer to `request`, to a socket whose number is `port`.
    pub fn emit(&self, request: &Message, port: u32, to: &mut Writer) -> Result<(), NoRoom> {
        let is_capped = self.is_capped || self.error == 0;
        let repeated = if is_capped {
            &request.bytes()[..HEADER_BYTES]
        } else {
            request.bytes()
        };
        let mut flags = Flags::NONE;
        if is_capped {
            flags = flags | Flags::CAPPED;
        }
        if self.text.is_some() || self.offset.is_some() {
            flags = flags | Flags::ACK_ATTRIBUTES;
        }
        let header = Header {
            kind: KIND,
            flags,
            sequence: request.header().sequence,
            port,
        };
        to.message(header, |body| {
            body.bytes(&(-i32::from(self.error)).to_le_bytes());
            body.bytes(repeated);
            body.optional_text(MESSAGE, self.text);
            body.optional_u32(OFFSET, self.offset);
        })
    }
}
