//! What tools ask.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use link::links::Class;
use link::prefix::IpPrefix;
use link::vlan::VlanId;
use wire::MacAddr;

use crate::bytes::{choice, message, record};

/// What a tool asks. Links and flows go by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A page of all links; answered by `Answer::Links`.
    Links {
        /// Where it begins: zero, or what the last page's `next` says.
        from: u16,
    },
    /// The groups of a card; answered by `Answer::Groups`.
    Groups {
        /// The card's own link.
        link: String,
    },
    /// The properties of a link; answered by `Answer::Props`.
    Props {
        /// Which link.
        link: String,
    },
    /// What a link has carried; answered by `Answer::Statistics`.
    Statistics {
        /// Which link.
        link: String,
    },
    /// All statistics of a link by the names of `kstat`; answered by `Answer::Kstats`.
    Kstats {
        /// Which link.
        link: String,
        /// Where the page begins: zero, or what the last page's `next` says.
        from: u16,
    },
    /// The last frames that one ring of a port dropped; answered by `Answer::Drops`.
    Drops {
        /// The port: a card's own link, or an etherstub.
        link: String,
        /// Which ring.
        ring: u16,
    },
    /// The flows of one link; answered by `Answer::Flows`.
    Flows {
        /// Where to look for a link that has flows: zero, or the last answer's `next`.
        from: u16,
    },
    /// What a flow has carried; answered by `Answer::FlowStatistics`.
    FlowStatistics {
        /// Which flow.
        flow: String,
    },
    /// A new VNIC; answered by `Answer::Created`.
    CreateVnic(NewVnic),
    /// A new VLAN; answered by `Answer::Created`.
    CreateVlan {
        /// Its name, if it is not to be named after its port.
        name: Option<String>,
        /// Its port.
        over: String,
        /// Its identifier.
        vid: VlanId,
    },
    /// A new etherstub; answered by `Answer::Created`.
    CreateEtherstub {
        /// Its name.
        name: String,
    },
    /// Removes a link that is of this class; answered by `Answer::Done`, as are all
    /// that follow.
    Delete {
        /// Which link.
        link: String,
        /// What it must be.
        class: Class,
    },
    /// Sets a property of a link.
    SetProp {
        /// Which link.
        link: String,
        /// The property and its value.
        setting: Setting,
    },
    /// Sets a property of a link back to its default.
    ResetProp {
        /// Which link.
        link: String,
        /// Which property.
        name: String,
    },
    /// A new flow.
    AddFlow {
        /// Its name.
        name: String,
        /// Its link.
        link: String,
        /// What it matches, as `flowadm add-flow -a` takes it.
        attributes: String,
        /// Its properties.
        settings: Vec<Setting>,
    },
    /// Removes a flow.
    RemoveFlow {
        /// Which flow.
        flow: String,
    },
    /// Removes all flows of a link.
    RemoveFlows {
        /// Which link.
        link: String,
    },
    /// Sets a property of a flow.
    SetFlowProp {
        /// Which flow.
        flow: String,
        /// The property and its value.
        setting: Setting,
    },
    /// Sets a property of a flow back to its default.
    ResetFlowProp {
        /// Which flow.
        flow: String,
        /// Which property.
        name: String,
    },
    /// Gives the interface of a link an address, in the first stack.
    AddAddress(AddressOf),
    /// Takes it away.
    RemoveAddress(AddressOf),
    /// A route by the interface of a link.
    AddRoute(RouteOf),
    /// Takes it away.
    RemoveRoute(RouteOf),
    /// The filters of a link; answered by `Answer::Filters`.
    Filters {
        /// Which link.
        link: String,
    },
    /// Takes a filter from whoever holds it.
    DeleteFilter {
        /// Its link.
        link: String,
        /// Which one.
        id: u32,
    },
    /// The programs that have queues of a link; answered by `Answer::Doorbells`.
    Doorbells {
        /// Which link.
        link: String,
    },
}

/// An address with its network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressOf {
    /// Whose it is.
    pub link: String,
    /// The address, and how many bits its network has.
    pub address: IpPrefix,
}

/// A route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteOf {
    /// By which link.
    pub link: String,
    /// Where to.
    pub destination: IpPrefix,
    /// The router; none if the destinations are neighbours.
    pub router: Option<IpAddr>,
}

impl Request {
    /// Whether it is about the interface of a link, which must be there.
    pub const fn needs_interface(&self) -> bool {
        matches!(
            self,
            Self::AddAddress(_) | Self::RemoveAddress(_) | Self::AddRoute(_) | Self::RemoveRoute(_)
        )
    }

    /// Whether it would change something.
    pub const fn is_change(&self) -> bool {
        !matches!(
            self,
            Self::Links { .. }
                | Self::Groups { .. }
                | Self::Props { .. }
                | Self::Statistics { .. }
                | Self::Kstats { .. }
                | Self::Drops { .. }
                | Self::Flows { .. }
                | Self::FlowStatistics { .. }
                | Self::Filters { .. }
                | Self::Doorbells { .. }
        )
    }
}

/// A property and its value, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Which property.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Where a new VNIC's address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewMac {
    /// The administrator.
    Given(MacAddr),
    /// The shell's random bits behind these three bytes.
    Random {
        /// The first three bytes, if they are not the usual ones.
        prefix: Option<[u8; 3]>,
    },
}

/// A VNIC to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewVnic {
    /// Its name.
    pub name: String,
    /// Its port.
    pub over: String,
    /// Its address.
    pub mac: NewMac,
    /// Its VLAN.
    pub vid: Option<VlanId>,
    /// Its properties.
    pub settings: Vec<Setting>,
}

choice!(Request {
    0 => Links { from },
    1 => Groups { link },
    2 => Props { link },
    3 => Statistics { link },
    4 => Flows { from },
    5 => FlowStatistics { flow },
    6 => CreateVnic(vnic),
    7 => CreateVlan { name, over, vid },
    8 => CreateEtherstub { name },
    9 => Delete { link, class },
    10 => SetProp { link, setting },
    11 => ResetProp { link, name },
    12 => AddFlow { name, link, attributes, settings },
    13 => RemoveFlow { flow },
    14 => RemoveFlows { link },
    15 => SetFlowProp { flow, setting },
    16 => ResetFlowProp { flow, name },
    17 => Kstats { link, from },
    18 => Drops { link, ring },
    19 => AddAddress(address),
    20 => RemoveAddress(address),
    21 => AddRoute(route),
    22 => RemoveRoute(route),
    23 => Filters { link },
    24 => DeleteFilter { link, id },
    25 => Doorbells { link },
});
choice!(NewMac { 0 => Given(mac), 1 => Random { prefix } });
record!(Setting { name, value });
record!(AddressOf { link, address });
record!(RouteOf {
    link,
    destination,
    router
});
record!(NewVnic {
    name,
    over,
    mac,
    vid,
    settings
});
message!(Request);
