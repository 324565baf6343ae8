//! Version 2: netplan's, of which links of Ethernet are read
//! (cloud-init's documentation, "Networking config Version 2").

use saphyr::YamlOwned;

use super::{Link, Network, mac, prefix, routes};
use crate::yaml;

/// Kinds of links that the kernel has not, or that a program makes by itself.
const UNSUPPORTED: [&str; 5] = ["bonds", "bridges", "vlans", "wifis", "tunnels"];

/// Of a link; the kernel asks by DHCP as it is, and waits for no link.
const KNOWN: [&str; 10] = [
    "match",
    "addresses",
    "gateway4",
    "gateway6",
    "routes",
    "nameservers",
    "dhcp4",
    "dhcp6",
    "accept-ra",
    "optional",
];

pub(super) fn read(config: &YamlOwned) -> Result<Network, String> {
    let is_there = |kind: &&str| yaml::field(config, kind).is_some();
    if let Some(kind) = UNSUPPORTED.into_iter().find(|kind| is_there(kind)) {
        return Err(format!("{kind} are not supported"));
    }
    let mut network = Network::default();
    let Some(ethernets) = yaml::field(config, "ethernets") else {
        return Ok(network);
    };
    for (name, item) in yaml::entries(ethernets) {
        let link = link(name, item)?;
        network.add_link(link, item, &KNOWN);
        if let Some(names) = yaml::field(item, "nameservers") {
            let servers = yaml::texts(names, "addresses");
            network.add_names(&servers, yaml::texts(names, "search"))?;
        }
    }
    Ok(network)
}

fn link(name: String, item: &YamlOwned) -> Result<Link, String> {
    let matched = yaml::field(item, "match");
    let matched = |field| matched.and_then(|matched| yaml::text(matched, field));
    let mut link = Link {
        name: matched("name").unwrap_or(name),
        mac: matched("macaddress").map(|text| mac(&text)).transpose()?,
        ..Link::default()
    };
    for address in yaml::texts(item, "addresses") {
        link.addresses.push(prefix(&address, None)?);
    }
    link.add_gateway(yaml::text(item, "gateway4"))?;
    link.add_gateway(yaml::text(item, "gateway6"))?;
    link.routes.extend(routes(item, ["to", "", "via"])?);
    Ok(link)
}
