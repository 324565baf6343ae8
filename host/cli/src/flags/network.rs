//! `sietch network`, and what `run` says of networks.

use std::net::Ipv4Addr;
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::{InspectOutput, NetFlag, OutputFlags, RunFlags, parse_name};

/// What a machine is called on its network.
#[derive(Clone, Debug, Default, Args)]
pub struct NetworkFlags {
    /// One more name for the machine on its network, which several machines may have
    #[arg(long = "network-alias", id = "network_alias", value_name = "NAME", value_parser = parse_name)]
    pub aliases: Vec<String>,
}

impl RunFlags {
    /// Where the machine's card leads first.
    pub fn first_net(&self) -> &NetFlag {
        self.net.first().unwrap_or(&NetFlag::User)
    }

    /// The other networks that it leads to.
    pub fn further_nets(&self) -> &[NetFlag] {
        self.net.get(1..).unwrap_or_default()
    }
}

/// `sietch network`.
#[derive(Debug, Subcommand)]
pub enum NetworkCommand {
    /// Make a network
    Create(NetworkCreateFlags),
    /// List the networks
    #[command(visible_alias = "list")]
    Ls(OutputFlags),
    /// Remove networks that no machine is on
    #[command(visible_alias = "remove")]
    Rm(NetworkNamesFlags),
    /// Show all that is known of networks, with the machines that are on them, as JSON
    Inspect(NetworkInspectFlags),
    /// Put a machine on one more network, also while it runs
    Connect(NetworkConnectFlags),
    /// Take a machine from a network, also while it runs
    Disconnect(NetworkDisconnectFlags),
    /// Be a network's switch; machines start it
    #[command(hide = true)]
    Serve(ServeFlags),
}

/// `sietch network create`.
#[derive(Debug, Args)]
pub struct NetworkCreateFlags {
    /// Its addresses [default: one of 10.89.0.0/24 to 10.89.255.0/24 that is free]
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    pub subnet: Option<Subnet>,
    /// Give its machines IPv6 addresses too
    #[arg(long)]
    pub ipv6: bool,
    /// Its name
    #[arg(value_parser = NetworkCreateFlags::parse_name)]
    pub name: String,
}

impl NetworkCreateFlags {
    /// A name that `--network` takes for that of a network: `none` and its kin mean something else there.
    ///
    /// Errors: words.
    pub fn parse_name(text: &str) -> Result<String, String> {
        let name = parse_name(text)?;
        match text.parse() {
            Ok(NetFlag::Network(_)) => Ok(name),
            _ => Err(format!(
                "--network {name} means something else: give another name"
            )),
        }
    }
}

/// `sietch network inspect`.
#[derive(Debug, Args)]
pub struct NetworkInspectFlags {
    /// The form.
    #[command(flatten)]
    pub output: InspectOutput,
    /// The networks.
    #[command(flatten)]
    pub networks: NetworkNamesFlags,
}

/// `sietch network rm` and `inspect`.
#[derive(Debug, Args)]
pub struct NetworkNamesFlags {
    /// The networks
    #[arg(required = true, value_name = "NAME", value_parser = parse_name)]
    pub names: Vec<String>,
}

/// `sietch network connect`.
#[derive(Debug, Args)]
pub struct NetworkConnectFlags {
    /// Its address there [default: the one that it had last time, or the first that is free]
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<Ipv4Addr>,
    /// One more name for it there, which several machines may have
    #[arg(long = "alias", value_name = "NAME", value_parser = parse_name)]
    pub aliases: Vec<String>,
    /// The network
    #[arg(value_parser = parse_name)]
    pub network: String,
    /// The machine
    #[arg(value_parser = parse_name)]
    pub machine: String,
}

/// `sietch network disconnect`.
#[derive(Debug, Args)]
pub struct NetworkDisconnectFlags {
    /// Also if the machine does not give its link back
    #[arg(short, long)]
    pub force: bool,
    /// The network
    #[arg(value_parser = parse_name)]
    pub network: String,
    /// The machine
    #[arg(value_parser = parse_name)]
    pub machine: String,
}

/// `sietch network serve`.
#[derive(Debug, Args)]
pub struct ServeFlags {
    /// The network
    #[arg(value_parser = parse_name)]
    pub name: String,
}

/// `--subnet`: addresses that are a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The first.
    pub first: Ipv4Addr,
    /// How many bits of it are the network's.
    pub prefix_len: u8,
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give ADDRESS/LENGTH, such as 10.90.0.0/24";
        let (first, prefix_len) = text.split_once('/').ok_or(FORM)?;
        let first = first.parse().map_err(|_| FORM)?;
        let prefix_len = prefix_len.parse().map_err(|_| FORM)?;
        switch::Network::check_subnet(first, prefix_len)?;
        Ok(Self { first, prefix_len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_name_that_means_something_else() {
        let name = NetworkCreateFlags::parse_name;
        assert_eq!(name("front-1"), Ok("front-1".into()));
        for wrong in [
            "",
            "none",
            "user",
            "host",
            "bridge",
            "tap=eth0",
            "dgram=/a,/b",
            "a/b",
        ] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
