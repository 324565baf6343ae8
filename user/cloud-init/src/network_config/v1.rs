//! Version 1: a list of things, links with subnets among them
//! (cloud-init's documentation, "Networking config Version 1").

use saphyr::YamlOwned;

use super::{Link, Network, mac, prefix, routes};
use crate::yaml;

const KNOWN: [&str; 4] = ["type", "name", "mac_address", "subnets"];

pub(super) fn read(config: &YamlOwned) -> Result<Network, String> {
    let mut network = Network::default();
    for item in yaml::items(yaml::field(config, "config")) {
        match yaml::text(item, "type").unwrap_or_default().as_str() {
            "physical" => {
                let link = link(item, &mut network)?;
                network.add_link(link, item, &KNOWN);
            }
            "nameserver" => {
                let servers = yaml::texts(item, "address");
                network.add_names(&servers, yaml::texts(item, "search"))?;
            }
            "loopback" => {}
            other => return Err(format!("links of type {other:?} are not supported")),
        }
    }
    Ok(network)
}

fn link(item: &YamlOwned, network: &mut Network) -> Result<Link, String> {
    let mut link = Link {
        name: yaml::text(item, "name").unwrap_or_default(),
        mac: yaml::text(item, "mac_address")
            .map(|text| mac(&text))
            .transpose()?,
        ..Link::default()
    };
    for subnet in yaml::items(yaml::field(item, "subnets")) {
        let servers = yaml::texts(subnet, "dns_nameservers");
        network.add_names(&servers, yaml::texts(subnet, "dns_search"))?;
        match yaml::text(subnet, "type").unwrap_or_default().as_str() {
            "static" | "static6" => add_static(&mut link, subnet)?,
            // The kernel asks by itself.
            "dhcp" | "dhcp4" | "dhcp6" | "manual" => {}
            kind if kind.starts_with("ipv6_") => {}
            other => return Err(format!("subnets of type {other:?} are not supported")),
        }
    }
    Ok(link)
}

fn add_static(link: &mut Link, subnet: &YamlOwned) -> Result<(), String> {
    let address = yaml::text(subnet, "address").unwrap_or_default();
    let mask = yaml::text(subnet, "netmask");
    let address = prefix(&address, mask.as_deref())?;
    link.addresses.push(address);
    link.add_gateway(yaml::text(subnet, "gateway"))?;
    let named = ["network", "netmask", "gateway"];
    link.routes.extend(routes(subnet, named)?);
    Ok(())
}
