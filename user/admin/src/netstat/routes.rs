//! `netstat -rn`: the routing tables.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

use super::ends::address;
use crate::World;

/// A line of a table.
struct Route {
    destination: String,
    gateway: String,
    flags: u32,
    uses: u64,
    interface: String,
}

/// `RTF_*`, and illumos' letters.
const FLAGS: [(u32, char); 3] = [(0x1, 'U'), (0x2, 'G'), (0x4, 'H')];
/// It leads to ourselves (`RTF_LOCAL`), which is not shown.
const LOCAL: u32 = 0x8000_0000;

fn destination(first: IpAddr, prefix_len: u32) -> String {
    match prefix_len {
        0 => "default".into(),
        prefix_len => format!("{first}/{prefix_len}"),
    }
}

fn gateway(address: IpAddr) -> String {
    match address.is_unspecified() {
        true => "-".into(),
        false => address.to_string(),
    }
}

/// `interface destination gateway flags references uses metric mask ...`
fn parse4(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [interface, first, router, flags, _, uses, _, mask, ..] = words[..] else {
        return None;
    };
    let mask = u32::from_str_radix(mask, 16).ok()?;
    Some(Route {
        destination: destination(address(first)?, mask.count_ones()),
        gateway: gateway(address(router)?),
        flags: u32::from_str_radix(flags, 16).ok()?,
        uses: uses.parse().ok()?,
        interface: interface.into(),
    })
}

/// Here octets are in their order.
fn address6(digits: &str) -> Option<IpAddr> {
    let bits = u128::from_str_radix(digits, 16).ok()?;
    Some(Ipv6Addr::from(bits).into())
}

/// `destination length source length gateway metric references uses flags interface`
fn parse6(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [first, len, _, _, router, _, _, uses, flags, interface] = words[..] else {
        return None;
    };
    Some(Route {
        destination: destination(address6(first)?, u32::from_str_radix(len, 16).ok()?),
        gateway: gateway(address6(router)?),
        flags: u32::from_str_radix(flags, 16).ok()?,
        uses: u64::from_str_radix(uses, 16).ok()?,
        interface: interface.into(),
    })
}

const HEADS: &str = "  Destination           Gateway           Flags    Use     Interface\n\
    -------------------- -------------------- ----- ---------- ---------\n";

fn table(family: &str, routes: &[Route]) -> String {
    let mut text = format!("Routing Table: {family}\n{HEADS}");
    for route in routes {
        let letters = FLAGS.iter().filter(|(bit, _)| route.flags & bit != 0);
        let letters: String = letters.map(|(_, letter)| letter).collect();
        _ = writeln!(
            text,
            "{:<20} {:<20} {letters:<5} {:10} {}",
            route.destination, route.gateway, route.uses, route.interface
        );
    }
    text + "\n"
}

/// Shows the table of each family that has routes.
pub fn show(world: &mut World<'_>) -> Result<(), String> {
    let four = world.files.read("/proc/net/route")?;
    let six = world.files.read("/proc/net/ipv6_route").unwrap_or_default();
    let four: Vec<Route> = four.lines().skip(1).filter_map(parse4).collect();
    let six: Vec<Route> = six.lines().filter_map(parse6).collect();
    for (family, mut routes) in [("IPv4", four), ("IPv6", six)] {
        routes.retain(|route| route.flags & LOCAL == 0);
        if !routes.is_empty() {
            world.console.print(&table(family, &routes));
        }
    }
    Ok(())
}
