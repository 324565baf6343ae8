//! Pings to us are answered whole, whatever their size (RFC 1122 3.2.2.6, RFC 4443 4.2).
//!
//! The answer is the ping's own buffers with another header in front: a flood of pings
//! takes no memory and copies nothing. While connections are at work, only as many are
//! answered as `unsolicited` allows.
//! Not here: pings of our programs, whose answers raw sockets get (`raw`).

use mbuf::Chain;
use wire::{ECHO_HEADER_BYTES, EchoFamily, Protocol, Sum, next_header};

use crate::addr::Addresses;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::counters6::Snmp6;
use crate::env::Env;
use crate::input::{ECN_BITS, IpInfo};
use crate::ip::IpHeader;
use crate::output::Offload;

impl<E: Env> Context<'_, E> {
    /// Answers a message if it is a ping to us alone; gives it back if it is not.
    pub fn answer_echo(
        &mut self,
        info: &IpInfo,
        mut packet: Chain,
    ) -> Result<Option<Chain>, DropReason> {
        let mut header = [0; ECHO_HEADER_BYTES];
        if packet.copy_to_slice(0, &mut header) < header.len() {
            return Err(DropReason::Truncated);
        }
        let config = &self.net.config;
        let (family, protocol, is_ignored) = match info.addresses {
            Addresses::V4 { .. } => (EchoFamily::V4, Protocol::Icmp, config.ignores_echo),
            Addresses::V6 { .. } => {
                let protocol = Protocol::Other(next_header::ICMPV6);
                (EchoFamily::V6, protocol, config.ignores_echo_v6)
            }
        };
        let is_answered = info.is_unicast && !is_ignored;
        let Some(answer) = family.answer(header).filter(|_| is_answered) else {
            return Ok(Some(packet));
        };
        if !self.net.admits_unsolicited(self.now) {
            return Err(DropReason::EchoLimited);
        }
        let start = match info.addresses {
            Addresses::V4 { .. } => Sum::new(),
            addresses => addresses.pseudo(protocol, packet.len() as u32),
        };
        if !packet.slices().fold(start, Sum::bytes).is_valid() {
            return Err(DropReason::BadChecksum);
        }
        self.count_echo(family, header[0], answer[0]);
        packet.advance(ECHO_HEADER_BYTES);
        let Some(space) = self.make_room(&mut packet, ECHO_HEADER_BYTES) else {
            return Ok(None);
        };
        space.copy_from_slice(&answer);
        let header = IpHeader {
            addresses: info.addresses.reversed(),
            protocol,
            hop_limit: self.net.config.hops_to(info.src()),
            tos: info.tos & !ECN_BITS,
        };
        self.send_ip(header, packet, Offload::default());
        Ok(None)
    }

    fn count_echo(&mut self, family: EchoFamily, asked: u8, answered: u8) {
        self.net.count(Count::EchoReplies);
        if family == EchoFamily::V6 {
            let kinds = [Snmp6::icmp_in(asked), Snmp6::icmp_out(answered)];
            for counter in kinds.into_iter().flatten() {
                self.net.count6(counter);
            }
            self.net.count6(Snmp6::IcmpOutMsgs);
        }
    }
}
