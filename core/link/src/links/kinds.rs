//! What links are: their kinds, their addresses' sources, and the line that shows one.

use alloc::string::String;

use wire::MacAddr;

use crate::group::RingsWanted;
use crate::table::LinkId;
use crate::vlan::VlanId;

/// What a link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A card's own.
    Phys,
    /// A port without a card.
    Etherstub,
    /// A station of its own on a port.
    Vnic,
    /// The port's station in a VLAN.
    Vlan,
}

impl Class {
    /// Its name, as `dladm` shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Phys => "phys",
            Self::Etherstub => "etherstub",
            Self::Vnic => "vnic",
            Self::Vlan => "vlan",
        }
    }
}

/// Where a VNIC's address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacSource {
    /// The administrator.
    Given(MacAddr),
    /// Three bytes in front of these random bits.
    Random {
        /// The first three bytes.
        prefix: [u8; 3],
        /// Unpredictable.
        bits: u64,
    },
}

/// Where a link's address came from (`MACADDRTYPE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacOrigin {
    /// The card's own; of a VLAN, its port's.
    Factory,
    /// The administrator.
    Fixed,
    /// Random bits.
    Random,
    /// There is none: an etherstub is no station.
    None,
}

impl MacOrigin {
    /// Its name, as `dladm` shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Factory => "factory",
            Self::Fixed => "fixed",
            Self::Random => "random",
            Self::None => "--",
        }
    }
}

/// A VNIC to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VnicSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its port.
    pub over: LinkId,
    /// Its address.
    pub mac: MacSource,
    /// Its VLAN.
    pub vid: Option<VlanId>,
    /// The rings it wants.
    pub rings: RingsWanted,
}

/// A line of `dladm show-link` and its kin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkInfo {
    /// Which.
    pub id: LinkId,
    /// Its name.
    pub name: String,
    /// What it is.
    pub class: Class,
    /// Its port, if that is another link.
    pub over: Option<LinkId>,
    /// Its address.
    pub mac: MacAddr,
    /// Where that came from.
    pub mac_origin: MacOrigin,
    /// Its VLAN.
    pub vid: Option<VlanId>,
    /// Its largest payload.
    pub mtu: u16,
    /// Whether its card takes everything now (`promisc`).
    pub is_promiscuous: bool,
    /// Messages that taught nothing (`dhcpdropped`).
    pub dhcp_dropped: u64,
}
