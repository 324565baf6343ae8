//! How the tests reach their machines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use qemu::{Nic, namespace};

/// A way to the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Ports of the loopback address, forwarded by QEMU.
    Forwarded,
    /// The tap interface in our own namespace.
    Tap,
}

impl Network {
    /// The namespace's if we are inside of one.
    pub fn of_this_process() -> Self {
        if namespace::set_up() {
            Self::Tap
        } else {
            Self::Forwarded
        }
    }

    /// Where a port of the next machine, which has a card of this name, will be reached.
    pub fn address_of(self, port: u16, nic: &str) -> Result<SocketAddr, String> {
        let nic = match nic {
            "e1000" => Nic::E1000,
            "igb" => Nic::Igb,
            _ => Nic::Virtio,
        };
        match self {
            Self::Tap if !namespace::suit(nic) => Err(format!("no tap interface for {nic:?}")),
            Self::Tap => Ok(SocketAddr::new(IpAddr::V4(namespace::MACHINE), port)),
            Self::Forwarded => {
                let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
                Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
            }
        }
    }

    /// The flags of `sietch run` that make `port` reachable at `reached`.
    pub fn flags(self, port: u16, reached: SocketAddr) -> Vec<String> {
        match self {
            Self::Tap => [
                "--net",
                &format!("tap={}", namespace::TAP),
                "--ip",
                namespace::MACHINE_FLAG,
            ]
            .map(str::to_string)
            .to_vec(),
            Self::Forwarded => vec!["-p".into(), format!("{reached}:{port}")],
        }
    }
}
