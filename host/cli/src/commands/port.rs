//! `sietch port`: which ports of the host lead into a machine.

use crate::failure::Failure;
use crate::flags::PortFlags;
use crate::state::Folder;

/// Runs the command.
pub fn port(flags: &PortFlags) -> Result<u8, Failure> {
    let name = &flags.name;
    let running = Folder::of(name).running();
    let settings = running.ok_or_else(|| Failure::NoSuchMachine { name: name.clone() })?;
    for (host, guest) in settings
        .ports
        .iter()
        .filter_map(|port| port.split_once("->"))
    {
        println!("{guest} -> {host}");
    }
    Ok(0)
}
