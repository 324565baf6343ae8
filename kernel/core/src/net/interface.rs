//! The interfaces as programs know them: `lo`, `eth0` and stations (`datalink`), by number
//! and by name.
//!
//! Lock order: the list of interfaces is innermost, for frames are shown under a stack's lock.

use core::net::Ipv4Addr;
use core::ops::Deref;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bitflags::bitflags;
use inet::{Cidr, Count, Stack};
use mach::sync::Spin;

use super::datalink;
use super::shard::{self, with_shard};
use super::surroundings::Link;

/// The number of loopback.
pub const LOOPBACK: u32 = 1;
/// The number of the network card.
pub const CARD: u32 = 2;
/// The number of the first station.
pub(super) const FIRST_STATION: u32 = 3;
/// Stations at most.
pub(super) const STATIONS_MAX: usize = 16;

/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK` (include/uapi/linux/if_arp.h).
const HARDWARE_ETHERNET: u16 = 1;
const HARDWARE_LOOPBACK: u16 = 772;
/// What Linux says of its loopback.
const LOOPBACK_MTU: u32 = 65_536;

bitflags! {
    /// What an interface is and does; the bits are Linux's own (IFF_*).
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

/// The name of an interface: at most 15 bytes, as Linux has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl Name {
    const BYTES_MAX: usize = 15;

    /// `None` if it is too long.
    pub const fn new(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() > Self::BYTES_MAX {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        let (head, _) = bytes.split_at_mut(text.len());
        head.copy_from_slice(text);
        let len = text.len() as u8;
        Some(Self { bytes, len })
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        // It was made of a whole text.
        str::from_utf8(&self.bytes[..self.len.into()]).unwrap_or_default()
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.pad(self)
    }
}

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: Name,
    /// `ARPHRD_*`.
    pub hardware_type: u16,
    /// Its station; zeros for loopback.
    pub mac: [u8; 6],
    /// Largest packet, in bytes.
    pub mtu: u32,
}

/// The card and the stations, by number from [`CARD`] on.
static FACTS: Spin<[Option<Interface>; 1 + STATIONS_MAX]> = Spin::new([None; 1 + STATIONS_MAX]);
/// How many sockets want all frames of the interface with the number less one.
static PROMISCUOUS: [AtomicU32; 2 + STATIONS_MAX] = [const { AtomicU32::new(0) }; 2 + STATIONS_MAX];

/// Loopback.
pub(super) const LOOPBACK_FACTS: Interface = Interface {
    number: LOOPBACK,
    name: Name::new("lo").expect("short"),
    hardware_type: HARDWARE_LOOPBACK,
    mac: [0; 6],
    mtu: LOOPBACK_MTU,
};

/// The card was attached, or its MTU has changed.
pub(super) fn attached(port: &inet::Port) {
    put(CARD, const { Name::new("eth0").expect("short") }, port);
}

/// There is an interface with this number now, or it has changed.
pub(super) fn put(number: u32, name: Name, port: &inet::Port) {
    set(
        number,
        Some(Interface {
            number,
            name,
            hardware_type: HARDWARE_ETHERNET,
            mac: port.mac.0,
            mtu: port.mtu.into(),
        }),
    );
}

/// And no longer.
pub(super) fn remove(number: u32) {
    set(number, None);
}

fn set(number: u32, interface: Option<Interface>) {
    let at = number.wrapping_sub(CARD) as usize;
    if let Some(place) = FACTS.lock().get_mut(at) {
        *place = interface;
    }
}

/// All interfaces, by number.
pub fn interfaces() -> impl Iterator<Item = Interface> {
    let others = *FACTS.lock();
    [Some(LOOPBACK_FACTS)].into_iter().chain(others).flatten()
}

/// Calls `work` with the stack of an interface and its surroundings; of the card, with the
/// first, which knows what all know. `None` without one.
pub(super) fn on_interface<R>(
    number: u32,
    work: impl FnOnce(&mut Stack, &mut Link) -> R,
) -> Option<R> {
    match number {
        LOOPBACK | CARD => with_shard(0, work),
        station => datalink::with_station(station, work),
    }
}

/// The interface with this number.
pub fn interface(number: u32) -> Option<Interface> {
    interfaces().find(|interface| interface.number == number)
}

/// The interface whose stack sends from `local`, or to `to` if that is open: the one with
/// that address, else with the smallest network that has it; of equals the first, else the
/// card.
pub(super) fn sender(local: Option<Ipv4Addr>, to: Ipv4Addr) -> u32 {
    let wanted = local.unwrap_or(to);
    let nearness = |interface: Interface| {
        let own = interface.address()?;
        let bits = match own.addr() == wanted {
            true => 32,
            false => own.prefix_len(),
        };
        own.contains(wanted).then_some((bits, interface.number))
    };
    let stations = interfaces().filter(|interface| interface.number >= CARD);
    let near = stations.filter_map(nearness);
    let best = near.min_by_key(|(bits, number)| (u8::MAX - bits, *number));
    best.map_or(CARD, |(_, number)| number)
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
    /// Received frames that found the stack's queue full.
    pub dropped_in: u64,
    /// Frames to send that found the card's queue full.
    pub dropped_out: u64,
}

impl Interface {
    /// What it has carried.
    pub fn traffic(&self) -> Traffic {
        let stats = match self.number {
            LOOPBACK | CARD => super::stats(),
            station => on_interface(station, |stack, _| stack.stats().clone()).unwrap_or_default(),
        };
        let [frames_in, frames_out, bytes_in, bytes_out] = match self.number {
            LOOPBACK => [
                Count::Loopback,
                Count::Loopback,
                Count::BytesLooped,
                Count::BytesLooped,
            ],
            _ => [
                Count::FramesIn,
                Count::FramesOut,
                Count::BytesIn,
                Count::BytesOut,
            ],
        }
        .map(|what| stats.counts.get(what));
        Traffic {
            frames_in,
            frames_out,
            bytes_in,
            bytes_out,
            dropped_in: datalink::dropped_in(self.number),
            dropped_out: self.dropped_out(),
        }
    }

    /// Frames that a device's full queue refused; a station has no such queue.
    fn dropped_out(&self) -> u64 {
        let of = |number| with_shard(number, |_, link| link.queue_full_drops);
        match self.number {
            CARD => (0..shard::count()).filter_map(of).sum(),
            _ => 0,
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
            LOOPBACK => Cidr::new(Ipv4Addr::LOCALHOST, 8),
            number => on_interface(number, |stack, _| stack.address()).flatten(),
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
