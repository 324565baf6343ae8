//! Addresses: shown, given and taken away.

use core::net::IpAddr;

use base::Instant;
use inet::AddressState;
use netlink::{Dump, Flags, Progress, Writer};
use sync::Error;

use crate::answer::Refusal;
use crate::requester::Requester;
use net::plan::{self, Address};
use net::{Interface, NetStack};

/// `AF_INET`, `AF_INET6`.
const V4: u8 = 2;
const V6: u8 = 10;

/// `RT_SCOPE_*`: how far a destination is.
pub(crate) const EVERYWHERE: u8 = 0;
pub(crate) const LINK: u8 = 253;
pub(crate) const HOST: u8 = 254;

/// `IFA_F_*`.
const DUPLICATE: u32 = 0x8;
const DEPRECATED: u32 = 0x20;
const TENTATIVE: u32 = 0x40;
const PERMANENT: u32 = 0x80;

/// The number of an address's family.
pub(crate) fn family_of(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => V4,
        IpAddr::V6(_) => V6,
    }
}

/// Whether a request for `family` means `ip`; none means all.
pub(crate) fn is_family(family: u8, ip: IpAddr) -> bool {
    family == 0 || family == family_of(ip)
}

fn scope_of(ip: IpAddr) -> u8 {
    match ip {
        ip if ip.is_loopback() => HOST,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => LINK,
        _ => EVERYWHERE,
    }
}

fn flags_of(own: &Address) -> u32 {
    let state = match own.state {
        AddressState::Preferred => 0,
        AddressState::Tentative => TENTATIVE,
        AddressState::Deprecated => DEPRECATED,
        AddressState::Duplicate => TENTATIVE | DUPLICATE,
    };
    match own.valid_until {
        Instant::NEVER => state | PERMANENT,
        _ => state,
    }
}

/// Whole seconds until then; all ones are for ever.
fn seconds_until(end: Instant) -> u32 {
    match end {
        Instant::NEVER => u32::MAX,
        end => u32::try_from(end.since(mach::time::now()).as_secs()).unwrap_or(u32::MAX),
    }
}

/// An address as a message.
pub(crate) fn message(own: &Address) -> netlink::Address<'_> {
    // IPv6 has the address alone.
    let is_v4 = own.ip.is_ipv4();
    netlink::Address {
        family: family_of(own.ip),
        prefix_len: own.prefix_len,
        flags: flags_of(own),
        scope: scope_of(own.ip),
        link: own.interface,
        address: Some(own.ip),
        local: is_v4.then_some(own.ip),
        broadcast: plan::broadcast(own)
            .filter(|_| !own.ip.is_loopback())
            .map(IpAddr::V4),
        label: is_v4.then(|| own.label.as_bytes()),
        lifetimes: Some([
            seconds_until(own.preferred_until),
            seconds_until(own.valid_until),
            0,
            0,
        ]),
        ..netlink::Address::default()
    }
}

/// Which addresses a dump shows.
#[derive(Clone, Debug)]
pub(crate) struct DumpFilter {
    family: u8,
    link: Option<u32>,
}

impl DumpFilter {
    pub fn of(asked: &netlink::Address<'_>, is_strict: bool) -> Self {
        let link = Some(asked.link).filter(|link| is_strict && *link != 0);
        Self {
            family: asked.family,
            link,
        }
    }

    fn has(&self, own: &Address) -> bool {
        is_family(self.family, own.ip) && self.link.is_none_or(|link| link == own.interface)
    }

    pub fn fill(
        &self,
        stack: &NetStack,
        dump: &Dump,
        from: usize,
        to: &mut Writer<'_>,
    ) -> Progress {
        let all = plan::addresses(stack);
        let wanted = all.iter().filter(|own| self.has(own));
        dump.fill(to, wanted.skip(from).map(message))
    }
}

/// The address that a command means.
fn parse(stack: &NetStack, object: &netlink::Address<'_>) -> Result<(u32, IpAddr), Refusal> {
    let ip = object.local.or(object.address).ok_or(Error::Invalid)?;
    if object.local.is_some() && object.address.is_some_and(|peer| peer != ip) {
        return Err(Refusal::new(Error::Unsupported, "No links to one peer"));
    }
    link_of(stack, object.link)?;
    Ok((object.link, ip))
}

/// Gives a link an address; one that it has already is no error if it may be replaced.
pub(crate) fn add(requester: &Requester<'_>, object: &netlink::Address<'_>) -> Result<(), Refusal> {
    let stack = requester.stack();
    let (link, ip) = parse(stack, object)?;
    match plan::add_address(stack, link, ip, object.prefix_len) {
        Err(Error::Exists) if requester.has(Flags::REPLACE) => Ok(()),
        Err(Error::NoBuffers) => Err(Refusal::new(
            Error::NoBuffers,
            "The link has as many addresses as it can have",
        )),
        done => Ok(done?),
    }
}

/// Takes an address away.
pub(crate) fn remove(
    requester: &Requester<'_>,
    object: &netlink::Address<'_>,
) -> Result<(), Refusal> {
    let stack = requester.stack();
    let (link, ip) = parse(stack, object)?;
    Ok(plan::remove_address(stack, link, ip)?)
}

/// The interface of that number.
pub(crate) fn link_of(stack: &NetStack, number: u32) -> Result<Interface, Error> {
    stack.interface(number).ok_or(Error::WrongDevice)
}
