//! Echo of both families (RFC 792, RFC 4443 4.1): what a ping's answer begins with.
//!
//! A ping differs from its answer in its type alone, so the answer is made from it: the
//! checksum is corrected for the type (RFC 1624) and the data is not looked at.

use crate::{Sum, icmp, icmpv6};

/// Bytes of an echo message's header, in both families.
pub const ECHO_HEADER_BYTES: usize = 8;

/// Of which family a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EchoFamily {
    /// ICMP for IPv4.
    V4,
    /// ICMPv6.
    V6,
}

impl EchoFamily {
    const fn request(self) -> u8 {
        match self {
            Self::V4 => icmp::ECHO_REQUEST,
            Self::V6 => icmpv6::ECHO_REQUEST,
        }
    }

    const fn reply(self) -> u8 {
        match self {
            Self::V4 => icmp::ECHO_REPLY,
            Self::V6 => icmpv6::ECHO_REPLY,
        }
    }

    /// The header of the answer to a ping; `None` if the message is none.
    ///
    /// The addresses of the answer are the ping's, exchanged: their sum stays.
    pub fn answer(self, header: [u8; ECHO_HEADER_BYTES]) -> Option<[u8; ECHO_HEADER_BYTES]> {
        let [kind, 0, a, b, rest @ ..] = header else {
            return None;
        };
        if kind != self.request() {
            return None;
        }
        let sum = Sum::new().bytes(&[!a, !b]).bytes(&[!kind, !0]);
        let [a, b] = sum.bytes(&[self.reply(), 0]).checksum().to_be_bytes();
        let [c, d, e, f] = rest;
        Some([self.reply(), 0, a, b, c, d, e, f])
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv6Addr;

    use super::*;
    use crate::{
        ICMPV6_HEADER_BYTES, IcmpRepr, IcmpView, Icmpv6Repr, Icmpv6View, fill_icmpv6_checksum,
    };

    const DATA: [u8; 3] = *b"odd";

    fn message(header: [u8; ECHO_HEADER_BYTES]) -> [u8; 11] {
        let mut bytes = [0; 11];
        bytes[..header.len()].copy_from_slice(&header);
        bytes[header.len()..].copy_from_slice(&DATA);
        bytes
    }

    #[test]
    fn an_answer_has_a_right_checksum_whatever_was_asked() {
        for ident in (0..=u16::MAX).step_by(7) {
            let sequence = !ident / 3;
            let mut request = message([0; ECHO_HEADER_BYTES]);
            IcmpRepr::EchoRequest { ident, sequence }.emit(&mut request);
            let header = request.first_chunk().expect("a header");
            let answer = message(EchoFamily::V4.answer(*header).expect("a ping"));
            let answer = IcmpView::parse(&answer).expect("a right checksum");
            assert_eq!(answer.repr(), Some(IcmpRepr::EchoReply { ident, sequence }));
        }
    }

    #[test]
    fn an_answer_over_ipv6_goes_back() {
        let (here, there) = (
            Ipv6Addr::LOCALHOST,
            Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9),
        );
        let (ident, sequence) = (0xffff, 0x7fff);
        let mut bytes = message([0; ICMPV6_HEADER_BYTES]);
        Icmpv6Repr::EchoRequest { ident, sequence }.emit(&mut bytes);
        fill_icmpv6_checksum(&mut bytes, there, here);
        let header = bytes.first_chunk().expect("a header");
        let answer = message(EchoFamily::V6.answer(*header).expect("a ping"));
        let answer = Icmpv6View::parse(&answer, here, there).expect("a right checksum");
        assert_eq!(
            answer.repr(),
            Some(Icmpv6Repr::EchoReply { ident, sequence })
        );
    }

    #[test]
    fn other_messages_have_no_answer() {
        assert_eq!(EchoFamily::V4.answer([0; 8]), None);
        assert_eq!(EchoFamily::V4.answer([128, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(EchoFamily::V6.answer([8, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(EchoFamily::V4.answer([8, 1, 0, 0, 0, 0, 0, 0]), None);
    }
}
