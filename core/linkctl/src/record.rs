//! Records: what outlasts a restart, its line in a file, and what it asks for when a machine
//! starts anew.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use link::prefix::IpPrefix;
use link::props::parse_mac;
use link::vlan::VlanId;

use crate::{AddressOf, NewMac, NewVnic, Request, RouteOf, Setting};

/// Something that outlasts a restart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// An etherstub.
    Etherstub {
        /// Its name.
        name: String,
    },
    /// A VNIC.
    Vnic {
        /// Its name.
        name: String,
        /// Its port.
        over: String,
        /// Its address.
        mac: String,
        /// Its VLAN, or 0.
        vid: String,
    },
    /// A VLAN.
    Vlan {
        /// Its name.
        name: String,
        /// Its port.
        over: String,
        /// Its identifier.
        vid: String,
    },
    /// A property of a link.
    LinkProp {
        /// Which link.
        link: String,
        /// Which property.
        name: String,
        /// Its value.
        value: String,
    },
    /// A flow.
    Flow {
        /// Its name.
        name: String,
        /// Its link.
        link: String,
        /// What it matches.
        attributes: String,
    },
    /// A property of a flow.
    FlowProp {
        /// Which flow.
        flow: String,
        /// Which property.
        name: String,
        /// Its value.
        value: String,
    },
    /// An address.
    Address {
        /// Whose.
        link: String,
        /// With the bits of its network.
        address: String,
    },
    /// A route.
    Route {
        /// By which link.
        link: String,
        /// With its bits.
        destination: String,
        /// The router, or [`NO_ROUTER`].
        router: String,
    },
}

/// In the place of a router of destinations that are neighbours.
pub const NO_ROUTER: &str = "-";

/// A field that no tool would have written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadField {
    /// An address that no station can have.
    Mac,
    /// An identifier that no VLAN can have.
    Vid,
    /// What is no address, or no prefix of one.
    Address,
}

impl fmt::Display for BadField {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Mac => "that is no station's address",
            Self::Vid => "identifiers go from 1 to 4094",
            Self::Address => "that is no address",
        })
    }
}

impl Record {
    /// Its line, with the end.
    pub fn line(&self) -> String {
        let fields: &[&str] = match self {
            Self::Etherstub { name } => &["etherstub", name],
            Self::Vnic {
                name,
                over,
                mac,
                vid,
            } => &["vnic", name, over, mac, vid],
            Self::Vlan { name, over, vid } => &["vlan", name, over, vid],
            Self::LinkProp { link, name, value } => &["linkprop", link, name, value],
            Self::Flow {
                name,
                link,
                attributes,
            } => &["flow", name, link, attributes],
            Self::FlowProp { flow, name, value } => &["flowprop", flow, name, value],
            Self::Address { link, address } => &["address", link, address],
            Self::Route {
                link,
                destination,
                router,
            } => &["route", link, destination, router],
        };
        fields.join("\t") + "\n"
    }

    /// From its line, without the end; `None` if it is no record's.
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let text = |at: usize| fields[at].to_string();
        Some(match (fields[0], fields.len()) {
            ("etherstub", 2) => Self::Etherstub { name: text(1) },
            ("vnic", 5) => Self::Vnic {
                name: text(1),
                over: text(2),
                mac: text(3),
                vid: text(4),
            },
            ("vlan", 4) => Self::Vlan {
                name: text(1),
                over: text(2),
                vid: text(3),
            },
            ("linkprop", 4) => Self::LinkProp {
                link: text(1),
                name: text(2),
                value: text(3),
            },
            ("flow", 4) => Self::Flow {
                name: text(1),
                link: text(2),
                attributes: text(3),
            },
            ("flowprop", 4) => Self::FlowProp {
                flow: text(1),
                name: text(2),
                value: text(3),
            },
            ("address", 3) => Self::Address {
                link: text(1),
                address: text(2),
            },
            ("route", 4) => Self::Route {
                link: text(1),
                destination: text(2),
                router: text(3),
            },
            _ => return None,
        })
    }

    /// What it asks for.
    pub fn request(self) -> Result<Request, BadField> {
        let prefix = |text: &str| IpPrefix::parse(text).ok_or(BadField::Address);
        let parse_vid = |text: &str| text.parse().ok().and_then(VlanId::new).ok_or(BadField::Vid);
        Ok(match self {
            Self::Etherstub { name } => Request::CreateEtherstub { name },
            Self::Vnic {
                name,
                over,
                mac,
                vid,
            } => Request::CreateVnic(NewVnic {
                name,
                over,
                mac: NewMac::Given(parse_mac(&mac).ok_or(BadField::Mac)?),
                vid: match vid.as_str() {
                    "0" => None,
                    vid => Some(parse_vid(vid)?),
                },
                settings: Vec::new(),
            }),
            Self::Vlan { name, over, vid } => Request::CreateVlan {
                vid: parse_vid(&vid)?,
                name: Some(name),
                over,
            },
            Self::LinkProp { link, name, value } => Request::SetProp {
                link,
                setting: Setting { name, value },
            },
            Self::Flow {
                name,
                link,
                attributes,
            } => Request::AddFlow {
                name,
                link,
                attributes,
                settings: Vec::new(),
            },
            Self::FlowProp { flow, name, value } => Request::SetFlowProp {
                flow,
                setting: Setting { name, value },
            },
            Self::Address { link, address } => Request::AddAddress(AddressOf {
                address: prefix(&address)?,
                link,
            }),
            Self::Route {
                link,
                destination,
                router,
            } => Request::AddRoute(RouteOf {
                link,
                destination: prefix(&destination)?,
                router: match router.as_str() {
                    NO_ROUTER => None,
                    router => Some(router.parse().map_err(|_| BadField::Address)?),
                },
            }),
        })
    }

    /// Whether it is a link of that name, or about one.
    pub fn is_of_link(&self, link: &str) -> bool {
        match self {
            Self::Etherstub { name } | Self::Vnic { name, .. } | Self::Vlan { name, .. } => {
                name == link
            }
            Self::LinkProp { link: of, .. }
            | Self::Flow { link: of, .. }
            | Self::Address { link: of, .. }
            | Self::Route { link: of, .. } => of == link,
            Self::FlowProp { .. } => false,
        }
    }

    /// Whether it is a flow of that name, or about one.
    pub fn is_of_flow(&self, flow: &str) -> bool {
        match self {
            Self::Flow { name, .. } => name == flow,
            Self::FlowProp { flow: of, .. } => of == flow,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_no_tool_would_have_written_are_refused() {
        let request = |line: &str| Record::parse(line).expect("a record").request();
        for bad in [
            "address\tvnic1\t10.0.2.51/33",
            "address\tvnic1\there",
            "route\tvnic1\t10.0.0.0/8\t--",
            "route\tvnic1\tdefault\t10.0.2.2",
        ] {
            assert_eq!(request(bad), Err(BadField::Address), "{bad}");
        }
        assert!(request("route\tvnic1\t0.0.0.0/0\t10.0.2.2").is_ok());
    }

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let text = concat!(
            "etherstub\tstub0\n",
            "vnic\tvnic1\tnet0\t02:08:20:01:02:03\t0\n",
            "vlan\tnet2000\tnet0\t2\n",
            "linkprop\tvnic1\tallowed-dhcp-cids\tmy host;x=1\n",
            "flow\tweb\tvnic1\ttransport=tcp,local_port=80\n",
            "flowprop\tweb\tmaxbw\t10M\n",
            "address\tvnic1\t10.0.2.51/24\n",
            "route\tvnic1\t2001:db8::/32\tfe80::1\n",
            "route\tvnic1\t10.9.0.0/16\t-\n",
        );
        let records: Vec<_> = text.lines().filter_map(Record::parse).collect();
        let back: String = records.iter().map(Record::line).collect();
        assert_eq!(back, text);
        for bad in ["", "vnic", "vnic\ta\tb\tc\td\te", "aggr\taggr0"] {
            assert_eq!(Record::parse(bad), None, "{bad}");
        }
    }
}
