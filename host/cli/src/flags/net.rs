//! Where a machine's card leads, and ports of the host that lead to it.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use qemu::{Forward, Protocol};

use super::parse_name;

/// `--net`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetFlag {
    /// QEMU's own network.
    User,
    /// A network of this host.
    Network(OnNetwork),
    /// A tap interface of the host.
    Tap(String),
    /// Unix sockets of datagrams, such as a relay's.
    Datagrams {
        /// Where the machine listens.
        local: PathBuf,
        /// Where it sends to.
        remote: PathBuf,
    },
    /// No network.
    None,
}

impl FromStr for NetFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "user" => Ok(Self::User),
            None if text == "none" => Ok(Self::None),
            None if text == "bridge" => Ok(Self::User),
            None if text == "host" => {
                Err("a machine has a network of its own: use user, and -p for its ports".into())
            }
            None => text.parse().map(Self::Network),
            Some((before, _)) if before.contains(':') => text.parse().map(Self::Network),
            Some(("tap", interface)) if !interface.is_empty() => Ok(Self::Tap(interface.into())),
            Some(("dgram", paths)) => match paths.split_once(',') {
                Some((local, remote)) if !local.is_empty() && !remote.is_empty() => {
                    Ok(Self::Datagrams {
                        local: local.into(),
                        remote: remote.into(),
                    })
                }
                _ => Err("give dgram=OWN,PEER: the paths of two Unix sockets".into()),
            },
            _ => Err("give user, none, a network's name, tap=INTERFACE or dgram=OWN,PEER".into()),
        }
    }
}

/// `--network NAME`, or podman's `NAME:ip=ADDRESS,alias=NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnNetwork {
    /// The network's name.
    pub name: String,
    /// The address there.
    pub ip: Option<Ipv4Addr>,
    /// Further names there.
    pub aliases: Vec<String>,
}

impl FromStr for OnNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give NAME[:ip=ADDRESS,alias=NAME]";
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut on = Self {
            name: parse_name(name)?,
            ..Self::default()
        };
        for option in options.split(',').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("ip", address)) => on.ip = Some(address.parse().map_err(|_| FORM)?),
                Some(("alias", alias)) => on.aliases.push(parse_name(alias)?),
                _ => return Err(FORM.into()),
            }
        }
        Ok(on)
    }
}

impl fmt::Display for OnNetwork {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)?;
        let ip = self.ip.iter().map(|ip| format!("ip={ip}"));
        let aliases = self.aliases.iter().map(|alias| format!("alias={alias}"));
        let options: Vec<String> = ip.chain(aliases).collect();
        match options.is_empty() {
            true => Ok(()),
            false => write!(to, ":{}", options.join(",")),
        }
    }
}

/// `--mac-address`: a station's address, docker's `02:42:ac:11:00:02`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacAddress(pub [u8; 6]);

impl FromStr for MacAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "give six bytes such as 02:42:ac:11:00:02, the first one even";
        let byte = |digits: &str| match digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            true if digits.len() == 2 => u8::from_str_radix(digits, 16).map_err(|_| FORM),
            _ => Err(FORM),
        };
        let bytes: Vec<u8> = text.split(':').map(byte).collect::<Result<_, _>>()?;
        let bytes: [u8; 6] = bytes.try_into().map_err(|_| FORM)?;
        // The lowest bit of the first byte marks groups of stations.
        match bytes[0] & 1 {
            0 => Ok(Self(bytes)),
            _ => Err(FORM),
        }
    }
}

/// `-p`: docker's `[ip:]host:guest[/udp]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish(pub Forward);

impl FromStr for Publish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give [IP:]HOST-PORT:PORT[/udp], such as 6379:6379";
        let (ports, protocol) = match text.split_once('/') {
            None => (text, Protocol::Tcp),
            Some((ports, "tcp")) => (ports, Protocol::Tcp),
            Some((ports, "udp")) => (ports, Protocol::Udp),
            Some(_) => return Err(FORM.into()),
        };
        let (host, guest) = ports.rsplit_once(':').ok_or(FORM)?;
        let (ip, host) = host.rsplit_once(':').unwrap_or(("0.0.0.0", host));
        let port = |text: &str| {
            text.parse::<u16>()
                .ok()
                .filter(|&port| port != 0)
                .ok_or(FORM)
        };
        Ok(Self(Forward {
            host_ip: ip.parse::<Ipv4Addr>().map_err(|_| FORM)?,
            host_port: port(host)?,
            guest_port: port(guest)?,
            protocol,
        }))
    }
}
