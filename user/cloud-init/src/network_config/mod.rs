//! `network-config`: what each link has, in cloud-init's version 1 or netplan's 2.

mod v1;
mod v2;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use saphyr::YamlOwned;

use crate::yaml;

/// The network of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Links and what they have.
    pub links: Vec<Link>,
    /// Who is asked for names.
    pub servers: Vec<IpAddr>,
    /// Domains in which short names are searched.
    pub searched: Vec<String>,
    /// What is asked for and not done, each a sentence without its full stop.
    pub notes: Vec<String>,
}

/// A link, named or known by its hardware address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// As Linux would name it.
    pub name: String,
    /// Its hardware address.
    pub mac: Option<[u8; 6]>,
    /// Addresses with their networks.
    pub addresses: Vec<Prefix>,
    /// Ways to others.
    pub routes: Vec<Route>,
}

/// An address and the bits of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub ip: IpAddr,
    /// Bits.
    pub len: u8,
}

impl Prefix {
    /// The network's first address, which a route is to.
    fn network(self) -> Self {
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.len));
                Ipv4Addr::from_bits(ip.to_bits() & mask.unwrap_or(0)).into()
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.len));
                Ipv6Addr::from_bits(ip.to_bits() & mask.unwrap_or(0)).into()
            }
        };
        Self { ip, ..self }
    }
}

/// A way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// To where; everywhere if none is said.
    pub to: Option<Prefix>,
    /// By this router.
    pub via: IpAddr,
}

/// Reads a text; nothing if it says nothing, and DHCP goes on.
pub fn read(text: &str) -> Result<Option<Network>, String> {
    let document = yaml::parse(text)?;
    let config = yaml::field(&document, "network").unwrap_or(&document);
    match yaml::text(config, "version").as_deref() {
        Some("1") => v1::read(config).map(Some),
        Some("2") => v2::read(config).map(Some),
        None if yaml::text(config, "config").as_deref() == Some("disabled") => Ok(None),
        None if yaml::entries(config).next().is_none() => Ok(None),
        _ => Err("its version is neither 1 nor 2".into()),
    }
}

impl Network {
    /// Adds a link, of whose `fields` only those are `known`.
    fn add_link(&mut self, link: Link, fields: &YamlOwned, known: &[&str]) {
        let unsupported = yaml::unsupported(fields, known);
        let notes = unsupported.map(|what| format!("network-config: {}: {what}", link.name));
        self.notes.extend(notes);
        self.links.push(link);
    }

    /// Adds who is asked for names, and where they are searched.
    fn add_names(&mut self, servers: &[String], searched: Vec<String>) -> Result<(), String> {
        for server in servers {
            let server = ip(server)?;
            if !self.servers.contains(&server) {
                self.servers.push(server);
            }
        }
        self.searched
            .extend(searched.into_iter().filter(|text| is_domain(text)));
        Ok(())
    }
}

impl Link {
    /// The way to everywhere of `via`'s family.
    fn add_gateway(&mut self, via: Option<String>) -> Result<(), String> {
        if let Some(via) = via {
            let via = ip(&via)?;
            self.routes.push(Route { to: None, via });
        }
        Ok(())
    }
}

/// A line of resolv.conf(5) has it among blanks.
fn is_domain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

fn ip(text: &str) -> Result<IpAddr, String> {
    let parsed = text.parse();
    parsed.map_err(|_| format!("{text:?} is no address"))
}

/// `ADDRESS/BITS`, or an address whose bits are in `mask`, as a mask or a number.
fn prefix(text: &str, mask: Option<&str>) -> Result<Prefix, String> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, mask),
    };
    let ip = ip(address)?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let len = match mask {
        None => Some(most),
        Some(mask) => mask.parse().ok().or_else(|| mask_bits(mask)),
    };
    let len = len.filter(|len| *len <= most);
    let len = len.ok_or_else(|| format!("{text:?} has no network"))?;
    Ok(Prefix { ip, len })
}

fn mask_bits(mask: &str) -> Option<u8> {
    let bits = mask.parse::<Ipv4Addr>().ok()?.to_bits();
    let ones = bits.leading_ones();
    let is_whole = bits.checked_shl(ones).unwrap_or(0) == 0;
    is_whole.then_some(ones as u8)
}

fn mac(text: &str) -> Result<[u8; 6], String> {
    let wrong = || format!("{text:?} is no hardware address");
    let mut bytes = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2);
        let part = part.and_then(|part| u8::from_str_radix(part, 16).ok());
        *byte = part.ok_or_else(wrong)?;
    }
    parts.next().is_none().then_some(bytes).ok_or_else(wrong)
}

/// The routes of a list, whose fields for the destination, its mask and the router are named so.
fn routes(of: &YamlOwned, [to, mask, via]: [&str; 3]) -> Result<Vec<Route>, String> {
    let route = |item: &YamlOwned| {
        let via = ip(&yaml::text(item, via).unwrap_or_default())?;
        let to = match yaml::text(item, to).as_deref() {
            None | Some("default") => None,
            Some(to) => Some(prefix(to, yaml::text(item, mask).as_deref())?),
        };
        // No bits are everywhere.
        let to = to.filter(|to| to.len > 0).map(Prefix::network);
        Ok(Route { to, via })
    };
    yaml::items(yaml::field(of, "routes")).map(route).collect()
}

#[cfg(test)]
mod tests;
