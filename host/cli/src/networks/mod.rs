//! Networks of machines: `sietch network` and `run --network`.
//!
//! A network is a folder of the user's data with its description and who had which address ([`Store`]). Its switch is
//! a process (`sietch network serve`) that its first machine starts and that goes with the last one; it is found by its
//! socket in the user's folder for what runs. `host/switch` says how the switch works.

mod store;

use std::env;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use qemu::{Machine, Net, Switched};
use switch::join::JoinError;
use switch::protocol::Join;
use switch::{Files, Lease, Membership, Network};

use crate::failure::Failure;
use crate::flags::{Ip, NetFlag, RunFlags};

pub(crate) use store::{Store, users};

/// The network that `flags` name.
pub fn of(flags: &RunFlags) -> Result<Option<Network>, Failure> {
    let name = match (&flags.net, &flags.program.ip) {
        (NetFlag::Network(name), _) => name,
        (_, Some(Ip::OfNetwork(address))) => {
            return Err(Failure::NoPrefix {
                address: address.to_string(),
            });
        }
        _ if !flags.network.aliases.is_empty() => {
            return Err(Failure::AliasWithoutNetwork);
        }
        _ => return Ok(None),
    };
    match not_on_a_network(flags) {
        Some(flag) => Err(Failure::NotOnNetwork { flag }),
        None => Store::of_user()?.network(name).map(Some),
    }
}

/// The flag that goes not with a network, whose switch says what it would.
fn not_on_a_network(flags: &RunFlags) -> Option<&'static str> {
    let is_foreign = |ip: &Ip<Ipv4Addr>| !matches!(ip, Ip::OfNetwork(_));
    let flags = [
        ("--mac-address", flags.mac_address.is_some()),
        ("--bypass", flags.bypass.is_some()),
        ("--ip6", flags.program.ip6.is_some()),
        ("--dry-run", flags.dry_run),
        (
            "--ip ADDRESS/LENGTH",
            flags.program.ip.as_ref().is_some_and(is_foreign),
        ),
    ];
    let given = flags.into_iter().find(|(_, is_given)| *is_given);
    given.map(|(flag, _)| flag)
}

/// Makes `machine` a member as long as this process lives.
pub fn join(
    network: &Network,
    flags: &RunFlags,
    name: &str,
    machine: &mut Machine,
) -> Result<(), Failure> {
    let files = Store::of_user()?.files(&network.name)?;
    let join = Join {
        name: name.into(),
        aliases: flags.network.aliases.clone(),
        wish: wish(flags),
        card: machine.card_socket(),
        way_out: machine.way_out_socket(),
    };
    let start = starter(&network.name)?;
    let member = Membership::join(&files.socket, &join, &*start);
    let member = member.map_err(|error| match error {
        JoinError::Refused(sentence) => Failure::NotJoined { sentence },
        JoinError::Io(reason) => Failure::NoSwitch {
            name: network.name.clone(),
            reason,
        },
    })?;
    add_to(machine, network, &member.lease);
    member.keep(&files.socket, join, start);
    Ok(())
}

fn wish(flags: &RunFlags) -> Option<Ipv4Addr> {
    match flags.program.ip {
        Some(Ip::OfNetwork(address)) => Some(address),
        _ => None,
    }
}

/// Gives the machine what the switch has for it.
fn add_to(machine: &mut Machine, network: &Network, lease: &Lease) {
    let place = Switched {
        address: lease.address,
        subnet: network.subnet,
        prefix_len: network.prefix_len,
        gateway: network.gateway(),
        name_server: network.name_server(),
    };
    let ip = format!(
        " ip={}/{},{}",
        lease.address, network.prefix_len, place.gateway
    );
    let ip6 = match lease.address6 {
        Some(address) => format!(" ip6={address}/64"),
        None => " ip6=none".into(),
    };
    machine.command_line.push_str(&(ip + &ip6));
    machine.mac = Some(lease.mac);
    machine.net = Net::Switched(place);
    machine.forwarder = qemu::passt::forwarder(&machine.net, &machine.forwards);
}

/// What starts the network's switch, as a process that outlives this one.
fn starter(name: &str) -> Result<Box<switch::join::Start>, Failure> {
    let this = env::current_exe().map_err(Failure::file("sietch"))?;
    let name = name.to_string();
    Ok(Box::new(move || start(&this, &name)))
}

fn start(sietch: &Path, name: &str) -> io::Result<()> {
    let mut child = Command::new(sietch)
        .args(["network", "serve", name])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is not for it.
        .process_group(0)
        .spawn()?;
    // Its end is to be noticed, whenever that is.
    thread::spawn(move || child.wait());
    Ok(())
}

/// The switch of the network `name`, until its last machine has left.
pub fn serve(name: &str) -> Result<(), Failure> {
    let store = Store::of_user()?;
    let (network, files) = (store.network(name)?, store.files(name)?);
    let Files { socket, .. } = &files;
    switch::serve(network, &files).map_err(Failure::file(socket))
}
