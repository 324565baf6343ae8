//! The interfaces of a stack as programs know them, by number and by name: `lo`, `eth0` and those
//! over links (`datalink`), each with the shard that has it.
//!
//! Lock order: the list of interfaces is innermost, for frames are shown under a stack's lock.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::sync::atomic::Ordering;

use bitflags::bitflags;
use inet::{Cidr, Count, Stack};
use mach::sync::Spin;

use super::NetStack;
use super::env::Link;
use crate::device::promiscuity;
use vfs::socket::InterfaceName;

/// The number of loopback.
pub const LOOPBACK: u32 = 1;
/// The number of the network card, or of what stands for it: the interface of a stack's first shard.
pub const CARD: u32 = 2;

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

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: InterfaceName,
    /// `ARPHRD_*`.
    pub hardware_type: u16,
    /// Its station; zeros for loopback.
    pub mac: [u8; 6],
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// Its shard; of the card, the first of several.
    pub(crate) shard: u16,
    /// What its shard had counted before.
    pub(crate) before: Counted,
}

/// Frames and bytes that a shard has counted: received, sent.
pub(crate) type Counted = [u64; 4];

/// Loopback, which every stack has.
pub(crate) const LOOPBACK_FACTS: Interface = Interface {
    number: LOOPBACK,
    name: InterfaceName::new("lo").expect("short"),
    hardware_type: HARDWARE_LOOPBACK,
    mac: [0; 6],
    mtu: LOOPBACK_MTU,
    shard: 0,
    before: [0; 4],
};

impl Interface {
    /// An interface of Ethernet.
    pub(crate) fn ethernet(
        number: u32,
        name: InterfaceName,
        shard: u16,
        port: &inet::Port,
    ) -> Self {
        Self {
            number,
            name,
            hardware_type: HARDWARE_ETHERNET,
            mac: port.mac.0,
            mtu: port.mtu.into(),
            shard,
            before: [0; 4],
        }
    }

    /// What a shard has counted.
    pub(crate) fn counted(stats: &inet::Stats) -> Counted {
        [
            Count::FramesIn,
            Count::FramesOut,
            Count::BytesIn,
            Count::BytesOut,
        ]
        .map(|what| stats.counts.get(what))
    }

    /// The card's.
    pub(crate) fn of_card(port: &inet::Port) -> Self {
        Self::ethernet(
            CARD,
            const { InterfaceName::new("eth0").expect("short") },
            0,
            port,
        )
    }
}

/// The interfaces of one stack, by number, each with how many sockets want all its frames.
pub(crate) struct Interfaces(Spin<Vec<(Interface, u32)>>);

impl Interfaces {
    pub(crate) fn new() -> Self {
        Self(Spin::new(Vec::from([(LOOPBACK_FACTS, 0)])))
    }

    /// There is this interface now, or it has changed.
    pub(crate) fn put(&self, new: Interface) {
        let mut all = self.0.lock();
        match all.binary_search_by_key(&new.number, |(one, _)| one.number) {
            Ok(at) => all[at].0 = new,
            Err(at) => all.insert(at, (new, 0)),
        }
    }

    /// And no longer.
    pub(crate) fn remove(&self, number: u32) {
        self.0.lock().retain(|(one, _)| one.number != number);
    }

    /// The interface with this number.
    pub(crate) fn get(&self, number: u32) -> Option<Interface> {
        let all = self.0.lock();
        let found = all.iter().find(|(one, _)| one.number == number);
        found.map(|(one, _)| *one)
    }

    /// `ARPHRD_*` of an interface, 0 of one that is gone.
    pub(crate) fn hardware_type(&self, number: u32) -> u16 {
        self.get(number).map_or(0, |of| of.hardware_type)
    }

    fn all(&self) -> Vec<Interface> {
        self.0.lock().iter().map(|(one, _)| *one).collect()
    }

    fn watchers(&self, number: u32) -> u32 {
        let all = self.0.lock();
        let found = all.iter().find(|(one, _)| one.number == number);
        found.map_or(0, |(_, watchers)| *watchers)
    }

    /// One socket more wants all frames of an interface, or one less.
    fn watch(&self, number: u32, is_more: bool) {
        let mut all = self.0.lock();
        if let Some((_, watchers)) = all.iter_mut().find(|(one, _)| one.number == number) {
            *watchers = watchers.wrapping_add(if is_more { 1 } else { u32::MAX });
        }
    }
}

/// What an interface has carried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
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

impl NetStack {
    /// All interfaces, by number.
    pub fn interfaces(&self) -> Vec<Interface> {
        self.shared.interfaces.all()
    }

    /// The interface with this number.
    pub fn interface(&self, number: u32) -> Option<Interface> {
        self.shared.interfaces.get(number)
    }

    /// The interface with this name.
    pub fn interface_named(&self, name: &[u8]) -> Option<Interface> {
        let mut all = self.interfaces().into_iter();
        all.find(|interface| interface.name.as_bytes() == name)
    }

    /// Calls `work` with the shard of an interface and its environment; of loopback and the card,
    /// with the first, which knows what all know. `None` without one.
    pub(crate) fn on_interface<R>(
        &self,
        number: u32,
        work: impl FnOnce(&mut Stack, &mut Link) -> R,
    ) -> Option<R> {
        let shard = match number {
            LOOPBACK | CARD => 0,
            further => self.interface(further)?.shard,
        };
        self.with_shard(shard, work)
    }

    /// What an interface has carried.
    pub fn traffic(&self, of: &Interface) -> Traffic {
        let mut sum = Traffic {
            dropped_in: self.lost_before(of),
            ..Traffic::default()
        };
        for shard in self.shards_of(of) {
            self.with_shard(shard, |stack, link| {
                sum.dropped_out += link.queue_full_drops;
                let counts = &stack.stats().counts;
                let [frames_in, frames_out, bytes_in, bytes_out] = match of.number {
                    LOOPBACK => {
                        let [frames, bytes] =
                            [Count::Loopback, Count::BytesLooped].map(|what| counts.get(what));
                        [frames, frames, bytes, bytes]
                    }
                    _ => {
                        sum.dropped_in += link.port_drops();
                        Interface::counted(stack.stats())
                    }
                };
                sum.frames_in += frames_in;
                sum.frames_out += frames_out;
                sum.bytes_in += bytes_in;
                sum.bytes_out += bytes_out;
            });
        }
        let [frames_in, frames_out, bytes_in, bytes_out] = of.before;
        Traffic {
            frames_in: sum.frames_in.wrapping_sub(frames_in),
            frames_out: sum.frames_out.wrapping_sub(frames_out),
            bytes_in: sum.bytes_in.wrapping_sub(bytes_in),
            bytes_out: sum.bytes_out.wrapping_sub(bytes_out),
            ..sum
        }
    }

    /// Received frames that never came as far as a shard.
    fn lost_before(&self, of: &Interface) -> u64 {
        match of.number {
            CARD => self.shared.lost.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// The shards that an interface has.
    fn shards_of(&self, of: &Interface) -> core::ops::Range<u16> {
        match of.number {
            LOOPBACK => 0..self.shard_count(),
            CARD => 0..self.count(),
            _ => of.shard..of.shard + 1,
        }
    }

    /// An interface's state.
    pub fn flags(&self, of: &Interface) -> InterfaceFlags {
        let mut flags = InterfaceFlags::UP | InterfaceFlags::RUNNING;
        flags |= match of.number {
            LOOPBACK => InterfaceFlags::LOOPBACK,
            _ => InterfaceFlags::BROADCAST | InterfaceFlags::MULTICAST,
        };
        let watchers = self.shared.interfaces.watchers(of.number);
        flags.set(InterfaceFlags::PROMISCUOUS, watchers != 0);
        flags
    }

    /// An interface's IPv4 address.
    pub fn address(&self, of: &Interface) -> Option<Cidr> {
        match of.number {
            LOOPBACK => Cidr::new(Ipv4Addr::LOCALHOST, 8),
            number => self
                .on_interface(number, |stack, _| stack.address())
                .flatten(),
        }
    }

    /// One socket more wants all frames of an interface, or one less, and the card hears of it.
    pub fn watch(&self, interface: u32, is_more: bool) {
        self.shared.interfaces.watch(interface, is_more);
        if interface == CARD && self.is_first() {
            promiscuity::by_sniffer(is_more);
        }
    }
}
