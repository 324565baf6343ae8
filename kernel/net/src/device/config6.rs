//! IPv6 at boot: from the command line's `ip6=`, or from routers. `disable_ipv6` comes here,
//! too.

use core::net::{IpAddr, Ipv6Addr};

use base::Instant;
use inet::{Ipv6Config, Prefix, Route, RouteOrigin, Via};

use crate::stack::{self, NetStack, routes};

/// How the machine gets its IPv6 addresses. It always makes itself a link-local one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Config6 {
    /// Of the prefixes that routers announce (RFC 4862).
    Auto,
    /// A fixed address; routers are not asked.
    Static {
        /// Ours.
        address: Ipv6Addr,
        /// Bits of its network.
        prefix_len: u8,
        /// The default router.
        gateway: Option<Ipv6Addr>,
    },
    /// None, not even the link-local one.
    None,
}

impl Config6 {
    /// Reads the value of `ip6=`: `auto`, `none` or `ADDRESS/BITS[,GATEWAY]`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "none" => Some(Self::None),
            _ => parse_static(text),
        }
    }
}

fn parse_static(text: &str) -> Option<Config6> {
    let (network, gateway) = match text.split_once(',') {
        Some((network, gateway)) => (network, Some(gateway.parse().ok()?)),
        None => (text, None),
    };
    let (address, bits) = network.split_once('/')?;
    Some(Config6::Static {
        address: address.parse().ok()?,
        prefix_len: bits.parse().ok().filter(|bits| *bits <= 128)?,
        gateway,
    })
}

/// Starts IPv6 on the attached device, anew if it runs, or ends it. Addresses can be used
/// when nobody objects, a second later. Further interfaces ask routers, or end it too.
///
/// What the stack refuses (an address that no host can have) is left out.
pub fn configure6(of: &NetStack, config: Config6) {
    configure_shard(of, 0, config);
    let further = match config {
        Config6::None => Config6::None,
        Config6::Auto | Config6::Static { .. } => Config6::Auto,
    };
    for shard in of.loopback_count()..of.shard_count() {
        configure_shard(of, shard, further);
    }
    super::poll::poll_now();
}

/// Starts IPv6 in the first stack if it does not speak it (`ip6=none`), as `ip6=auto` would have.
pub fn start6() {
    let first = stack::first();
    if !first.has_ipv6() {
        configure6(first, Config6::Auto);
    }
}

/// Starts IPv6 on a further interface, which is new, if its stack speaks it; it is heard of when
/// the shard runs.
pub(crate) fn start_further(of: &NetStack, shard: u16) {
    if of.has_ipv6() {
        configure_shard(of, shard, Config6::Auto);
    }
}

/// The first shard runs IPv6 on the card, and the card's other shards follow it.
fn configure_shard(of: &NetStack, shard: u16, config: Config6) {
    let rules = Ipv6Config {
        accept_adverts: config == Config6::Auto,
        ..Ipv6Config::default()
    };
    of.with_shard(shard, |stack, link| {
        if config == Config6::None {
            stack.stop_ipv6(link);
        }
        if config == Config6::None || stack.port().is_none() {
            return;
        }
        stack.start_ipv6(link, rules);
        let Config6::Static {
            address,
            prefix_len,
            gateway,
        } = config
        else {
            return;
        };
        if stack.add_address_v6(link, address, prefix_len).is_err() {
            mach::klog!("net ip6={address}/{prefix_len} error=no host can have it");
        }
        let default = gateway.map(|router| Route {
            destination: Prefix::ALL_V6,
            source: None,
            via: Via::Router(IpAddr::V6(router)),
            metric: 0,
            origin: RouteOrigin::Static,
            expires: Instant::NEVER,
        });
        // The table of a new stack has room.
        default.map(|route| stack.add_route(route));
    });
    if shard == 0 {
        of.with_shard(0, |stack, link| routes::follow(stack, link, of.count()));
    }
}
