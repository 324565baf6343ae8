//! `--ip` and `--ip6`: how the machine gets its address of one family.

use std::fmt::{self, Display};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The address of a machine, of family `A`; printed as the kernel's command line has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ip<A> {
    /// From the network: a DHCP server, or the prefixes that routers announce.
    Automatic,
    /// No address.
    None,
    /// A fixed address of the network that `--network` names.
    OfNetwork(A),
    /// A fixed address.
    Static {
        /// The address.
        address: A,
        /// How many bits of it name the network.
        prefix_len: u8,
        /// Where the way out is.
        gateway: Option<A>,
    },
}

/// What differs between the families.
pub trait Family: FromStr + Display {
    /// Bits of an address.
    const BITS: u8;
    /// The word for [`Ip::Automatic`].
    const AUTOMATIC: &str;
}

impl Family for Ipv4Addr {
    const BITS: u8 = 32;
    const AUTOMATIC: &str = "dhcp";
}

impl Family for Ipv6Addr {
    const BITS: u8 = 128;
    const AUTOMATIC: &str = "auto";
}

impl<A: Family> FromStr for Ip<A> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            text if text == A::AUTOMATIC => Ok(Self::Automatic),
            text => {
                let alone = || text.parse().ok().map(Self::OfNetwork);
                parse_static(text).or_else(alone).ok_or_else(|| {
                    let automatic = A::AUTOMATIC;
                    format!("give ADDRESS/LENGTH[,GATEWAY], {automatic} or none")
                })
            }
        }
    }
}

/// `ADDRESS/LENGTH[,GATEWAY]`.
fn parse_static<A: Family>(text: &str) -> Option<Ip<A>> {
    let (network, gateway) = match text.split_once(',') {
        Some((network, gateway)) => (network, Some(gateway.parse().ok()?)),
        None => (text, None),
    };
    let (address, prefix_len) = network.split_once('/')?;
    let prefix_len = prefix_len.parse().ok().filter(|len| *len <= A::BITS)?;
    Some(Ip::Static {
        address: address.parse().ok()?,
        prefix_len,
        gateway,
    })
}

impl<A: Family> Display for Ip<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Automatic => f.write_str(A::AUTOMATIC),
            Self::None => f.write_str("none"),
            Self::OfNetwork(address) => address.fmt(f),
            Self::Static {
                address,
                prefix_len,
                gateway: Some(gateway),
            } => write!(f, "{address}/{prefix_len},{gateway}"),
            Self::Static {
                address,
                prefix_len,
                gateway: None,
            } => write!(f, "{address}/{prefix_len}"),
        }
    }
}
