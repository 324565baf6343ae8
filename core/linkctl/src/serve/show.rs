//! Requests that only look.

use alloc::string::String;
use alloc::vec::Vec;

use link::Links;
use link::links::{Class, FlowInfo, LinkError, LinkInfo};
use link::open::Hold;
use link::props::{Property, Settings};

use super::{Shell, find};
use crate::PAGE_LINKS;
use crate::answer::{Answer, FlowRow, GroupRow, LinkRow, PropRow, Refusal};

pub fn links(from: u16, shell: &mut impl Shell) -> Answer {
    let (mut rows, next) = shell.with_links(|links| {
        let mut infos = links.iter().filter(|info| info.id.place() >= from);
        let page = infos.by_ref().take(PAGE_LINKS);
        let rows: Vec<LinkRow> = page.map(|info| link_row(links, info)).collect();
        (rows, infos.next().map(|info| info.id.place()))
    });
    for row in &mut rows {
        if row.class == Class::Phys {
            row.device = Some(shell.device(&row.name));
        }
    }
    Answer::Links { rows, next }
}

fn link_row(links: &Links, info: LinkInfo) -> LinkRow {
    let facts = links.facts(info.id);
    let over = info.over.and_then(|port| links.info(port));
    LinkRow {
        name: info.name,
        class: info.class,
        mtu: info.mtu,
        is_up: facts.and_then(|facts| facts.is_up),
        speed_mbps: facts.map_or(0, |facts| facts.speed_mbps),
        over: over.map(|port| port.name),
        mac: info.mac,
        mac_origin: info.mac_origin,
        vid: info.vid,
        device: None,
        is_held: links.hold(info.id).is_some_and(|hold| hold != Hold::Free),
    }
}

pub fn groups(name: &str, shell: &mut impl Shell) -> Result<Answer, Refusal> {
    let mut rows = shell.with_links(|links| rx_groups(links, name))?;
    let cpus: Vec<Option<u32>> = shell.rings(name).iter().map(|ring| ring.cpu).collect();
    for row in &mut rows {
        let own = cpus.iter().skip(row.first.into());
        row.cpus = own.take(row.rings.into()).copied().collect();
    }
    let all = rows.iter().map(|row| row.first.saturating_add(row.rings));
    let all = all.max().unwrap_or(1);
    let mut senders: Vec<String> = rows.iter().flat_map(|row| row.clients.clone()).collect();
    // The card's own link may send by all of them.
    senders.sort_by_key(|sender| sender != name);
    let first = rows.len();
    for sender in senders {
        let rings = shell.tx_rings(&sender, all);
        let known = rows.iter_mut().skip(first).find(|row| row.rings == rings);
        match known {
            Some(row) => row.clients.push(sender),
            None => rows.push(GroupRow {
                is_tx: true,
                first: 0,
                rings,
                cpus: Vec::new(),
                clients: Vec::from([sender]),
            }),
        }
    }
    Ok(Answer::Groups(rows))
}

fn rx_groups(links: &mut Links, name: &str) -> Result<Vec<GroupRow>, Refusal> {
    let id = find(links, name)?;
    let not_a = Refusal::NotA { class: Class::Phys };
    if links.info(id).is_none_or(|info| info.class != Class::Phys) {
        return Err(not_a);
    }
    let groups = links.groups(id).map_err(Refusal::Link)?;
    let name_of = |id| links.info(id).map(|info| info.name);
    let rows = groups.into_iter().map(|group| GroupRow {
        is_tx: false,
        first: group.rings.start,
        rings: group.rings.len() as u16,
        cpus: Vec::new(),
        clients: group.clients.into_iter().filter_map(name_of).collect(),
    });
    Ok(rows.collect())
}

pub fn props(links: &mut Links, name: &str) -> Result<Answer, Refusal> {
    let id = find(links, name)?;
    let gone = Refusal::Link(LinkError::NotFound);
    let (Some(facts), Some(settings)) = (links.facts(id), links.settings(id)) else {
        return Err(gone);
    };
    let defaults = Settings::default();
    let row = |property: Property| PropRow {
        name: property.name().into(),
        is_read_only: property.is_read_only(),
        value: settings.show(property, &facts),
        default: match property.is_read_only() {
            true => "--".into(),
            false => defaults.show(property, &facts),
        },
        possible: property.possible(&facts).into_owned(),
    };
    Ok(Answer::Props(Property::ALL.into_iter().map(row).collect()))
}

/// All flows of the first link at or behind a place that has any.
pub fn flows(links: &mut Links, from: u16) -> Answer {
    let mut all = links.flows().filter(|flow| flow.link.place() >= from);
    let Some(first) = all.next() else {
        return Answer::Flows {
            rows: Vec::new(),
            next: None,
        };
    };
    let place = first.link.place();
    let link = links.info(first.link).map(|info| info.name);
    let link = link.unwrap_or_default();
    let row = |flow: FlowInfo| FlowRow {
        name: flow.name,
        link: link.clone(),
        rule: flow.rule,
        props: flow.props,
    };
    let mut rows = Vec::from([row(first)]);
    let mut next = None;
    for flow in all {
        if flow.link.place() != place {
            next = Some(flow.link.place());
            break;
        }
        rows.push(row(flow));
    }
    Answer::Flows { rows, next }
}
