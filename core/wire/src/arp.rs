//! Address resolution of IPv4 on Ethernet (RFC 826).

use core::net::Ipv4Addr;

use crate::bytes::{array, ipv4_at, put, put_u16, u16_at};
use crate::{MacAddr, Malformed};

/// What a packet asks or tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArpOperation {
    /// Who has `target_ip`?
    Request,
    /// `sender_ip` is at `sender_mac`.
    Reply,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpRepr {
    /// Question or answer.
    pub operation: ArpOperation,
    /// Of the sender.
    pub sender_mac: MacAddr,
    /// Of the sender; unspecified in a probe (RFC 5227).
    pub sender_ip: Ipv4Addr,
    /// Zero in a request.
    pub target_mac: MacAddr,
    /// Asked for, or answered to.
    pub target_ip: Ipv4Addr,
}

const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

impl ArpRepr {
    /// Bytes of a packet.
    pub const BYTES: usize = 28;

    /// Reads a packet.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let packet: &[u8; Self::BYTES] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        if !packet.starts_with(&ETHERNET_IPV4) {
            return Err(Malformed::Version);
        }
        let operation = match u16_at(packet, 6) {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            _ => return Err(Malformed::Version),
        };
        Ok(Self {
            operation,
            sender_mac: MacAddr(array(packet, 8)),
            sender_ip: ipv4_at(packet, 14),
            target_mac: MacAddr(array(packet, 18)),
            target_ip: ipv4_at(packet, 24),
        })
    }

    /// Writes [`Self::BYTES`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        put(bytes, 0, ETHERNET_IPV4);
        put_u16(
            bytes,
            6,
            match self.operation {
                ArpOperation::Request => 1,
                ArpOperation::Reply => 2,
            },
        );
        put(bytes, 8, self.sender_mac.0);
        put(bytes, 14, self.sender_ip.octets());
        put(bytes, 18, self.target_mac.0);
        put(bytes, 24, self.target_ip.octets());
    }
}
