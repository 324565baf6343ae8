//! What links and flows have carried, added up over lanes.
//!
//! Of a card's own link it is what the card says, if it counts: what moved on the wire.
//! If it does not, it is what its rings brought and what all its clients sent. Of an
//! etherstub, it is what all its clients have carried.

use alloc::vec::Vec;

use hal::CardCounters;
use link::LinkId;
use link::counters::{Counters, RxCount};
use link::flow::{FlowError, FlowId};
use link::lane::FlowCounters;
use link::links::{Class, LinkError, LinkInfo};

use super::{Shell, find};
use crate::answer::{Answer, Refusal, Statistics};

/// Bytes of a frame's check sequence, which cards count and lanes do not see.
const FCS_BYTES: u64 = 4;

pub fn of_link(name: &str, shell: &mut impl Shell) -> Result<Answer, Refusal> {
    carried(name, shell).map(Answer::Statistics)
}

/// What a link has carried.
pub fn carried(name: &str, shell: &mut impl Shell) -> Result<Statistics, Refusal> {
    let (info, clients) = shell.with_links(|links| {
        let info = links.info(find(links, name)?);
        let info = info.ok_or(Refusal::Link(LinkError::NotFound))?;
        let is_under = |other: &LinkInfo| other.id == info.id || other.over == Some(info.id);
        let clients: Vec<LinkId> = links.iter().filter(is_under).map(|info| info.id).collect();
        Ok((info, clients))
    })?;
    let is_card = info.class == Class::Phys;
    if is_card && let Some(card) = shell.card_counters(name) {
        return Ok(of_card(&card));
    }
    let mut sum = Counters::default();
    let (mut frames, mut bytes) = (0, 0);
    shell.each_lane(info.over.unwrap_or(info.id), |lane| {
        frames += lane.ring_counts().get(RxCount::Packets);
        bytes += lane.ring_counts().get(RxCount::Bytes);
        let clients = clients.iter().filter_map(|client| lane.counters(*client));
        clients.for_each(|counters| sum.add(counters));
    });
    let mut counts: Statistics = sum.link().map(|(_, count)| count);
    if is_card {
        (counts[0], counts[1]) = (frames, bytes);
    }
    Ok(counts)
}

fn of_card(card: &CardCounters) -> Statistics {
    let without_fcs = |bytes: u64, frames: u64| bytes.saturating_sub(frames * FCS_BYTES);
    [
        card.rx_frames,
        without_fcs(card.rx_bytes, card.rx_frames),
        card.rx_missed + card.rx_damaged + card.rx_bad_length,
        card.tx_frames,
        without_fcs(card.tx_bytes, card.tx_frames),
        card.tx_collided,
    ]
}

pub fn of_flow(name: &str, shell: &mut impl Shell) -> Result<Answer, Refusal> {
    let (flow, port) = shell.with_links(|links| {
        let mut flows = links.flows().filter(|flow| flow.name == name);
        let missing = Refusal::Link(LinkError::Flow(FlowError::NoSuchFlow));
        let found = flows.next().ok_or(missing)?;
        let info = links.info(found.link);
        let info = info.ok_or(Refusal::Link(LinkError::NotFound))?;
        Ok::<(FlowId, LinkId), Refusal>((found.id, info.over.unwrap_or(info.id)))
    })?;
    let mut sum = FlowCounters::default();
    shell.each_lane(port, |lane| {
        lane.flow_counters(flow)
            .into_iter()
            .for_each(|counters| sum.add(counters));
    });
    Ok(Answer::FlowStatistics([
        sum.rx_frames,
        sum.rx_bytes,
        sum.rx_dropped,
        sum.tx_frames,
        sum.tx_bytes,
        sum.tx_dropped,
    ]))
}
