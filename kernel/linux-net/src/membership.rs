//! How programs name a multicast group and an interface (include/uapi/linux/in.h, in6.h).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::VirtAddr;
use mm::user;
use sync::{Error, Result};
use vfs::socket::{GroupMembership, SocketAddress};

use crate::address;
use crate::option_value::Layout;

/// Bytes of the group in front of the interface in a `struct ipv6_mreq`.
const GROUP6_BYTES: u64 = 16;
/// Where the name of the group lies in a `struct group_req`, and how long it is.
const REQUEST_NAME_OFFSET: u64 = 8;
const REQUEST_BYTES: u32 = 136;

/// Reads a value of `len` bytes at `at`.
///
/// Errors: `Invalid` if it is too short or names no group.
pub fn decode(layout: Layout, at: VirtAddr, len: u32) -> Result<GroupMembership> {
    match (layout, len) {
        (Layout::Interface, 4..8) => Ok(GroupMembership {
            group: Ipv4Addr::UNSPECIFIED.into(),
            interface: 0,
            local: Ipv4Addr::from(user::read::<[u8; 4]>(at)?),
        }),
        (Layout::Interface | Layout::Group, 8..12) => {
            let [group, local] = user::read::<[[u8; 4]; 2]>(at)?;
            Ok(four(group, local, 0))
        }
        (Layout::Interface | Layout::Group, 12..) => {
            let [group, local, interface] = user::read::<[[u8; 4]; 3]>(at)?;
            Ok(four(group, local, u32::from_ne_bytes(interface)))
        }
        (Layout::Group6, 20..) => {
            let group: [u8; 16] = user::read(at)?;
            Ok(GroupMembership {
                group: Ipv6Addr::from(group).into(),
                interface: user::read(at + GROUP6_BYTES)?,
                local: Ipv4Addr::UNSPECIFIED,
            })
        }
        (Layout::GroupRequest, REQUEST_BYTES..) => request(at),
        _ => Err(Error::Invalid),
    }
}

fn four(group: [u8; 4], local: [u8; 4], interface: u32) -> GroupMembership {
    GroupMembership {
        group: Ipv4Addr::from(group).into(),
        interface,
        // With a number, the address does not count.
        local: match interface {
            0 => Ipv4Addr::from(local),
            _ => Ipv4Addr::UNSPECIFIED,
        },
    }
}

fn request(at: VirtAddr) -> Result<GroupMembership> {
    let name_at = at + REQUEST_NAME_OFFSET;
    let name = address::read(name_at, REQUEST_BYTES - REQUEST_NAME_OFFSET as u32)?;
    let group: IpAddr = match name {
        SocketAddress::Inet(SocketAddr::V4(name)) => (*name.ip()).into(),
        SocketAddress::Inet(SocketAddr::V6(name)) => (*name.ip()).into(),
        _ => return Err(Error::Invalid),
    };
    Ok(GroupMembership {
        group,
        interface: user::read(at)?,
        local: Ipv4Addr::UNSPECIFIED,
    })
}
