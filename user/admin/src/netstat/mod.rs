//! `netstat`: sockets, routes, and what the protocols have counted (illumos' netstat(1M)).
//!
//! Figures come from `/proc/net`, names and columns are illumos'. Addresses are always shown
//! as numbers. Windows of connections are not in `/proc/net`, so their columns are left out.

mod counts;
mod ends;
mod routes;
mod sockets;
mod statistics;

use clap::Parser;

use crate::World;

pub(crate) use statistics::mib;

/// Shows sockets, routes, and what the protocols have counted
#[derive(Parser)]
#[command(name = "netstat", disable_help_subcommand = true)]
struct Flags {
    /// Show what the protocols have counted
    #[arg(short = 's', conflicts_with = "has_routes")]
    has_statistics: bool,
    /// Show routes
    #[arg(short = 'r')]
    has_routes: bool,
    /// Show sockets that listen, too
    #[arg(short = 'a')]
    is_all: bool,
    /// Show numbers, as always
    #[arg(short = 'n')]
    _is_numeric: bool,
    /// Show this protocol only: tcp, udp, ip, icmp, ipv6, icmpv6
    #[arg(short = 'P', value_name = "PROTOCOL")]
    protocol: Option<String>,
    /// Go on with what was counted in every so many seconds
    #[arg(value_parser = clap::value_parser!(u32).range(1..), requires = "has_statistics")]
    interval: Option<u32>,
    /// End after so many reports
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

impl Flags {
    /// Whether a protocol is wanted.
    fn wants(&self, protocol: &str) -> bool {
        let only = self.protocol.as_deref();
        only.is_none_or(|only| only.eq_ignore_ascii_case(protocol))
    }
}

/// Runs `netstat`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |flags: Flags, world| match &flags {
        Flags {
            has_statistics: true,
            ..
        } => statistics::watch(&flags, world),
        Flags {
            has_routes: true, ..
        } => routes::show(world),
        _ => sockets::show(&flags, world),
    })
}
