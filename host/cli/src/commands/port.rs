//! `sietch port`: which ports of the host lead into a machine.

use serde::Serialize;

use crate::failure::Failure;
use crate::flags::PortFlags;
use crate::state::Folder;

/// Runs the command.
pub fn port(flags: &PortFlags) -> Result<u8, Failure> {
    let name = &flags.name;
    let running = Folder::of(name).running();
    let settings = running.ok_or_else(|| Failure::NoSuchMachine { name: name.clone() })?;
    let ports = settings.ports.iter().filter_map(|text| Port::read(text));
    let ports: Vec<Port> = ports.collect();
    flags.output.list(&ports, |ports| {
        for port in ports {
            let Port {
                guest_port,
                protocol,
                host_ip,
                host_port,
            } = port;
            println!("{guest_port}/{protocol} -> {host_ip}:{host_port}");
        }
    })?;
    Ok(0)
}

/// The fields are those of `--output json`.
#[derive(Serialize)]
struct Port {
    guest_port: u16,
    protocol: String,
    host_ip: String,
    host_port: u16,
}

impl Port {
    /// Of `ip:port->port/protocol`.
    fn read(text: &str) -> Option<Self> {
        let (host, guest) = text.split_once("->")?;
        let (host_ip, host_port) = host.rsplit_once(':')?;
        let (guest_port, protocol) = guest.split_once('/')?;
        Some(Self {
            guest_port: guest_port.parse().ok()?,
            protocol: protocol.into(),
            host_ip: host_ip.into(),
            host_port: host_port.parse().ok()?,
        })
    }
}
