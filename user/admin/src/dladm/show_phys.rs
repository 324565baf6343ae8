//! `show-phys`

use std::ops::Range;

use clap::Args;
use link::links::Class;
use linkctl::{Answer, GroupRow, LinkRow, Request};

use super::{NONE, or_none, state};
use crate::keep::{Record, Root};
use crate::table::{Column, Output};
use crate::{World, ask, refusals};

#[derive(Args)]
pub struct Flags {
    /// Show the cards' addresses
    #[arg(short = 'm', long = "mac", conflicts_with_all = ["shows_rings", "is_persistent"])]
    shows_addresses: bool,
    /// Show the cards' rings and who uses them
    #[arg(short = 'H', long = "rings", conflicts_with = "is_persistent")]
    shows_rings: bool,
    /// Show also cards that are gone and that something outlasting a restart is about
    #[arg(short = 'P', long = "persistent")]
    is_persistent: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    root: Root,
    /// This card only
    link: Option<String>,
}

const COLUMNS: [Column; 7] = [
    Column("LINK", 13),
    Column("MEDIA", 21),
    Column("STATE", 11),
    Column("SPEED", 7),
    Column("DUPLEX", 10),
    Column("DEVICE", 13),
    Column("FLAGS", 7),
];
const ADDRESSES: [Column; 5] = [
    Column("LINK", 13),
    Column("SLOT", 9),
    Column("ADDRESS", 19),
    Column("INUSE", 6),
    Column("CLIENT", 13),
];
const RINGS: [Column; 5] = [
    Column("LINK", 13),
    Column("RINGTYPE", 9),
    Column("RINGS", 17),
    Column("CPUS", 9),
    Column("CLIENTS", 24),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut cards = ask::links(world.kernel)?;
    cards.retain(|link| link.class == Class::Phys);
    let gone = match flags.is_persistent {
        true => gone(&flags.root.load()?, &ask::links(world.kernel)?),
        false => Vec::new(),
    };
    let is_asked = |name: &str| flags.link.as_deref().is_none_or(|asked| asked == name);
    cards.retain(|card| is_asked(&card.name));
    let gone: Vec<String> = gone.into_iter().filter(|name| is_asked(name)).collect();
    if let (Some(name), true) = (&flags.link, cards.is_empty() && gone.is_empty()) {
        let link = ask::links_named(world.kernel, Some(name));
        return link.and(Err(refusals::not_of_class(name, Class::Phys)));
    }
    let text = if flags.shows_addresses {
        let rows: Vec<_> = cards.iter().map(address_row).collect();
        flags.output.table(&ADDRESSES, &rows)?
    } else if flags.shows_rings {
        flags.output.table(&RINGS, &ring_rows(&cards, world)?)?
    } else {
        let columns = &COLUMNS[..if flags.is_persistent { 7 } else { 6 }];
        let rows = cards.iter().map(row).chain(gone.into_iter().map(gone_row));
        flags.output.table(columns, &rows.collect::<Vec<_>>())?
    };
    world.console.print(&text);
    Ok(())
}

/// All media that we drive is Ethernet, and what is up is full duplex.
fn row(card: &LinkRow) -> Vec<String> {
    let duplex = match card.is_up {
        Some(true) => "full",
        _ => "unknown",
    };
    vec![
        card.name.clone(),
        "Ethernet".into(),
        state(card.is_up).into(),
        card.speed_mbps.to_string(),
        duplex.into(),
        or_none(card.device.as_ref()),
        "-----".into(),
    ]
}

/// Links that records are about or over, that no record makes, and that do not exist.
fn gone(records: &[Record], links: &[LinkRow]) -> Vec<String> {
    let made = |name: &str| {
        records.iter().any(|record| match record {
            Record::Etherstub { name: made }
            | Record::Vnic { name: made, .. }
            | Record::Vlan { name: made, .. } => made == name,
            _ => false,
        })
    };
    let exists = |name: &str| links.iter().any(|link| link.name == name);
    let named = records.iter().filter_map(|record| match record {
        Record::Vnic { over, .. } | Record::Vlan { over, .. } => Some(over),
        Record::LinkProp { link, .. }
        | Record::Flow { link, .. }
        | Record::Address { link, .. }
        | Record::Route { link, .. } => Some(link),
        Record::Etherstub { .. } | Record::FlowProp { .. } => None,
    });
    let mut gone: Vec<String> = named
        .filter(|name| !made(name) && !exists(name))
        .cloned()
        .collect();
    gone.sort();
    gone.dedup();
    gone
}

fn gone_row(name: String) -> Vec<String> {
    let rest = ["Ethernet", "unknown", "0", "unknown", NONE, "r----"];
    [name].into_iter().chain(rest.map(String::from)).collect()
}

/// A card has its own address only; the link itself uses it.
fn address_row(card: &LinkRow) -> Vec<String> {
    let (in_use, client) = match card.is_held {
        true => ("yes", card.name.as_str()),
        false => ("no", NONE),
    };
    vec![
        card.name.clone(),
        "primary".into(),
        card.mac.to_string(),
        in_use.into(),
        client.into(),
    ]
}

/// A line for each group, and for the rings by which links send. The first of either kind is for
/// whoever has no other.
fn ring_rows(cards: &[LinkRow], world: &mut World<'_>) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    for card in cards {
        let link = card.name.clone();
        let Answer::Groups(groups) = ask::ask(world.kernel, &Request::Groups { link })? else {
            return Err(ask::nonsense());
        };
        for (kind, default, is_tx) in [("RX", "<default,mcast>", false), ("TX", "<default>", true)]
        {
            let all = groups.iter().filter(|group| group.is_tx == is_tx);
            for (index, group) in all.enumerate() {
                let default = (index == 0).then(|| default.to_string());
                let clients = group.clients.iter().cloned();
                let clients: Vec<_> = default.into_iter().chain(clients).collect();
                let clients = match clients.is_empty() {
                    true => NONE.into(),
                    false => clients.join(","),
                };
                let fields = [kind.into(), numbers(&rings(group)), cpus(group), clients];
                rows.push([card.name.clone()].into_iter().chain(fields).collect());
            }
        }
    }
    Ok(rows)
}

/// In the order of the rings.
fn cpus(group: &GroupRow) -> String {
    let cpu = |cpu: &Option<u32>| cpu.map_or_else(|| "any".into(), |cpu| cpu.to_string());
    let cpus: Vec<String> = group.cpus.iter().map(cpu).collect();
    match cpus.is_empty() {
        true => NONE.into(),
        false => cpus.join(","),
    }
}

fn rings(group: &GroupRow) -> Range<u16> {
    group.first..group.first.saturating_add(group.rings)
}

fn numbers(rings: &Range<u16>) -> String {
    match rings.len() {
        0 => NONE.into(),
        1 => rings.start.to_string(),
        _ => format!("{}-{}", rings.start, rings.end - 1),
    }
}
