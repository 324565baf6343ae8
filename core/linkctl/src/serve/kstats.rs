//! Statistics by the names of illumos' `kstat`, block by block: of a link as a whole, of its
//! lanes and, of a card's own link, of its rings and soft rings.
//!
//! While nothing is set the link layer is out of the frames' way and there are no lanes: the
//! shell then counts what a lane would count of a ring (`RingCounts::pulled`).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hal::CardCounters;
use link::LinkId;
use link::counters::{self, Counters, DropReason, Drops, RxCount, RxCounts, TxCount};
use link::links::{Class, LinkError, LinkInfo};

use super::{RingCounts, Shell, find, statistics};
use crate::PAGE_BLOCKS;
use crate::answer::{Answer, Kstat, KstatBlock, Refusal, Statistics};

pub fn of_link(name: &str, from: u16, shell: &mut impl Shell) -> Result<Answer, Refusal> {
    let mut blocks = all(name, shell)?.into_iter().skip(from.into());
    let page: Vec<_> = blocks.by_ref().take(PAGE_BLOCKS).collect();
    let next = blocks
        .next()
        .map(|_| from.saturating_add(PAGE_BLOCKS as u16));
    Ok(Answer::Kstats { blocks: page, next })
}

/// What is known of a link.
struct Subject {
    info: LinkInfo,
    speed_mbps: u64,
    is_up: Option<bool>,
    carried: Statistics,
    card: Option<CardCounters>,
    rings: Vec<RingCounts>,
    /// Frames by the CPU that took them.
    taken: Vec<u64>,
    /// Frames that its stack had no room for.
    overflowed: u64,
    /// What programs count that have it, by their queues.
    owners: Vec<(u16, Vec<counters::Kstat>)>,
}

/// What the lanes counted: of the link together, of each ring, of frames without an owner.
#[derive(Default)]
struct Lanes {
    own: Counters,
    blocks: Vec<KstatBlock>,
    pulled: Vec<(RxCounts, Drops, bool)>,
    orphans: Drops,
}

fn all(name: &str, shell: &mut impl Shell) -> Result<Vec<KstatBlock>, Refusal> {
    let subject = subject(name, shell)?;
    let port = subject.info.over.unwrap_or(subject.info.id);
    let lanes = lanes(&subject.info, port, shell);
    let mut blocks = Vec::from([whole(&subject, &lanes.own), misc(&subject, &lanes)]);
    let software = lanes.own.software_lane();
    blocks.push(block(name, "mac_rx_swlane0".into(), software));
    for (queue, counts) in &subject.owners {
        let block_name = match queue {
            0 => "xdp".into(),
            queue => format!("xdp{queue}"),
        };
        blocks.push(block(name, block_name, counts.iter().copied()));
    }
    for (cpu, frames) in subject.taken.iter().enumerate() {
        let taken = [("ipackets", *frames)];
        blocks.push(block(name, format!("mac_rx_cpu{cpu}"), taken));
    }
    for number in 0..subject.rings.len().max(lanes.pulled.len()) {
        let ring = subject.rings.get(number);
        if subject.info.id == port {
            blocks.push(hardware_lane(name, number, ring, lanes.pulled.get(number)));
        }
        blocks.extend(
            ring.into_iter()
                .flat_map(|ring| of_ring(name, number, ring)),
        );
    }
    blocks.extend(lanes.blocks);
    Ok(blocks)
}

fn subject(name: &str, shell: &mut impl Shell) -> Result<Subject, Refusal> {
    let carried = statistics::carried(name, shell)?;
    let (info, facts) = shell.with_links(|links| {
        let id = find(links, name)?;
        let both = links.info(id).zip(links.facts(id));
        both.ok_or(Refusal::Link(LinkError::NotFound))
    })?;
    let is_card = info.class == Class::Phys;
    Ok(Subject {
        speed_mbps: facts.speed_mbps,
        is_up: facts.is_up,
        carried,
        card: is_card.then(|| shell.card_counters(name)).flatten(),
        rings: match is_card {
            true => shell.rings(name),
            false => Vec::new(),
        },
        taken: shell.taken(name),
        overflowed: shell.overflowed(name),
        owners: shell.owner_counts(name),
        info,
    })
}

fn lanes(info: &LinkInfo, port: LinkId, shell: &mut impl Shell) -> Lanes {
    let mut lanes = Lanes::default();
    let mut number = 0_u16;
    shell.each_lane(port, |lane| {
        if info.id == port {
            let is_polling = lane.is_polling();
            lanes
                .pulled
                .push((lane.ring_counts().clone(), lane.drops().clone(), is_polling));
            for reason in DropReason::ALL {
                lanes.orphans.add(*reason, lane.drops().get(*reason));
            }
        }
        if let Some(counters) = lane.counters(info.id) {
            let name = format!("mac_tx_hwlane{number}");
            let sent = counters.transmit_lane();
            lanes.blocks.push(block(&info.name, name, sent));
            lanes.own.add(counters);
        }
        number += 1;
    });
    lanes
}

/// `mac_rx_hwlaneN`: what a ring brought, by the lane that has it now or by its CPU alone.
fn hardware_lane(
    link: &str,
    number: usize,
    ring: Option<&RingCounts>,
    lane: Option<&(RxCounts, Drops, bool)>,
) -> KstatBlock {
    let mut sum = ring.map_or_else(RxCounts::default, |ring| ring.pulled.clone());
    let none = Drops::default();
    let (mut drops, mut is_polling) = (&none, false);
    if let Some((pulled, of_lane, polls)) = lane {
        sum.add_all(pulled);
        (drops, is_polling) = (of_lane, *polls);
    }
    let counts = counters::hardware_lane(&sum, drops);
    let more = [
        ("intrspacing", ring.map_or(0, |ring| ring.spacing_ns)),
        (
            "cpu",
            ring.and_then(|ring| ring.cpu).unwrap_or_default().into(),
        ),
        ("polling", is_polling.into()),
        (RxCount::PollStarts.name(), sum.get(RxCount::PollStarts)),
    ];
    let name = format!("mac_rx_hwlane{number}");
    block(link, name, counts.into_iter().chain(more))
}

/// `link:0:NAME`. Of a card the card's own figures come first.
fn whole(subject: &Subject, own: &Counters) -> KstatBlock {
    let card = subject.card.as_ref();
    let of_card = |get: fn(&CardCounters) -> u64, of_lanes: u64| card.map_or(of_lanes, get);
    let of_rings = |get: fn(&RingCounts) -> u64| subject.rings.iter().map(get).sum::<u64>();
    let [ipackets, rbytes, ierrors, opackets, obytes, oerrors] = subject.carried;
    let no_buffer = own.drops.get(DropReason::NoBuffer);
    let received = |what| own.rx.get(what);
    let low = |count: u64| count & u64::from(u32::MAX);
    let stats = [
        // illumos' LINK_STATE_UNKNOWN is -1.
        ("link_state", subject.is_up.map_or(u64::MAX, u64::from)),
        ("link_up", u64::from(subject.is_up == Some(true))),
        ("promisc", u64::from(subject.info.is_promiscuous)),
        ("ifspeed", subject.speed_mbps * 1_000_000),
        (
            "multircv",
            of_card(|card| card.rx_multicast, received(RxCount::Multicast)),
        ),
        (
            "brdcstrcv",
            of_card(|card| card.rx_broadcast, received(RxCount::Broadcast)),
        ),
        ("multixmt", own.tx.get(TxCount::Multicast)),
        ("brdcstxmt", own.tx.get(TxCount::Broadcast)),
        (
            "norcvbuf",
            no_buffer + of_rings(|ring| ring.port.rx_no_memory),
        ),
        ("ierrors", ierrors),
        ("unknowns", own.drops.get(DropReason::Unclaimed)),
        ("noxmtbuf", of_rings(|ring| ring.port.tx_no_memory)),
        ("oerrors", oerrors),
        ("collisions", of_card(|card| card.tx_collided, 0)),
        // These cards send from whole frames.
        ("uflo", 0),
        ("oflo", of_card(|card| card.rx_missed, 0)),
        ("rbytes", low(rbytes)),
        ("ipackets", low(ipackets)),
        ("obytes", low(obytes)),
        ("opackets", low(opackets)),
        ("rbytes64", rbytes),
        ("ipackets64", ipackets),
        ("obytes64", obytes),
        ("opackets64", opackets),
    ];
    block("link", subject.info.name.clone(), stats)
}

/// What was dropped, by reason; protection's reasons first, as illumos has them.
fn misc(subject: &Subject, lanes: &Lanes) -> KstatBlock {
    let count = |reason| lanes.own.drops.get(reason) + lanes.orphans.get(reason);
    let protection = lanes.own.protection();
    let is_other = |reason: &&DropReason| protection.iter().all(|(name, _)| *name != reason.name());
    let others = DropReason::ALL.iter().filter(is_other);
    let others = others.map(|reason| (reason.name(), count(*reason)));
    let more = [
        ("dhcpdropped", subject.info.dhcp_dropped),
        ("overflowed", subject.overflowed),
    ];
    let all = protection.into_iter().chain(more).chain(others);
    block(&subject.info.name, "mac_misc_stat".into(), all)
}

/// A ring, and the soft rings that it fills.
fn of_ring(link: &str, number: usize, ring: &RingCounts) -> Vec<KstatBlock> {
    let port = &ring.port;
    let received = [
        ("rbytes", port.rx_bytes),
        ("ipackets", port.rx_frames),
        ("hdrops", port.rx_drops()),
    ];
    let sent = [("obytes", port.tx_bytes), ("opackets", port.tx_frames)];
    let mut blocks = Vec::from([
        block(link, format!("mac_rx_ring_0_{number}"), received),
        block(link, format!("mac_tx_ring{number}"), sent),
    ]);
    if !ring.fanout.is_empty() {
        let dropped = [
            ("rxsdrops", ring.soft_ring_drops),
            ("tcp_fragments", ring.tcp_fragments),
        ];
        blocks.push(block(link, format!("mac_rx_fanout{number}"), dropped));
    }
    for (cpu, soft) in ring.fanout.iter().enumerate() {
        let counts = [
            ("rbytes", soft.bytes),
            ("ipackets", soft.frames),
            ("waiting", soft.waiting),
        ];
        let name = format!("mac_rx_hwlane{number}_fanout{cpu}");
        blocks.push(block(link, name, counts));
    }
    blocks
}

fn block(
    module: &str,
    name: String,
    stats: impl IntoIterator<Item = counters::Kstat>,
) -> KstatBlock {
    let row = |(name, value): counters::Kstat| Kstat {
        name: name.into(),
        value,
    };
    KstatBlock {
        module: module.into(),
        name,
        rows: stats.into_iter().map(row).collect(),
    }
}
