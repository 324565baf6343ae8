//! IPv6 on the port (RFC 8200, RFC 4861, RFC 4862).
//!
//! It is silent until the shell starts it; `::1` works always. Then the port makes itself
//! a link-local address, asks whether somebody has it, looks for a router, and makes an
//! address of each prefix that routers announce:
//!
//! ```text
//! tentative ──nobody objects──▶ preferred ──▶ deprecated ──▶ (gone)
//!     └──somebody has it──▶ duplicate
//! ```
//!
//! Everything on the link may be a lie. What other hosts can make us keep is bounded
//! (addresses and routes here, neighbours in `neighbor`, groups in `multicast`), what they
//! can make us send is limited by `Budget`s and timers, and each message that breaks a
//! rule of RFC 4861 is counted and dropped.
//!
//! | file | what |
//! |---|---|
//! | `address` | our addresses, their states, which is the source |
//! | `autoconf` | duplicate detection, router solicitation, announcements |
//! | `discovery` | neighbour solicitations and advertisements |
//! | `follow` | several stacks on one port: one runs IPv6, the others follow |
//! | `input` | headers, extensions, fragments |
//! | `icmp` | echo and errors |
//! | `listener` | multicast listener discovery |
//!
//! Not here: redirects (we follow none), DHCPv6, forwarding, privacy addresses (RFC 8981).

mod address;
mod adverts;
mod autoconf;
mod discovery;
mod follow;
mod icmp;
mod input;
mod listener;

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use base::Instant;

pub use address::{AddressOrigin, AddressState, Ipv6Address};
pub use follow::Ipv6Snapshot;
pub(crate) use input::is_link_local;

use crate::net::Net;

/// How addresses' last 64 bits are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceId {
    /// Of the station's address (RFC 4291 appendix A): the same everywhere.
    Eui64,
    /// Of a secret and the prefix (RFC 7217): stable here, and unrelated elsewhere.
    Stable([u64; 2]),
}

/// What IPv6 may do by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Config {
    /// How addresses are made.
    pub interface_id: InterfaceId,
    /// Whether routers' announcements are believed.
    pub accept_adverts: bool,
}

impl Default for Ipv6Config {
    fn default() -> Self {
        Self {
            interface_id: InterfaceId::Eui64,
            accept_adverts: true,
        }
    }
}

/// The state of IPv6 on the port.
pub(crate) struct Ipv6 {
    config: Ipv6Config,
    addresses: Vec<Ipv6Address>,
    /// What routers say the link takes.
    link_mtu: u16,
    /// Questions for routers still to be sent, and when the next one is due.
    solicits_left: u8,
    solicit_due: Instant,
    /// The address made of our station's is somebody else's (RFC 4862 5.4.5).
    is_off: bool,
    /// Another stack runs IPv6 on this port: we say nothing of ourselves.
    is_follower: bool,
}

impl Ipv6 {
    fn new(config: Ipv6Config) -> Self {
        Self {
            config,
            addresses: Vec::new(),
            link_mtu: u16::MAX,
            solicits_left: 0,
            solicit_due: Instant::NEVER,
            is_off: false,
            is_follower: false,
        }
    }

    /// Largest packet on the link.
    pub fn mtu(&self, port_mtu: u16) -> u16 {
        port_mtu.min(self.link_mtu)
    }

    /// When something is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let due = self.addresses.iter().map(|address| address.due);
        due.chain([self.solicit_due])
            .min()
            .filter(|due| *due < Instant::NEVER)
    }
}

impl Net {
    pub fn owns_v6(&self, addr: Ipv6Addr) -> bool {
        self.v6.as_ref().is_some_and(|v6| v6.owns(addr))
    }
}

/// The group that asks for `addr` go to (RFC 4291 2.7.1).
pub(crate) const fn solicited_node(addr: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b] = addr.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | a & 0xff, b)
}
