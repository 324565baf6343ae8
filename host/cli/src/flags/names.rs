//! By which names a machine is known, and by which it finds others.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

/// See the module.
#[derive(Clone, Debug, Default, Args)]
pub struct NameFlags {
    /// The name that programs see [default: the machine's]
    #[arg(long, value_name = "NAME")]
    pub hostname: Option<String>,
    /// The NIS domain that programs see
    #[arg(long, value_name = "NAME")]
    pub domainname: Option<String>,
    /// A server that is asked for names [default: QEMU's own, which asks the host's]
    #[arg(long, value_name = "ADDRESS")]
    pub dns: Vec<IpAddr>,
    /// A domain in which short names are searched
    #[arg(long, value_name = "DOMAIN")]
    pub dns_search: Vec<String>,
    /// An option of resolv.conf(5)
    #[arg(long, visible_alias = "dns-opt", value_name = "OPTION")]
    pub dns_option: Vec<String>,
    /// A line of /etc/hosts; host-gateway as address is this host
    #[arg(long, value_name = "NAME:ADDRESS")]
    pub add_host: Vec<HostEntry>,
    /// Have no name in /etc/hosts but localhost
    #[arg(long, conflicts_with = "add_host")]
    pub no_hosts: bool,
    /// A file whose lines /etc/hosts has, too
    #[arg(long, value_name = "FILE", conflicts_with = "no_hosts")]
    pub hosts_file: Option<PathBuf>,
    /// Leave the root's /etc/hostname as it is
    #[arg(long)]
    pub no_hostname: bool,
    /// The time zone, such as Europe/Vienna, or local for this host's [default: the image's, or this host's]
    #[arg(long, value_name = "ZONE")]
    pub tz: Option<String>,
}

/// `--add-host`: `NAME[;NAME...]:ADDRESS`, docker's `NAME=ADDRESS` too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Its names.
    pub names: Vec<String>,
    /// Its address; the host's if there is none.
    pub address: Option<IpAddr>,
}

impl FromStr for HostEntry {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "give NAME:ADDRESS, such as db:10.0.2.2 or db:host-gateway";
        let (names, address) = text
            .split_once('=')
            .or_else(|| text.split_once(':'))
            .ok_or(FORM)?;
        let address = address.trim_matches(['[', ']']);
        let is_name = |name: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && name.chars().all(is_plain)
        };
        let names: Vec<String> = names.split(';').map(ToString::to_string).collect();
        if !names.iter().all(|name| is_name(name)) {
            return Err(FORM);
        }
        Ok(Self {
            names,
            address: match address {
                "host-gateway" => None,
                address => Some(address.parse().map_err(|_| FORM)?),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_names_and_an_address() {
        let entry: HostEntry = "db;store:10.0.0.3".parse().unwrap();
        assert_eq!(entry.names, ["db", "store"]);
        let six: HostEntry = "db:[fd00::1]".parse().unwrap();
        assert_eq!(six.address, Some("fd00::1".parse().unwrap()));
        let host: HostEntry = "host=host-gateway".parse().unwrap();
        assert_eq!(host.address, None);
        for wrong in ["db", ":1.2.3.4", "db:", "a b:1.2.3.4", "db:1.2.3"] {
            assert!(wrong.parse::<HostEntry>().is_err(), "{wrong}");
        }
    }
}
