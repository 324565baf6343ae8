//! The network that a machine is on, and its address there.

use std::net::Ipv4Addr;

use qemu::Net;

use crate::flags::{Ip, NetFlag, ProgramFlags, RunFlags};

/// The addresses of the user network.
pub(crate) const USER_SUBNET: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 0);
pub(crate) const USER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
pub(crate) const USER_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
pub(crate) const USER_NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
pub(crate) const USER_PREFIX_LEN: u8 = 24;

/// The machine's address.
pub fn address(flags: &ProgramFlags, net: &Net) -> Ip<Ipv4Addr> {
    flags.ip.clone().unwrap_or(match net {
        Net::User => Ip::Static {
            address: USER_ADDRESS,
            prefix_len: USER_PREFIX_LEN,
            gateway: Some(USER_GATEWAY),
        },
        Net::Tap { .. } | Net::Datagrams { .. } | Net::Switched(_) => Ip::Automatic,
        Net::None => Ip::None,
    })
}

/// The network that `flags` ask for.
pub fn net(flags: &RunFlags) -> Net {
    match flags.first_net() {
        // Its switch says the rest once the machine has a name.
        NetFlag::User | NetFlag::Network(_) => Net::User,
        NetFlag::Tap(interface) => Net::Tap {
            interface: interface.clone(),
        },
        NetFlag::Datagrams { local, remote } => Net::Datagrams {
            local: local.clone(),
            remote: remote.clone(),
        },
        NetFlag::None => Net::None,
    }
}
