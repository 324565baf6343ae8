//! What refusals say to people.

use alloc::format;
use alloc::string::String;
use core::fmt;

use link::bandwidth::BandwidthError;
use link::flow::{FlowError, Kind};
use link::group::PlaceError;
use link::links::{Class, LinkError};
use link::open::OpenError;
use link::props::PropError;

use crate::{AddressError, Refusal};

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&refusal(self))
    }
}

fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Malformed => "the kernel speaks another protocol".into(),
        Refusal::TooLong => "the answer is too long".into(),
        Refusal::NotPermitted => "only the administrator may do that".into(),
        Refusal::NoSuchLink { name } => no_such_link(name),
        Refusal::NotA { class } => format!("the link is {}", not_a(*class)),
        Refusal::Setting { name, error } => format!("{name}: {}", link_error(*error)),
        Refusal::Link(error) => link_error(*error),
        Refusal::Address(error) => address_error(*error).into(),
        Refusal::NoSuchFilter => "the link has no filter of that number".into(),
    }
}

fn address_error(error: AddressError) -> &'static str {
    match error {
        AddressError::NoInterface => "the link has no interface in the first network stack",
        AddressError::Exists => "it is there already",
        AddressError::NotThere => "it is not there",
        AddressError::NoRoom => "there is no room for it; an interface has one address of IPv4",
        AddressError::BadAddress => "no host or network can have that address",
        AddressError::NoRouter => "the router is no neighbour",
        AddressError::Unsupported => "the network stack cannot do that",
    }
}

fn no_such_link(name: &str) -> String {
    format!("there is no link {name}")
}

/// That a link is of another class, behind "is".
pub fn not_a(class: Class) -> &'static str {
    match class {
        Class::Phys => "not a card's own",
        Class::Etherstub => "not an etherstub",
        Class::Vnic => "not a VNIC",
        Class::Vlan => "not a VLAN",
    }
}

fn link_error(error: LinkError) -> String {
    match error {
        LinkError::NotFound => "there is no such link",
        LinkError::BadName => {
            "a link's name begins with a letter, ends in a digit, and has at most 31 letters, digits, _ and ."
        }
        LinkError::NameTaken => "a link has that name",
        LinkError::TooMany => "there are as many as there can be",
        LinkError::WrongClass => "the link is of a class that cannot have or be that",
        LinkError::BadAddress => "no station can have that address",
        LinkError::AddressTaken => "another link has that address there",
        LinkError::InUse => "the link is busy: somebody holds it, or links are over it",
        LinkError::Place(PlaceError::NoGroup) => "the card has no free group with those rings",
        LinkError::Place(PlaceError::Nic(_)) | LinkError::Nic(_) => "the card refuses",
        LinkError::Prop(error) => return prop_error(error),
        LinkError::Flow(error) => return flow_error(error),
        LinkError::Open(OpenError::Busy) => "somebody else holds the link",
        LinkError::Open(_) | LinkError::NotPromiscuous(_) => "the link is not in that state",
    }
    .into()
}

fn prop_error(error: PropError) -> String {
    match error {
        PropError::Unknown => "there is no such property".into(),
        PropError::ReadOnly => "the property is read-only".into(),
        PropError::BadValue => "the property cannot have that value".into(),
        PropError::OutOfRange => "the value is out of range".into(),
        PropError::TooMany { most } => format!("more than {most} entries"),
        PropError::NoCpu => "no CPU is named; any is what a link has that is reset".into(),
        PropError::NoSuchCpu { cpus: 0 | 1 } => "the machine's only CPU is 0".into(),
        PropError::NoSuchCpu { cpus } => format!("the machine's CPUs are 0 to {}", cpus - 1),
        PropError::Bandwidth(error) => bandwidth_error(error).into(),
    }
}

fn bandwidth_error(error: BandwidthError) -> &'static str {
    match error {
        BandwidthError::NotANumber => "a limit is a number with K, M or G behind it",
        BandwidthError::TooLow { .. } => "a limit is 0 or at least 1.2M",
    }
}

fn flow_error(error: FlowError) -> String {
    match error {
        FlowError::UnknownAttribute => "there is no such attribute or property",
        FlowError::Twice => "an attribute stands twice",
        FlowError::BadValue => "a value makes no sense",
        FlowError::PortWithoutTransport => "a port needs transport=tcp, udp or sctp",
        FlowError::BadCombination => "these attributes do not go together",
        FlowError::MixedKinds { existing } => {
            return format!(
                "the flows of one link look at the same thing, and this link's look at {}",
                kind(existing)
            );
        }
        FlowError::SameRule => "a flow of the link matches exactly that",
        FlowError::BadName => {
            "a flow's name begins with a letter and has at most 127 letters, digits, _, - and ."
        }
        FlowError::NameTaken => "a flow has that name",
        FlowError::TooMany => "there are as many flows as there can be",
        FlowError::NoSuchFlow => "there is no such flow",
        FlowError::Bandwidth(error) => bandwidth_error(error),
    }
    .into()
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::LocalIp => "local_ip",
        Kind::RemoteIp => "remote_ip",
        Kind::Transport => "transport",
        Kind::LocalPort => "transport and local_port",
        Kind::RemotePort => "transport and remote_port",
        Kind::DsField => "dsfield",
    }
}
