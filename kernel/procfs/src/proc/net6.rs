//! What /proc/net says of IPv6 and of multicast groups (proc_pid_net(5)).
//!
//! Interfaces are loopback, 1, and the stack's one port, 2.

use alloc::vec::Vec;
use core::fmt::{Result, Write};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Instant;
use inet::{AddressOrigin, AddressState, Ipv6Address, Route, RouteOrigin, Via};

use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/if_inet6", if_inet6),
    Entry::new("net/igmp", igmp),
    Entry::new("net/igmp6", igmp6),
    Entry::new("net/ipv6_route", ipv6_route),
    Entry::new("net/snmp6", snmp6),
];

/// Linux's flags of an address (include/uapi/linux/if_addr.h).
const DUPLICATE: u8 = 0x08;
const DEPRECATED: u8 = 0x20;
const TENTATIVE: u8 = 0x40;
const PERMANENT: u8 = 0x80;

/// Linux's scopes of an address.
const SCOPE_HOST: u8 = 0x10;
const SCOPE_LINK: u8 = 0x20;
const SCOPE_GLOBAL: u8 = 0;

/// Linux's flags of a route (include/uapi/linux/route.h, ipv6_route.h).
const UP: u32 = 0x1;
const GATEWAY: u32 = 0x2;
const REJECT: u32 = 0x200;
const DEFAULT: u32 = 0x1_0000;
const ADDRCONF: u32 = 0x4_0000;
const EXPIRES: u32 = 0x40_0000;
const LOCAL: u32 = 0x8000_0000;

const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// An address without colons.
struct Hex(Ipv6Addr);

impl core::fmt::Display for Hex {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> Result {
        write!(f, "{:032x}", self.0.to_bits())
    }
}

fn addresses() -> Vec<Ipv6Address> {
    net::current_stack()
        .with_first_shard(|stack| stack.addresses_v6().copied().collect())
        .unwrap_or_default()
}

fn if_inet6(text: &mut Text) -> Result {
    let mut line = |ip, prefix_len: u8, (scope, flags): (u8, u8), name: &str| {
        let index = if name == "lo" { 1 } else { 2 };
        writeln!(
            text,
            "{} {index:02x} {prefix_len:02x} {scope:02x} {flags:02x} {name:>8}",
            Hex(ip)
        )
    };
    line(Ipv6Addr::LOCALHOST, 128, (SCOPE_HOST, PERMANENT), "lo")?;
    addresses().iter().try_for_each(|own| {
        let scope = match own.addr.is_unicast_link_local() {
            true => SCOPE_LINK,
            false => SCOPE_GLOBAL,
        };
        line(own.addr, own.prefix_len, (scope, flags_of(own)), "eth0")
    })
}

fn flags_of(own: &Ipv6Address) -> u8 {
    let state = match own.state {
        AddressState::Tentative => TENTATIVE,
        AddressState::Preferred => 0,
        AddressState::Deprecated => DEPRECATED,
        AddressState::Duplicate => TENTATIVE | DUPLICATE,
    };
    match own.origin {
        AddressOrigin::Advert => state,
        AddressOrigin::LinkLocal | AddressOrigin::Static => state | PERMANENT,
    }
}

fn ipv6_route(text: &mut Text) -> Result {
    let is_v6 = |route: &&Route| route.destination.network().is_ipv6();
    let routes = net::current_stack()
        .with_first_shard(|stack| stack.routes().filter(is_v6).copied().collect());
    let routes: Vec<Route> = routes.unwrap_or_default();
    routes.iter().try_for_each(|route| way(text, route))?;
    let own = addresses().into_iter().map(|own| (own.addr, "eth0"));
    let own = own.chain([(Ipv6Addr::LOCALHOST, "lo")]);
    own.into_iter().try_for_each(|(ip, name)| {
        let any = Hex(Ipv6Addr::UNSPECIFIED);
        writeln!(
            text,
            "{} 80 {any} 00 {any} 00000000 00000001 00000000 {:08x} {name:>8}",
            Hex(ip),
            UP | LOCAL
        )
    })
}

fn way(text: &mut Text, route: &Route) -> Result {
    let IpAddr::V6(network) = route.destination.network() else {
        return Ok(());
    };
    let (source, source_len) = match route.source.map(|source| (source.network(), source)) {
        Some((IpAddr::V6(source), prefix)) => (source, prefix.prefix_len()),
        _ => (Ipv6Addr::UNSPECIFIED, 0),
    };
    let router = match route.via {
        Via::Router(IpAddr::V6(router)) => router,
        _ => Ipv6Addr::UNSPECIFIED,
    };
    writeln!(
        text,
        "{} {:02x} {} {source_len:02x} {} {:08x} 00000001 00000000 {:08x}     eth0",
        Hex(network),
        route.destination.prefix_len(),
        Hex(source),
        Hex(router),
        route.metric,
        route_flags(route)
    )
}

fn route_flags(route: &Route) -> u32 {
    let via = match route.via {
        Via::OnLink => 0,
        Via::Router(_) => GATEWAY,
        Via::Unreachable => REJECT,
    };
    let pick = |is_so: bool, flag: u32| if is_so { flag } else { 0 };
    let is_advert = route.origin == RouteOrigin::Advert;
    let is_default = route.destination.prefix_len() == 0;
    UP | via
        | pick(is_advert, ADDRCONF)
        | pick(is_advert && is_default, DEFAULT)
        | pick(route.expires < Instant::NEVER, EXPIRES)
}

/// Groups of the port that are of the wanted family.
fn groups<A>(pick: impl Fn(IpAddr) -> Option<A>) -> Vec<A> {
    net::current_stack()
        .with_first_shard(|stack| stack.groups().filter_map(&pick).collect())
        .unwrap_or_default()
}

/// Members are not counted apart, so there is one of each.
fn igmp(text: &mut Text) -> Result {
    let joined = groups(|group| match group {
        IpAddr::V4(group) => Some(group),
        IpAddr::V6(_) => None,
    });
    writeln!(
        text,
        "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter"
    )?;
    for (index, name, more) in [(1, "lo", &[][..]), (2, "eth0", &joined[..])] {
        writeln!(text, "{index}\t{name:<10}: {:5}      V3", more.len() + 1)?;
        for group in [ALL_HOSTS].iter().chain(more) {
            let number = u32::from_ne_bytes(group.octets());
            writeln!(text, "\t\t\t\t{number:08X}     1 0:00000000\t\t0")?;
        }
    }
    Ok(())
}

fn igmp6(text: &mut Text) -> Result {
    let joined = groups(|group| match group {
        IpAddr::V6(group) => Some(group),
        IpAddr::V4(_) => None,
    });
    for (index, name, more) in [(1, "lo", &[][..]), (2, "eth0", &joined[..])] {
        for group in [ALL_NODES].iter().chain(more) {
            let group = Hex(*group);
            writeln!(text, "{index:<4} {name:<15} {group}     1 0000000C 0")?;
        }
    }
    Ok(())
}

fn snmp6(text: &mut Text) -> Result {
    let stats = net::current_stack().stats();
    stats
        .snmp6
        .iter()
        .try_for_each(|(name, count)| writeln!(text, "{name:<32}\t{count}"))
}
