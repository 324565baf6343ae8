//! Addresses, routes, and who is asked for names.
//!
//! A configuration means a card by its hardware address, by its name, or by its place: clouds name cards
//! as systemd would (`enp1s0`), and ours are `eth0` on.

use std::io;
use std::path::Path;

use super::files::replace;
use super::note;
use crate::network_config::{Link, Network};
use crate::route_socket::{Ethernet, RouteSocket};

/// As many as the C library asks (resolv.conf(5)).
const SERVERS_MAX: usize = 3;
const RESOLVER: &str = "/etc/resolv.conf";

pub(super) fn apply(root: &Path, network: &Network) {
    note("the network", add_all(network));
    if !network.servers.is_empty() {
        note(RESOLVER, replace(root, RESOLVER, &resolver(network)));
    }
}

fn add_all(network: &Network) -> io::Result<()> {
    let mut socket = RouteSocket::open()?;
    let cards = socket.ethernets()?;
    for (place, link) in network.links.iter().enumerate() {
        match card(link, place, &cards) {
            Some(card) => add(&mut socket, link, card.index),
            None => note(&link.name, Err(io::ErrorKind::NotFound.into())),
        }
    }
    Ok(())
}

/// The card that a link means.
fn card<'a>(link: &Link, place: usize, cards: &'a [Ethernet]) -> Option<&'a Ethernet> {
    match link.mac {
        Some(mac) => cards.iter().find(|card| card.mac == mac),
        None => {
            let named = cards.iter().find(|card| card.name == link.name);
            named.or_else(|| cards.get(place))
        }
    }
}

fn add(socket: &mut RouteSocket, link: &Link, index: u32) {
    let first4 = link.addresses.iter().find(|address| address.ip.is_ipv4());
    for address in &link.addresses {
        let what = format!("{}/{}", address.ip, address.len);
        let added = match Some(address) == first4 {
            true => socket.replace_address4(index, address),
            false => socket.add_address(index, address),
        };
        note(&what, added);
    }
    for route in &link.routes {
        let what = format!("the router {}", route.via);
        note(&what, socket.add_route(index, route));
    }
}

fn resolver(network: &Network) -> String {
    let servers = network.servers.iter().take(SERVERS_MAX);
    let mut text: String = servers.map(|ip| format!("nameserver {ip}\n")).collect();
    if !network.searched.is_empty() {
        text += &format!("search {}\n", network.searched.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_known_by_its_hardware_address_then_by_name_then_by_place() {
        let card_of = |index: u32| Ethernet {
            index,
            name: format!("eth{}", index - 2),
            mac: [0, 0, 0, 0, 0, index as u8],
        };
        let cards = [card_of(2), card_of(3)];
        let mut link = Link {
            name: "enp1s0".into(),
            ..Link::default()
        };
        assert_eq!(card(&link, 0, &cards), Some(&cards[0]));
        link.name = "eth1".into();
        assert_eq!(card(&link, 0, &cards), Some(&cards[1]));
        link.mac = Some([0, 0, 0, 0, 0, 2]);
        assert_eq!(card(&link, 1, &cards), Some(&cards[0]));
        link.mac = Some([9; 6]);
        assert_eq!(card(&link, 0, &cards), None);
    }

    #[test]
    fn the_resolver_is_told_of_three_servers() {
        let network = Network {
            servers: (1..5).map(|end| [10, 0, 0, end].into()).collect(),
            searched: vec!["a.example".into(), "b.example".into()],
            ..Network::default()
        };
        assert_eq!(
            resolver(&network),
            "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nsearch a.example b.example\n"
        );
    }
}
