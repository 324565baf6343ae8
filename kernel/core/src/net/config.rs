//! Addresses at boot: from the command line's `ip=`, or from DHCP.

use core::net::Ipv4Addr;

use inet::Cidr;

use super::shard::{self, with_stack};

/// How the machine gets its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Config {
    /// Asks a server (RFC 2131); programs start meanwhile.
    Dhcp,
    /// A fixed address, and the router to the rest of the world.
    Static {
        /// Ours, with our network.
        address: Cidr,
        /// The default router.
        gateway: Option<Ipv4Addr>,
    },
    /// Loopback only.
    None,
}

impl Config {
    /// Reads the value of `ip=`: `dhcp`, `none` or `ADDRESS/BITS[,GATEWAY]`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "dhcp" => Some(Self::Dhcp),
            "none" => Some(Self::None),
            _ => parse_static(text),
        }
    }
}

fn parse_static(text: &str) -> Option<Config> {
    let (cidr, gateway) = match text.split_once(',') {
        Some((cidr, gateway)) => (cidr, Some(gateway.parse().ok()?)),
        None => (text, None),
    };
    let (address, bits) = cidr.split_once('/')?;
    let address = Cidr::new(address.parse().ok()?, bits.parse().ok()?)?;
    Some(Config::Static { address, gateway })
}

/// The buffers of connections grow by at most this share of all packet buffers.
const GROWTH_SHARE: usize = 4;

/// Creates the stack with its loopback; once at boot, before devices are attached.
pub fn init() {
    super::memory::init();
    shard::init(inet::Config {
        buffer_growth_max: super::memory::bytes_max() / GROWTH_SHARE,
        ..inet::Config::default()
    });
    super::poll::init();
}

/// Gives the attached device its address.
pub fn configure(config: Config) {
    with_stack(|stack, link| match config {
        Config::Dhcp => stack.start_dhcp(link),
        Config::Static { address, gateway } => {
            stack.set_address(Some(address));
            stack.set_gateway(gateway);
        }
        Config::None => {}
    });
    super::poll_now();
}
