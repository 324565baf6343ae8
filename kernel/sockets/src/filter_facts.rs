//! What filters may ask about a packet that does not lie in its bytes.

use bpf::{Fact, Facts};
use capture::Frame;

/// EtherTypes and IANA's numbers of protocols.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// Bytes of IPv6's header, and of UDP's and ICMP's.
const IPV6_BYTES: usize = 40;
const SHORT_BYTES: usize = 8;

/// The answers for one frame.
pub(super) struct Known<'a> {
    pub frame: &'a Frame<'a>,
    /// Where the filter's byte 0 lies in the frame.
    pub start: usize,
}

impl Facts for Known<'_> {
    fn fact(&mut self, fact: Fact) -> u32 {
        let frame = self.frame;
        match fact {
            Fact::Protocol => frame.protocol.into(),
            Fact::PacketType => frame.packet_type.into(),
            Fact::Interface => frame.interface,
            Fact::HardwareType => frame.hardware_type.into(),
            Fact::FlowHash => frame.flow_hash,
            Fact::Cpu => mach::cpu::id().0,
            Fact::VlanTag => frame.tag.map_or(0, |tag| tag.control.into()),
            Fact::VlanPresent => frame.tag.is_some().into(),
            Fact::VlanProtocol => frame.tag.map_or(0, |tag| tag.ether_type.into()),
            Fact::PayloadOffset => self.payload_offset().unwrap_or(0),
            Fact::Random => random::next_u64() as u32,
            // Nothing marks packets, and the queue that they came by is not told.
            Fact::Mark | Fact::Queue => 0,
        }
    }
}

impl Known<'_> {
    /// Where the bytes behind the transport header start, from the filter's byte 0.
    fn payload_offset(&self) -> Option<u32> {
        let network = self.frame.network;
        let (protocol, network_bytes) = match self.frame.protocol {
            IPV4 => (self.byte(network + 9)?, words(self.byte(network)?)),
            IPV6 => (self.byte(network + 6)?, IPV6_BYTES),
            _ => return None,
        };
        let transport = network + network_bytes;
        let transport_bytes = match protocol {
            TCP => words(self.byte(transport + 12)? >> 4),
            UDP | ICMP | ICMPV6 => SHORT_BYTES,
            _ => return None,
        };
        let offset = (transport + transport_bytes).checked_sub(self.start)?;
        u32::try_from(offset).ok()
    }

    fn byte(&self, mut at: usize) -> Option<u8> {
        for part in self.frame.parts {
            match part.get(at) {
                Some(byte) => return Some(*byte),
                None => at -= part.len(),
            }
        }
        None
    }
}

/// Bytes of a header whose length in words of four bytes is a half byte.
fn words(half: u8) -> usize {
    usize::from(half & 0xf) * 4
}
