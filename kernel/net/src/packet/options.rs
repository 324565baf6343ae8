//! Options of packet sockets.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use mach::sync::Spin;
use sync::{Error, Result};

use super::listener::Listener;
use super::ring::Layout;
use crate::stack::NetStack;
use vfs::socket::{Membership, MembershipKind, OptionName, OptionValue, RingRequest};

/// `TPACKET_V1`, which a socket without a ring has, `TPACKET_V2` and `TPACKET_V3`.
const VERSION_1: u32 = 0;
const VERSION_2: u32 = 1;
const VERSION_3: u32 = 2;
/// Memberships that a socket may have.
const MEMBERSHIPS_MAX: usize = 256;
/// Space in front of packets beyond which no offset reaches.
const RESERVE_BYTES_MAX: u32 = u16::MAX as u32;

/// What a program has set that the listener need not know.
pub(super) struct Options {
    stack: Arc<NetStack>,
    version: AtomicU32,
    reserve_bytes: AtomicU32,
    wants_auxiliary: AtomicBool,
    memberships: Spin<alloc::vec::Vec<Membership>>,
}

impl Options {
    pub(super) fn new(stack: Arc<NetStack>) -> Self {
        Self {
            stack,
            version: AtomicU32::new(VERSION_1),
            reserve_bytes: AtomicU32::new(0),
            wants_auxiliary: AtomicBool::new(false),
            memberships: Spin::new(alloc::vec::Vec::new()),
        }
    }

    pub(super) fn wants_auxiliary(&self) -> bool {
        self.wants_auxiliary.load(Relaxed)
    }

    pub(super) fn get(&self, listener: &Listener, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Error => Ok(OptionValue::PendingError(None)),
            OptionName::Listening => Ok(false.into()),
            OptionName::PacketStatistics => {
                Ok(OptionValue::PacketStatistics(listener.take_statistics()))
            }
            OptionName::Auxdata => Ok(self.wants_auxiliary().into()),
            OptionName::RingVersion => Ok(number(self.version.load(Relaxed))),
            OptionName::RingReserve => Ok(number(self.reserve_bytes.load(Relaxed))),
            OptionName::PacketTimestamp => Ok(OptionValue::Number(0)),
            OptionName::IgnoreOutgoing => Ok(listener.ignores_outgoing().into()),
            name => listener.common.get(name).ok_or(Error::NoSuchOption),
        }
    }

    pub(super) fn set(
        &self,
        listener: &Listener,
        name: OptionName,
        value: OptionValue,
    ) -> Result<()> {
        match (name, value) {
            (OptionName::AddMembership, OptionValue::Membership(wanted)) => self.join(wanted),
            (OptionName::DropMembership, OptionValue::Membership(held)) => self.leave(held),
            (OptionName::ReceiveRing, OptionValue::Ring(request)) => {
                self.set_ring(listener, request)
            }
            (OptionName::RingVersion, value) => self.set_version(listener, value.number()?),
            (OptionName::RingReserve, value) => self.set_reserve(listener, value.number()?),
            (OptionName::Auxdata, value) => {
                self.wants_auxiliary.store(value.flag()?, Relaxed);
                Ok(())
            }
            (OptionName::IgnoreOutgoing, value) => {
                listener.ignore_outgoing(value.flag()?);
                Ok(())
            }
            // Whoever asks for a card's clock gets ours, as where a card has none.
            (OptionName::PacketTimestamp, value) => value.number().map(drop),
            (name, value) => listener
                .common
                .set(name, value)
                .unwrap_or(Err(Error::NoSuchOption)),
        }
    }

    fn set_ring(&self, listener: &Listener, request: RingRequest) -> Result<()> {
        if request.blocks == 0 {
            return listener.set_ring(None);
        }
        let layout = match self.version.load(Relaxed) {
            VERSION_2 => Layout::Slots,
            VERSION_3 => Layout::Blocks,
            _ => return Err(Error::Invalid),
        };
        let reserve_bytes = self.reserve_bytes.load(Relaxed);
        let request = RingRequest {
            reserve_bytes,
            ..request
        };
        listener.set_ring(Some((&request, layout)))
    }

    fn set_version(&self, listener: &Listener, version: i32) -> Result<()> {
        let version = u32::try_from(version).map_err(|_| Error::Invalid)?;
        if version > VERSION_3 {
            return Err(Error::Invalid);
        }
        change(listener, &self.version, version)
    }

    fn set_reserve(&self, listener: &Listener, bytes: i32) -> Result<()> {
        let bytes = u32::try_from(bytes).map_err(|_| Error::Invalid)?;
        if bytes > RESERVE_BYTES_MAX {
            return Err(Error::Invalid);
        }
        change(listener, &self.reserve_bytes, bytes)
    }

    fn join(&self, wanted: Membership) -> Result<()> {
        let interface = self.stack.interface(wanted.interface);
        interface.ok_or(Error::WrongDevice)?;
        let mut memberships = self.memberships.lock();
        if memberships.len() >= MEMBERSHIPS_MAX {
            return Err(Error::NoBuffers);
        }
        memberships.push(wanted);
        count(&self.stack, &wanted, true);
        Ok(())
    }

    fn leave(&self, held: Membership) -> Result<()> {
        let mut memberships = self.memberships.lock();
        let found = memberships.iter().position(|known| *known == held);
        memberships.swap_remove(found.ok_or(Error::AddressNotAvailable)?);
        count(&self.stack, &held, false);
        Ok(())
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        let stack = &self.stack;
        let held = self.memberships.get_mut().iter();
        held.for_each(|membership| count(stack, membership, false));
    }
}

/// One membership more, or one less.
fn count(stack: &NetStack, membership: &Membership, is_more: bool) {
    match membership.kind {
        MembershipKind::Promiscuous => stack.watch(membership.interface, is_more),
        MembershipKind::AllGroups => stack.watch_groups(membership.interface, is_more),
        MembershipKind::Group(group) => stack.watch_group(membership.interface, group, is_more),
        MembershipKind::Unicast => {}
    }
}

fn number(value: u32) -> OptionValue {
    OptionValue::Number(i32::try_from(value).unwrap_or(i32::MAX))
}

/// A ring's layout cannot change while there is one.
fn change(listener: &Listener, place: &AtomicU32, value: u32) -> Result<()> {
    if listener.has_ring() {
        return Err(Error::Busy);
    }
    place.store(value, Relaxed);
    Ok(())
}
