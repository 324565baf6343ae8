//! Neighbours: shown, set and forgotten.

use core::net::IpAddr;

use inet::NeighborState;
use netlink::{Dump, Flags, Progress, Writer};
use sync::Error;

use super::address::{family_of, is_family, link_of};
use crate::answer::Refusal;
use crate::requester::Requester;
use net::plan::{self, Neighbour};
use net::{LOOPBACK, NetStack};

/// `NUD_*`.
const INCOMPLETE: u16 = 0x1;
const REACHABLE: u16 = 0x2;
const STALE: u16 = 0x4;
const DELAY: u16 = 0x8;
const PROBE: u16 = 0x10;
const PERMANENT: u16 = 0x80;
/// `NTF_PROXY`.
const PROXY: u8 = 0x8;
/// `RTN_UNICAST`.
const UNICAST: u8 = 1;

fn state_of(neighbour: &Neighbour) -> u16 {
    match neighbour.state {
        NeighborState::Incomplete => INCOMPLETE,
        NeighborState::Reachable => REACHABLE,
        NeighborState::Stale => STALE,
        NeighborState::Delay => DELAY,
        NeighborState::Probe => PROBE,
        NeighborState::Permanent => PERMANENT,
    }
}

/// A neighbour as a message.
pub(crate) fn message(neighbour: &Neighbour) -> netlink::Neighbour<'_> {
    netlink::Neighbour {
        family: family_of(neighbour.ip),
        link: neighbour.interface,
        state: state_of(neighbour),
        kind: UNICAST,
        address: Some(neighbour.ip),
        link_address: neighbour.mac.as_ref().map(|mac| &mac[..]),
        ..netlink::Neighbour::default()
    }
}

/// Which neighbours a dump shows.
#[derive(Clone, Debug)]
pub(crate) struct DumpFilter {
    family: u8,
    link: Option<u32>,
    /// We answer for nobody else.
    is_proxy: bool,
}

impl DumpFilter {
    pub fn of(asked: &netlink::Neighbour<'_>, is_strict: bool) -> Self {
        Self {
            family: asked.family,
            link: Some(asked.link).filter(|link| is_strict && *link != 0),
            is_proxy: asked.flags & PROXY != 0,
        }
    }

    fn has(&self, neighbour: &Neighbour) -> bool {
        !self.is_proxy
            && is_family(self.family, neighbour.ip)
            && self.link.is_none_or(|link| link == neighbour.interface)
    }

    pub fn fill(
        &self,
        stack: &NetStack,
        dump: &Dump,
        from: usize,
        to: &mut Writer<'_>,
    ) -> Progress {
        let all = plan::neighbours(stack);
        let wanted = all.iter().filter(|neighbour| self.has(neighbour));
        dump.fill(to, wanted.skip(from).map(message))
    }
}

/// Shows one neighbour.
pub(crate) fn get(
    requester: &Requester<'_>,
    object: &netlink::Neighbour<'_>,
) -> Result<(), Refusal> {
    let all = plan::neighbours(requester.stack());
    let is_meant = |neighbour: &&Neighbour| {
        Some(neighbour.ip) == object.address && neighbour.interface == object.link
    };
    let found = all.iter().find(is_meant).ok_or(Error::NotFound)?;
    Ok(requester.answer(&message(found))?)
}

/// The interface and the address that a command means.
fn parse(stack: &NetStack, object: &netlink::Neighbour<'_>) -> Result<(u32, IpAddr), Refusal> {
    match link_of(stack, object.link)?.number {
        LOOPBACK => Err(Refusal::new(
            Error::Unsupported,
            "Loopback has no neighbours",
        )),
        number => Ok((number, object.address.ok_or(Error::Invalid)?)),
    }
}

/// Sets one, for good: what is set is not asked for.
pub(crate) fn add(
    requester: &Requester<'_>,
    object: &netlink::Neighbour<'_>,
) -> Result<(), Refusal> {
    let stack = requester.stack();
    let (link, ip) = parse(stack, object)?;
    let is_same = |known: &Neighbour| (known.interface, known.ip) == (link, ip);
    let is_known = plan::neighbours(stack).iter().any(is_same);
    if is_known && requester.has(Flags::EXCLUSIVE) {
        return Err(Error::Exists.into());
    }
    let station = object.link_address.and_then(|bytes| bytes.try_into().ok());
    match (station, object.state & PERMANENT != 0) {
        (Some(mac), true) => Ok(plan::set_neighbour(stack, link, ip, mac)?),
        _ => Err(Refusal::new(
            Error::Unsupported,
            "Only permanent neighbours with a station can be set",
        )),
    }
}

/// Forgets one; the next packet to it asks anew.
pub(crate) fn remove(
    requester: &Requester<'_>,
    object: &netlink::Neighbour<'_>,
) -> Result<(), Refusal> {
    let stack = requester.stack();
    let (link, ip) = parse(stack, object)?;
    Ok(plan::remove_neighbour(stack, link, ip)?)
}
