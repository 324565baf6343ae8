//! Link protection: what a client may claim to be when it sends.
//!
//! Only outbound frames are checked, one by one, in a fixed order; the first check that
//! fails drops the frame and counts, so each drop has exactly one reason:
//! *mac-nospoof*, *restricted*, *ip-nospoof* ([`ip`]), *dhcp-nospoof* ([`dhcp`]).
//!
//! What cannot be read whole fails the check that would read it: a client that is
//! protected must not pass by being obscure. Later fragments pass, for their first one
//! was checked; a first fragment that is, or may be, DHCP or neighbour discovery fails.
//!
//! A [`Guard`] is immutable and shared by all CPUs. Addresses that the client was given
//! by a server are learned elsewhere ([`learn`]) and published in a new guard.

use alloc::vec::Vec;
use core::net::IpAddr;

use mbuf::Chain;
use wire::MacAddr;

use crate::counters::DropReason;
use crate::headers::{Header, Packet};
use crate::prefix::IpPrefix;
use crate::vlan::{Tag, VlanId};

pub mod cid;
pub mod dhcp;
mod ip;
pub mod learn;
#[cfg(test)]
mod tests;

use cid::ClientId;

bitflags::bitflags! {
    /// Which checks are on (`protection`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Protection: u8 {
        /// The source address is the client's.
        const MAC_NOSPOOF = 1 << 0;
        /// Only IPv4, IPv6 and ARP, in the client's VLAN.
        const RESTRICTED = 1 << 1;
        /// IP, ARP and ND name addresses that are the client's.
        const IP_NOSPOOF = 1 << 2;
        /// DHCP names the client.
        const DHCP_NOSPOOF = 1 << 3;
    }

    /// How a client may get an address (`dynamic-methods`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Methods: u8 {
        /// From a DHCPv4 server.
        const DHCPV4 = 1 << 0;
        /// From a DHCPv6 server.
        const DHCPV6 = 1 << 1;
        /// From a router's prefix and its own station address.
        const SLAAC = 1 << 2;
    }
}

/// What one client may claim.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The client's address.
    pub mac: MacAddr,
    /// Other source addresses that it may use.
    pub secondary: Vec<MacAddr>,
    /// Its VLAN.
    pub vid: Option<VlanId>,
    /// What is checked.
    pub on: Protection,
    /// Addresses that it may use.
    pub allowed: Vec<IpPrefix>,
    /// Addresses that it has learned.
    pub learned: Vec<IpAddr>,
    /// How it may learn some.
    pub methods: Methods,
    /// DHCP identities that it may use.
    pub client_ids: Vec<ClientId>,
    /// Whether it may use any.
    pub all_client_ids: bool,
}

impl Guard {
    /// Whether the client may send the frame. `packet` is what lies in it, if it is IP.
    pub fn check(
        &self,
        header: &Header,
        packet: Option<&Packet>,
        frame: &Chain,
    ) -> Result<(), DropReason> {
        let is_on = |protection| self.on.contains(protection);
        if is_on(Protection::MAC_NOSPOOF) && !self.owns(header.src) {
            return Err(DropReason::MacSpoofed);
        }
        if is_on(Protection::RESTRICTED) && !self.is_unrestricted(header) {
            return Err(DropReason::Restricted);
        }
        if is_on(Protection::IP_NOSPOOF) && !ip::passes(self, header, packet, frame) {
            return Err(DropReason::IpSpoofed);
        }
        if is_on(Protection::DHCP_NOSPOOF) && !dhcp::passes(self, header, packet, frame) {
            return Err(DropReason::DhcpSpoofed);
        }
        Ok(())
    }

    fn owns(&self, src: MacAddr) -> bool {
        src == self.mac || self.secondary.contains(&src)
    }

    fn is_unrestricted(&self, header: &Header) -> bool {
        let is_own_vlan = match header.tag {
            Tag::Untagged => true,
            Tag::Vlan(vid) => self.vid == Some(vid),
            Tag::Reserved => false,
        };
        is_own_vlan && matches!(header.ether_type, IPV4 | IPV6 | ARP)
    }
}

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const IPV6: u16 = 0x86dd;

/// Frames in several parts are copied up to this many bytes: the largest MTU and headers.
const READ_BYTES_MAX: usize = 9216;

/// Shows `look` all of the frame's bytes from `at` on in one piece. `None` if they are too
/// many: who cannot see all of them must not judge.
pub(crate) fn with_bytes<R>(frame: &Chain, at: usize, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let len = frame.len().checked_sub(at)?;
    if let Some(bytes) = frame.as_single() {
        return Some(look(bytes.get(at..)?));
    }
    if len > READ_BYTES_MAX {
        return None;
    }
    let mut bytes = alloc::vec![0; len];
    frame.copy_to_slice(at, &mut bytes);
    Some(look(&bytes))
}
