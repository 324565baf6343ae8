//! What a program wants to hear of each datagram besides its bytes (RFC 3542, ip(7)).

use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU16, Ordering};

use super::Heard;
use crate::address::{scope_of, seen_by};
use net::stack::interface::LOOPBACK;
use vfs::socket::{Control, Family, HeaderByte, OptionName, PacketInfo};

/// The options that are on, one bit each.
#[derive(Default)]
pub(crate) struct Reports(AtomicU16);

/// Which bit an option has.
fn bit(name: OptionName) -> Option<u16> {
    let place = match name {
        OptionName::PacketInfo => 0,
        OptionName::ReceiveTimeToLive => 1,
        OptionName::ReceiveTypeOfService => 2,
        OptionName::V6PacketInfo => 3,
        OptionName::V6ReceiveHopLimit => 4,
        OptionName::V6ReceiveTrafficClass => 5,
        OptionName::ReceiveOriginalDestination => 6,
        OptionName::V6ReceiveOriginalDestination => 7,
        OptionName::ReceiveQueueOverflow => 8,
        _ => return None,
    };
    Some(1 << place)
}

impl Reports {
    /// Whether an option is on; `None` for options of other kinds.
    pub(crate) fn get(&self, name: OptionName) -> Option<bool> {
        Some(self.0.load(Ordering::Relaxed) & bit(name)? != 0)
    }

    /// Turns an option on or off; `None` for options of other kinds.
    pub(crate) fn set(&self, name: OptionName, on: bool) -> Option<()> {
        let bit = bit(name)?;
        match on {
            true => self.0.fetch_or(bit, Ordering::Relaxed),
            false => self.0.fetch_and(!bit, Ordering::Relaxed),
        };
        Some(())
    }

    /// What the program hears of a datagram on a socket of `family`.
    pub(crate) fn of(&self, family: Family, heard: &Heard) -> Control {
        if self.0.load(Ordering::Relaxed) == 0 {
            return Control::default();
        }
        let wants = |name| self.get(name) == Some(true);
        // A socket of IPv6 hears of IPv4's packets in IPv4's words.
        let is_v6 = family == Family::Inet6 && heard.to.addr.is_ipv6();
        let pick = |four, six, value| match () {
            () if is_v6 && wants(six) => Some(HeaderByte::V6(value)),
            () if !is_v6 && wants(four) => Some(HeaderByte::V4(value)),
            () => None,
        };
        Control {
            packet_info: self.packet_info(family, heard),
            hop_limit: pick(
                OptionName::ReceiveTimeToLive,
                OptionName::V6ReceiveHopLimit,
                heard.hop_limit,
            ),
            traffic_class: pick(
                OptionName::ReceiveTypeOfService,
                OptionName::V6ReceiveTrafficClass,
                heard.tos,
            ),
            original_destination: self.original_destination(heard),
            drops: self.drops(heard),
            ..Control::default()
        }
    }

    fn drops(&self, heard: &Heard) -> Option<NonZeroU32> {
        self.get(OptionName::ReceiveQueueOverflow)?
            .then(|| NonZeroU32::new(heard.drops))
            .flatten()
    }

    fn original_destination(&self, heard: &Heard) -> Option<SocketAddr> {
        let (name, port) = (heard.to.addr, heard.to.port);
        let (wanted, destination) = match name {
            IpAddr::V4(_) => (
                OptionName::ReceiveOriginalDestination,
                SocketAddr::new(name, port),
            ),
            IpAddr::V6(ip) => (
                OptionName::V6ReceiveOriginalDestination,
                SocketAddrV6::new(ip, port, 0, scope_of(ip, heard.interface)).into(),
            ),
        };
        self.get(wanted)?.then_some(destination)
    }

    fn packet_info(&self, family: Family, heard: &Heard) -> Option<PacketInfo> {
        let local = if self.get(OptionName::V6PacketInfo) == Some(true) {
            seen_by(family, heard.to.addr)
        } else if self.get(OptionName::PacketInfo) == Some(true) && heard.to.addr.is_ipv4() {
            heard.to.addr
        } else {
            return None;
        };
        Some(PacketInfo {
            interface: match heard.to.addr.is_loopback() {
                true => LOOPBACK,
                false => heard.interface,
            },
            local,
        })
    }
}
