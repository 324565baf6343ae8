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
use crate::device::reception;
use vfs::socket::InterfaceName;
use wire::MacAddr;

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
        /// All frames are wanted, ours or not.
        const PROMISCUOUS = 0x100;
        /// Those for all groups are wanted, joined or not.
        const ALL_GROUPS = 0x200;
        /// It has groups.
        const MULTICAST = 0x1000;
    }
}

impl InterfaceFlags {
    /// Those that an administrator sets.
    pub const SETTABLE: Self = Self::PROMISCUOUS.union(Self::ALL_GROUPS);
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
    /// Its shard; of the card, the first of several. `None` of a program's own card, whose frames no stack of ours gets.
    pub(crate) shard: Option<u16>,
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
    shard: Some(0),
    before: [0; 4],
};

impl Interface {
    /// An interface of Ethernet.
    pub(crate) fn ethernet(
        number: u32,
        name: InterfaceName,
        shard: Option<u16>,
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
            Some(0),
            port,
        )
    }
}

/// The interfaces of one stack, by number.
pub(crate) struct Interfaces(Spin<Vec<Entry>>);

/// An interface, and who wants more of it than its own frames.
struct Entry {
    of: Interface,
    /// Sockets that want all frames.
    watchers: u32,
    /// What an administrator set.
    set: InterfaceFlags,
}

impl Entry {
    fn new(of: Interface) -> Self {
        Self {
            of,
            watchers: 0,
            set: InterfaceFlags::empty(),
        }
    }
}

impl Interfaces {
    pub(crate) fn new() -> Self {
        Self(Spin::new(Vec::from([Entry::new(LOOPBACK_FACTS)])))
    }

    /// There is this interface now, or it has changed.
    pub(crate) fn put(&self, new: Interface) {
        let mut all = self.0.lock();
        match all.binary_search_by_key(&new.number, |one| one.of.number) {
            Ok(at) => all[at].of = new,
            Err(at) => all.insert(at, Entry::new(new)),
        }
    }

    /// And no longer.
    fn remove(&self, number: u32) {
        self.0.lock().retain(|one| one.of.number != number);
    }

    /// The interface with this number.
    pub(crate) fn get(&self, number: u32) -> Option<Interface> {
        self.with(number, |one| one.of)
    }

    /// `ARPHRD_*` of an interface, 0 of one that is gone.
    pub(crate) fn hardware_type(&self, number: u32) -> u16 {
        self.get(number).map_or(0, |of| of.hardware_type)
    }

    fn all(&self) -> Vec<Interface> {
        self.0.lock().iter().map(|one| one.of).collect()
    }

    fn with<R>(&self, number: u32, look: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let mut all = self.0.lock();
        let found = all.iter_mut().find(|one| one.of.number == number);
        found.map(look)
    }

    /// Sets an administrator's flags; returns those that changed.
    fn set(&self, number: u32, flags: InterfaceFlags) -> InterfaceFlags {
        let changed = self.with(number, |one| {
            let before = core::mem::replace(&mut one.set, flags);
            before ^ flags
        });
        changed.unwrap_or(InterfaceFlags::empty())
    }
}

impl Drop for Interfaces {
    /// What was set of a stack's interfaces ends with it. All frames of the card are the first
    /// stack's wish, which never ends.
    fn drop(&mut self) {
        let all = self.0.get_mut().iter();
        let wish = all.filter(|one| one.set.contains(InterfaceFlags::ALL_GROUPS));
        wish.for_each(|_| reception::all_groups(false));
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
    /// Frames to send that too many waited for the card before.
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
            further => self.interface(further)?.shard?,
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
                let counts = &stack.stats().counts;
                let [frames_in, frames_out, bytes_in, bytes_out] = match of.number {
                    LOOPBACK => {
                        let [frames, bytes] =
                            [Count::Loopback, Count::BytesLooped].map(|what| counts.get(what));
                        [frames, frames, bytes, bytes]
                    }
                    _ => {
                        sum.dropped_out += link.queue_full_drops;
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
            _ => of.shard.map_or(0..0, |shard| shard..shard + 1),
        }
    }

    /// An interface's state.
    pub fn flags(&self, of: &Interface) -> InterfaceFlags {
        let mut flags = InterfaceFlags::UP | InterfaceFlags::RUNNING;
        flags |= match of.number {
            LOOPBACK => InterfaceFlags::LOOPBACK,
            _ => InterfaceFlags::BROADCAST | InterfaceFlags::MULTICAST,
        };
        let set = self.shared.interfaces.with(of.number, |one| one.set);
        flags | set.unwrap_or(InterfaceFlags::empty())
    }

    /// How many want all frames of an interface: sockets, and the administrator.
    pub fn promiscuity(&self, of: &Interface) -> u32 {
        let wishes = |one: &mut Entry| {
            let is_set = one.set.contains(InterfaceFlags::PROMISCUOUS);
            one.watchers.saturating_add(is_set.into())
        };
        self.shared.interfaces.with(of.number, wishes).unwrap_or(0)
    }

    /// Sets those of an interface's flags that can be set, and the card hears of it.
    pub fn set_flags(&self, number: u32, flags: InterfaceFlags) {
        let flags = flags & InterfaceFlags::SETTABLE;
        let changed = self.shared.interfaces.set(number, flags);
        if changed.contains(InterfaceFlags::PROMISCUOUS) {
            self.want_all(number, flags.contains(InterfaceFlags::PROMISCUOUS));
        }
        if changed.contains(InterfaceFlags::ALL_GROUPS) {
            self.watch_groups(number, flags.contains(InterfaceFlags::ALL_GROUPS));
        }
    }

    /// An interface is no more, and what was set of it neither.
    pub(crate) fn forget_interface(&self, number: u32) {
        self.set_flags(number, InterfaceFlags::empty());
        self.shared.interfaces.remove(number);
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
        self.shared.interfaces.with(interface, |one| {
            one.watchers = match is_more {
                true => one.watchers.saturating_add(1),
                false => one.watchers.saturating_sub(1),
            };
        });
        self.want_all(interface, is_more);
    }

    /// The same for frames to all groups.
    pub fn watch_groups(&self, interface: u32, is_more: bool) {
        if interface != LOOPBACK {
            reception::all_groups(is_more);
        }
    }

    /// The same for frames to one group.
    pub fn watch_group(&self, interface: u32, group: [u8; 6], is_more: bool) {
        let group = MacAddr(group);
        if interface != LOOPBACK && group.is_multicast() {
            reception::group(group, is_more);
        }
    }

    /// One wish more for all frames of an interface, or one less. Of a link over the card its port
    /// hears whether there is any; what it then sees is said by the link (`promisc-filtered`).
    fn want_all(&self, interface: u32, is_more: bool) {
        if interface == CARD && self.is_first() {
            return reception::all(is_more);
        }
        let Some(of) = self.interface(interface).filter(|of| of.number != LOOPBACK) else {
            return;
        };
        let is_wanted = self.promiscuity(&of) != 0;
        self.on_interface(interface, |_, link| link.listen_to_all(is_wanted));
    }
}
