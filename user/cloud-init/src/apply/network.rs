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
    for (link, card) in network.links.iter().zip(meant(&network.links, &cards)) {
        match card {
            Some(card) => add(&mut socket, link, card.index),
            None => note(&link.name, Err(io::ErrorKind::NotFound.into())),
        }
    }
    Ok(())
}

/// The card that each link means. No two mean the same one: the surest comes first, so that no guess takes the card of a link that
/// names it.
fn meant<'a>(links: &[Link], cards: &'a [Ethernet]) -> Vec<Option<&'a Ethernet>> {
    let mut free: Vec<Option<&Ethernet>> = cards.iter().map(Some).collect();
    let mut meant = vec![None; links.len()];
    let ways: [fn(&Link, &Ethernet) -> bool; 2] = [
        |link, card| link.mac == Some(card.mac),
        |link, card| link.mac.is_none() && link.name == card.name,
    ];
    for is_it in ways {
        for (link, card) in links.iter().zip(&mut meant) {
            let mut places = free.iter_mut();
            let place = places.find(|place| place.is_some_and(|card| is_it(link, card)));
            *card = card.take().or_else(|| place?.take());
        }
    }
    // By its place, or the next one that nobody has.
    for (at, (link, card)) in links.iter().zip(&mut meant).enumerate() {
        if card.is_some() || link.mac.is_some() {
            continue;
        }
        let own = free.get_mut(at).and_then(Option::take);
        *card = own.or_else(|| free.iter_mut().find_map(Option::take));
    }
    meant
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

    /// The numbers of the cards, of which there are two, that links with these names and last bytes of hardware addresses mean.
    fn cards_of(links: &[(&str, Option<u8>)]) -> Vec<Option<u32>> {
        let cards = [2, 3].map(|index: u32| Ethernet {
            index,
            name: format!("eth{}", index - 2),
            mac: [0, 0, 0, 0, 0, index as u8],
        });
        let link = |(name, mac): &(&str, Option<u8>)| Link {
            name: (*name).into(),
            mac: mac.map(|last| [0, 0, 0, 0, 0, last]),
            ..Link::default()
        };
        let links: Vec<Link> = links.iter().map(link).collect();
        let meant = meant(&links, &cards).into_iter();
        meant.map(|card| card.map(|card| card.index)).collect()
    }

    #[test]
    fn a_card_is_known_by_its_hardware_address_then_by_name_then_by_place() {
        assert_eq!(cards_of(&[("enp1s0", None)]), [Some(2)]);
        assert_eq!(cards_of(&[("eth1", None)]), [Some(3)]);
        assert_eq!(cards_of(&[("eth1", Some(2))]), [Some(2)]);
        assert_eq!(cards_of(&[("eth0", Some(9))]), [None]);
        let in_order = [("enp1s0", None), ("enp2s0", None), ("enp3s0", None)];
        assert_eq!(cards_of(&in_order), [Some(2), Some(3), None]);
    }

    #[test]
    fn no_two_links_mean_one_card() {
        let guessed_first = [("enp1s0", None), ("eth0", None)];
        assert_eq!(cards_of(&guessed_first), [Some(3), Some(2)]);
        let by_address = [("enp1s0", None), ("eth0", None), ("x", Some(2))];
        assert_eq!(cards_of(&by_address), [Some(3), None, Some(2)]);
        assert_eq!(cards_of(&[("a", Some(2)), ("b", Some(2))]), [Some(2), None]);
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
