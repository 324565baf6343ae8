//! `net.ipv4`, but for TCP.

use alloc::vec::Vec;
use core::fmt::{Result, Write};
use core::sync::atomic::Ordering;

use inet::PortRange;
use sync::Error;

use super::form::{self, INT_MAX, cell, fixed, number, switch};
use vfs::pseudo::{Entry, Text};

/// Ports below are never chosen for a program (`ip_unprivileged_port_start`).
const CHOSEN_PORT_MIN: u16 = 1024;
/// So many stretches of ports may be reserved.
const RESERVED_MAX: usize = 1024;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    fixed!("ipv4/ip_forward", 0),
    number!("ipv4/ip_default_ttl", 1..=255, hop_limit),
    fixed!("ipv4/ip_no_pmtu_disc", 0),
    Entry {
        path: "sys/net/ipv4/ip_local_port_range",
        generate: port_range,
        store: Some(set_port_range),
    },
    Entry {
        path: "sys/net/ipv4/ip_local_reserved_ports",
        generate: reserved_ports,
        store: Some(set_reserved_ports),
    },
    cell!(
        "ipv4/ip_unprivileged_port_start",
        0..=u16::MAX.into(),
        net::current_stack().first_free_port
    ),
    switch!("ipv4/icmp_echo_ignore_all", ignores_echo),
    fixed!("ipv4/icmp_echo_ignore_broadcasts", 1),
    fixed!("ipv4/icmp_ratelimit", 0),
    number!(
        "ipv4/icmp_msgs_per_sec",
        0..=INT_MAX,
        icmp_errors_per_second
    ),
];

fn port_range(text: &mut Text) -> Result {
    let range = net::current_stack().settings().ports;
    writeln!(text, "{}\t{}", range.first(), range.last())
}

fn set_port_range(bytes: &[u8]) -> sync::Result<()> {
    let [first, last] = form::parse_all(bytes)?;
    let first = form::within(first, CHOSEN_PORT_MIN.into()..=u16::MAX.into())?;
    let last = form::within(last, 1..=u16::MAX.into())?;
    let range = PortRange::new(first, last).ok_or(Error::Invalid)?;
    net::current_stack().change_settings(|config| config.ports = range);
    Ok(())
}

/// `8080,9000-9010`, or nothing.
fn reserved_ports(text: &mut Text) -> Result {
    for (place, range) in net::current_stack().reserved_ports().iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        match (range.first(), range.last()) {
            (first, last) if first == last => write!(text, "{comma}{first}")?,
            (first, last) => write!(text, "{comma}{first}-{last}")?,
        }
    }
    writeln!(text)
}

fn set_reserved_ports(bytes: &[u8]) -> sync::Result<()> {
    let stretches = form::text(bytes)?.split(',').map(str::trim);
    let stretches = stretches.filter(|stretch| !stretch.is_empty());
    let ranges: Option<Vec<PortRange>> = stretches.take(RESERVED_MAX + 1).map(stretch).collect();
    let ranges = ranges.filter(|ranges| ranges.len() <= RESERVED_MAX);
    net::current_stack().reserve_ports(&ranges.ok_or(Error::Invalid)?);
    Ok(())
}

fn stretch(text: &str) -> Option<PortRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    PortRange::new(first.parse().ok()?, last.parse().ok()?)
}
