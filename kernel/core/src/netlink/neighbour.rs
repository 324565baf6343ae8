//! Neighbours: shown.

use netlink::{Dump, Progress, Writer};

use super::address::{family_of, is_family};
use super::answer::Refusal;
use super::serve::Asked;
use crate::error::Error;
use crate::net::plan::{self, Neighbour};

/// `NUD_REACHABLE`.
const REACHABLE: u16 = 0x2;
/// `NTF_PROXY`.
const PROXY: u8 = 0x8;
/// `RTN_UNICAST`.
const UNICAST: u8 = 1;

/// A neighbour as a message.
pub(super) fn message(neighbour: &Neighbour) -> netlink::Neighbour<'_> {
    netlink::Neighbour {
        family: family_of(neighbour.ip),
        link: neighbour.interface,
        state: REACHABLE,
        kind: UNICAST,
        address: Some(neighbour.ip),
        link_address: Some(&neighbour.mac),
        ..netlink::Neighbour::default()
    }
}

/// Which neighbours a dump shows.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    family: u8,
    link: Option<u32>,
    /// We answer for nobody else.
    is_proxy: bool,
}

impl Wanted {
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

    pub fn fill(&self, dump: &Dump, from: usize, to: &mut Writer<'_>) -> Progress {
        let all = plan::neighbours();
        let wanted = all.iter().filter(|neighbour| self.has(neighbour));
        dump.fill(to, wanted.skip(from).map(message))
    }
}

/// Shows one neighbour.
pub(super) fn get(asked: &Asked<'_>, object: &netlink::Neighbour<'_>) -> Result<(), Refusal> {
    let all = plan::neighbours();
    let is_meant = |neighbour: &&Neighbour| {
        Some(neighbour.ip) == object.address && neighbour.interface == object.link
    };
    let found = all.iter().find(is_meant).ok_or(Error::NotFound)?;
    Ok(asked.socket.answer(&asked.header, &message(found))?)
}
