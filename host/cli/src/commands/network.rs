//! `sietch network`: networks with a name, whose machines reach each other.

use serde::Serialize;
use serde_json::{Value, json};
use switch::{Network, join};

use crate::failure::Failure;
use crate::flags::OutputFlags;
use crate::flags::{
    NetworkCommand, NetworkConnectFlags, NetworkDisconnectFlags, NetworkInspectFlags,
    NetworkNamesFlags, OnNetwork,
};
use crate::line;
use crate::networks::{self, Store, Wish};
use crate::state::{Folder, Settings};

/// Runs the command.
pub fn network(command: &NetworkCommand) -> Result<u8, Failure> {
    let store = Store::of_user()?;
    match command {
        NetworkCommand::Create(flags) => {
            println!("{}", store.create(flags)?.name);
            Ok(0)
        }
        NetworkCommand::Ls(output) => ls(&store, output),
        NetworkCommand::Rm(flags) => rm(&store, flags),
        NetworkCommand::Inspect(flags) => inspect(&store, flags),
        NetworkCommand::Connect(flags) => connect(&store, flags),
        NetworkCommand::Disconnect(flags) => disconnect(flags),
        NetworkCommand::Serve(flags) => networks::serve(&flags.name).map(|()| 0),
    }
}

/// The fields are those of `--output json`.
#[derive(Serialize)]
struct Row {
    name: String,
    subnet: String,
    ipv6: Option<String>,
    used_by: Vec<String>,
}

fn ls(store: &Store, output: &OutputFlags) -> Result<u8, Failure> {
    let row = |network: Network| Row {
        subnet: format!("{}/{}", network.subnet, network.prefix_len),
        ipv6: network.prefix6.map(|prefix| format!("{prefix}/64")),
        used_by: networks::users(&network.name),
        name: network.name,
    };
    let rows: Vec<Row> = store.list().into_iter().map(row).collect();
    output.list(&rows, |rows| {
        println!("{:<20} {:<19} {:<25} USED BY", "NAME", "SUBNET", "IPV6");
        for row in rows {
            let line = format!(
                "{:<20} {:<19} {:<25} {}",
                row.name,
                row.subnet,
                row.ipv6.as_deref().unwrap_or_default(),
                row.used_by.join(", ")
            );
            println!("{}", line.trim_end());
        }
    })?;
    Ok(0)
}

fn rm(store: &Store, flags: &NetworkNamesFlags) -> Result<u8, Failure> {
    for name in &flags.names {
        store.remove(name)?;
        println!("{name}");
    }
    Ok(0)
}

fn connect(store: &Store, flags: &NetworkConnectFlags) -> Result<u8, Failure> {
    check_ip(store, flags)?;
    let on = OnNetwork {
        name: flags.network.clone(),
        ip: flags.ip,
        aliases: flags.aliases.clone(),
    };
    let wish = Wish::Connect(on.to_string());
    match ask_session(&flags.machine, &wish)? {
        true => Ok(0),
        false => change(&flags.machine, |settings| {
            networks::connected(settings, &on)
        }),
    }
}

fn disconnect(flags: &NetworkDisconnectFlags) -> Result<u8, Failure> {
    let (machine, network) = (&flags.machine, &flags.network);
    let wish = Wish::Disconnect {
        network: network.clone(),
        by_force: flags.force,
    };
    match ask_session(machine, &wish)? {
        true => Ok(0),
        false => change(machine, |settings| {
            networks::disconnected(settings, network)
        }),
    }
}

/// Whether the address that the machine is to have is for it, so that it is not refused at its next start only.
fn check_ip(store: &Store, flags: &NetworkConnectFlags) -> Result<(), Failure> {
    let network = store.network(&flags.network)?;
    let Some(ip) = flags.ip else {
        return Ok(());
    };
    let of_others = |sentence| Failure::NotJoined { sentence };
    network.check_member(ip).map_err(of_others)?;
    let switch = join::describe(&store.files(&flags.network)?.socket);
    let members = switch.map(|switch| switch.members).unwrap_or_default();
    let own = flags.machine.to_ascii_lowercase();
    let mut others = members
        .iter()
        .filter(|member| member.names.first() != Some(&own));
    match others.any(|member| member.lease.address == ip) {
        true => Err(of_others(format!("Another machine has {ip}."))),
        false => Ok(()),
    }
}

/// Whether the machine runs and can do that meanwhile, which is done then.
fn ask_session(machine: &str, wish: &Wish) -> Result<bool, Failure> {
    let folder = Folder::of(machine);
    match folder.running() {
        Some(_) => networks::ask(folder.path(), wish),
        None => Ok(false),
    }
}

/// Changes the line with which a machine is started again.
fn change(
    name: &str,
    to: impl FnOnce(&Settings) -> Result<Vec<String>, Failure>,
) -> Result<u8, Failure> {
    line::change(name, to)?;
    println!("{name} has that from its next start on: `sietch restart {name}`.");
    Ok(0)
}

fn inspect(store: &Store, flags: &NetworkInspectFlags) -> Result<u8, Failure> {
    let names = &flags.networks.names;
    let described = names.iter().map(|name| describe(store, name));
    let networks: Vec<Value> = described.collect::<Result<_, _>>()?;
    flags.output.show(&networks)?;
    Ok(0)
}

fn describe(store: &Store, name: &str) -> Result<Value, Failure> {
    let network = store.network(name)?;
    let switch = join::describe(&store.files(name)?.socket);
    let members = switch.iter().flat_map(|switch| &switch.members);
    let members = members.map(|member| {
        json!({
            "name": member.names.first(),
            "aliases": member.names.get(1..),
            "address": member.lease.address,
            "address6": member.lease.address6,
        })
    });
    Ok(json!({
        "name": network.name,
        "subnet": format!("{}/{}", network.subnet, network.prefix_len),
        "ipv6": network.prefix6.map(|prefix| format!("{prefix}/64")),
        "gateway": network.gateway(),
        "name_server": network.name_server(),
        "created_s": network.created_s,
        "switch_pid": switch.as_ref().map(|switch| switch.pid),
        "machines": members.collect::<Vec<_>>(),
        "dropped": switch.as_ref().map(|switch| switch.drops),
    }))
}
