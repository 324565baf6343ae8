//! The link layer's own words in messages.
//!
//! What has rules is made by who knows them, so a message cannot smuggle in a VLAN 4095
//! or a prefix longer than its address.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hal::NicError;
use link::bandwidth::{Bandwidth, BandwidthError};
use link::flow::{FlowError, FlowProps, Kind, Priority, Rule};
use link::group::PlaceError;
use link::links::{Class, LinkError, MacOrigin};
use link::open::{Mode, OpenError};
use link::prefix::IpPrefix;
use link::promisc::NotSet;
use link::props::PropError;
use link::vlan::VlanId;
use wire::MacAddr;

use crate::bytes::{Coded, Malformed, Reader, Writer, choice, record};

impl Coded for MacAddr {
    fn put(&self, to: &mut Writer) {
        to.put(&self.0);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bytes = from.take(6)?;
        bytes.try_into().map(Self).map_err(|_| Malformed)
    }
}

impl Coded for VlanId {
    fn put(&self, to: &mut Writer) {
        VlanId::get(*self).put(to);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::new(u16::get(from)?).ok_or(Malformed)
    }
}

impl Coded for Bandwidth {
    fn put(&self, to: &mut Writer) {
        self.bps().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::new(u64::get(from)?).map_err(|_| Malformed)
    }
}

impl Coded for IpPrefix {
    fn put(&self, to: &mut Writer) {
        self.addr().put(to);
        self.len().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let addr = IpAddr::get(from)?;
        Self::new(addr, u8::get(from)?).ok_or(Malformed)
    }
}

impl Coded for IpAddr {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::V4(addr) => (4_u8.put(to), addr.to_bits().put(to)),
            Self::V6(addr) => (6_u8.put(to), addr.to_bits().put(to)),
        };
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::get(from)? {
            4 => Ok(Ipv4Addr::from_bits(u32::get(from)?).into()),
            6 => Ok(Ipv6Addr::from_bits(u128::get(from)?).into()),
            _ => Err(Malformed),
        }
    }
}

impl Coded for PropError {
    fn put(&self, to: &mut Writer) {
        match *self {
            Self::Unknown => 0_u8.put(to),
            Self::ReadOnly => 1_u8.put(to),
            Self::BadValue => 2_u8.put(to),
            Self::OutOfRange => 3_u8.put(to),
            Self::TooMany { most } => {
                4_u8.put(to);
                (most as u64).put(to);
            }
            Self::Bandwidth(error) => {
                5_u8.put(to);
                error.put(to);
            }
            Self::NoCpu => 6_u8.put(to),
            Self::NoSuchCpu { cpus } => {
                7_u8.put(to);
                cpus.put(to);
            }
        }
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::get(from)? {
            0 => Self::Unknown,
            1 => Self::ReadOnly,
            2 => Self::BadValue,
            3 => Self::OutOfRange,
            4 => Self::TooMany {
                most: usize::try_from(u64::get(from)?).map_err(|_| Malformed)?,
            },
            5 => Self::Bandwidth(Coded::get(from)?),
            6 => Self::NoCpu,
            7 => Self::NoSuchCpu {
                cpus: u32::get(from)?,
            },
            _ => return Err(Malformed),
        })
    }
}

impl Coded for NotSet {
    fn put(&self, _: &mut Writer) {}

    fn get(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self)
    }
}

choice!(Class { 0 => Phys, 1 => Etherstub, 2 => Vnic, 3 => Vlan });
choice!(MacOrigin { 0 => Factory, 1 => Fixed, 2 => Random, 3 => None });
choice!(Priority { 0 => Low, 1 => Medium, 2 => High });
choice!(Kind {
    0 => LocalIp, 1 => RemoteIp, 2 => Transport, 3 => LocalPort, 4 => RemotePort, 5 => DsField,
});
choice!(Rule {
    0 => LocalIp(prefix),
    1 => RemoteIp(prefix),
    2 => Transport(protocol),
    3 => LocalPort(protocol, port),
    4 => RemotePort(protocol, port),
    5 => DsField { value, mask },
});
choice!(BandwidthError { 0 => NotANumber, 1 => TooLow { bps } });
choice!(FlowError {
    0 => UnknownAttribute,
    1 => Twice,
    2 => BadValue,
    3 => PortWithoutTransport,
    4 => BadCombination,
    5 => MixedKinds { existing },
    6 => SameRule,
    7 => NameTaken,
    8 => TooMany,
    9 => NoSuchFlow,
    10 => Bandwidth(error),
    11 => BadName,
});
choice!(NicError { 0 => FiltersFull, 1 => Unsupported, 2 => Failed });
choice!(PlaceError { 0 => NoGroup, 1 => Nic(error) });
choice!(Mode { 0 => Uninitialised, 1 => Passive, 2 => Active, 3 => Exclusive });
choice!(OpenError { 0 => OutOfState { mode }, 1 => Busy, 2 => NotBound, 3 => TooMany });
choice!(LinkError {
    0 => NotFound,
    1 => BadName,
    2 => NameTaken,
    3 => TooMany,
    4 => WrongClass,
    5 => BadAddress,
    6 => AddressTaken,
    7 => InUse,
    8 => Place(error),
    9 => Nic(error),
    10 => Prop(error),
    11 => Flow(error),
    12 => Open(error),
    13 => NotPromiscuous(error),
});
record!(FlowProps { maxbw, priority });
