//! The interfaces as programs know them: `lo` and `eth0`, by number and by name.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bitflags::bitflags;
use inet::{Cidr, Count};
use mach::sync::Once;

use super::with_first_stack;

/// The number of loopback.
pub const LOOPBACK: u32 = 1;
/// The number of the network card.
pub const CARD: u32 = 2;

/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK` (include/uapi/linux/if_arp.h).
const HARDWARE_ETHERNET: u16 = 1;
const HARDWARE_LOOPBACK: u16 = 772;
/// What Linux says of its loopback.
const LOOPBACK_MTU: u32 = 65_536;

bitflags! {
    /// What an interface is and does; the bits are Linux' own (IFF_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct InterfaceFlags: u16 {
        /// It is in use.
        const UP = 0x1;
        /// It has a broadcast address.
        const BROADCAST = 0x2;
        /// It leads to ourselves.
        const LOOPBACK = 0x8;
        /// It can carry packets.
        const RUNNING = 0x40;
        /// Somebody wants all frames, ours or not.
        const PROMISCUOUS = 0x100;
        /// It has groups.
        const MULTICAST = 0x1000;
    }
}

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// `ARPHRD_*`.
    pub hardware_type: u16,
    /// Its station; zeros for loopback.
    pub mac: [u8; 6],
    /// Largest packet, in bytes.
    pub mtu: u32,
}

/// The card, once there is one.
static CARD_FACTS: Once<Interface> = Once::new();
/// How many sockets want all frames of the interface with the number less one.
static PROMISCUOUS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

const LOOPBACK_FACTS: Interface = Interface {
    number: LOOPBACK,
    name: "lo",
    hardware_type: HARDWARE_LOOPBACK,
    mac: [0; 6],
    mtu: LOOPBACK_MTU,
};

/// The card was attached.
pub(super) fn attached(port: &inet::Port) {
    CARD_FACTS.call_once(|| Interface {
        number: CARD,
        name: "eth0",
        hardware_type: HARDWARE_ETHERNET,
        mac: port.mac.0,
        mtu: port.mtu.into(),
    });
}

/// All interfaces, by number.
pub fn interfaces() -> impl Iterator<Item = Interface> {
    [Some(LOOPBACK_FACTS), CARD_FACTS.get().copied()]
        .into_iter()
        .flatten()
}

/// The interface with this number.
pub fn interface(number: u32) -> Option<Interface> {
    interfaces().find(|interface| interface.number == number)
}

/// What an interface has carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Frames received.
    pub frames_in: u64,
    /// Frames sent, before the card cuts them.
    pub frames_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

impl Interface {
    /// What it has carried.
    pub fn traffic(&self) -> Traffic {
        let stats = super::stats();
        let [frames_in, frames_out, bytes_in, bytes_out] = match self.number {
            CARD => [
                Count::FramesIn,
                Count::FramesOut,
                Count::BytesIn,
                Count::BytesOut,
            ],
            _ => [
                Count::Loopback,
                Count::Loopback,
                Count::BytesLooped,
                Count::BytesLooped,
            ],
        }
        .map(|what| stats.counts.get(what));
        Traffic {
            frames_in,
            frames_out,
            bytes_in,
            bytes_out,
        }
    }

    /// Its state.
    pub fn flags(&self) -> InterfaceFlags {
        let mut flags = InterfaceFlags::UP | InterfaceFlags::RUNNING;
        flags |= match self.number {
            LOOPBACK => InterfaceFlags::LOOPBACK,
            _ => InterfaceFlags::BROADCAST | InterfaceFlags::MULTICAST,
        };
        let watchers = self.watchers().map_or(0, |count| count.load(Relaxed));
        flags.set(InterfaceFlags::PROMISCUOUS, watchers != 0);
        flags
    }

    /// Its IPv4 address.
    pub fn address(&self) -> Option<Cidr> {
        match self.number {
            LOOPBACK => Cidr::new(core::net::Ipv4Addr::LOCALHOST, 8),
            _ => with_first_stack(inet::Stack::address).flatten(),
        }
    }

    /// One socket more wants all frames, or one less. Cards are not told: none of ours
    /// is set to leave frames out.
    pub fn watch(&self, is_more: bool) {
        if let Some(count) = self.watchers() {
            count.fetch_add(if is_more { 1 } else { u32::MAX }, Relaxed);
        }
    }

    fn watchers(&self) -> Option<&'static AtomicU32> {
        PROMISCUOUS.get(self.number as usize - 1)
    }
}
