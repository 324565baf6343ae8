//! A network card with rings, groups, filters and a hash, as data sheets describe them.
//!
//! Handles share one state: the control half goes to the control plane, a queue to each
//! lane, and the test keeps one to be the wire.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::link::rss::{Hasher, PortFields, Rss, bucket_of};
use ::link::toeplitz::Key;
use ::link::vlan::{self, Tag};
use ::link::{Header, Packet};
use base::{Duration, Instant};
use hal::{
    Capabilities, FramePort, MulticastFilter, NicControl, NicError, NicShape, PortCounters,
    PromiscuousScope, RingGroup, SpreadRule, Stall, VlanFilter,
};
use mbuf::{HeapPool, RxFrame, TxFrame};

struct Ring {
    waiting: VecDeque<RxFrame>,
    is_armed: bool,
    interrupts: u64,
    pulls: u64,
    is_pending: bool,
    /// Frames that found the ring full (`hdrops`).
    dropped: u64,
    unsent: VecDeque<TxFrame>,
}

struct Spread {
    hasher: Hasher,
    table: [u16; 128],
}

struct State {
    shape: NicShape,
    rx_slots: usize,
    tx_slots: usize,
    rings: Vec<Ring>,
    filters: Vec<(u16, [u8; 6])>,
    spreads: Vec<Option<Spread>>,
    promiscuous: Option<PromiscuousScope>,
    multicasts: Vec<[u8; 6]>,
    /// VLANs whose frames come in; all if there is no list.
    vlans: Option<Vec<u16>>,
    /// Whether frames leave as soon as the card is told.
    sends: bool,
    refuses: bool,
    sent: Vec<(u16, TxFrame)>,
    handles_tags: bool,
    filtered: u64,
}

/// A handle of a card.
#[derive(Clone)]
pub struct Card(Arc<Mutex<State>>);

impl Card {
    /// Groups with so many rings and filters each; rings are numbered through.
    pub fn new(mac: [u8; 6], groups: &[(u16, u16)], can_poll: bool) -> Self {
        let mut first = 0;
        let groups: Vec<RingGroup> = groups
            .iter()
            .map(|&(rings, filters)| {
                let start = first;
                first += rings;
                RingGroup {
                    rings: start..first,
                    filters,
                }
            })
            .collect();
        let rings = (0..first.max(1)).map(|_| Ring {
            waiting: VecDeque::new(),
            is_armed: true,
            interrupts: 0,
            pulls: 0,
            is_pending: false,
            dropped: 0,
            unsent: VecDeque::new(),
        });
        Self(Arc::new(Mutex::new(State {
            filters: vec![(0, mac)],
            spreads: groups.iter().map(|_| None).collect(),
            rings: rings.collect(),
            shape: NicShape {
                mac,
                mtu: 1500,
                speed_mbps: 10_000,
                groups,
                can_poll,
            },
            rx_slots: 4096,
            tx_slots: 512,
            promiscuous: None,
            multicasts: Vec::new(),
            vlans: None,
            sends: true,
            refuses: false,
            sent: Vec::new(),
            handles_tags: false,
            filtered: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Descriptors of each receive and each transmit ring.
    pub fn set_slots(&self, rx: usize, tx: usize) {
        (self.state().rx_slots, self.state().tx_slots) = (rx, tx);
    }

    /// Whether frames leave as soon as the card is told of them.
    pub fn set_sending(&self, sends: bool) {
        self.state().sends = sends;
    }

    /// Whether it takes tags out of frames and puts them in.
    pub fn set_handling_tags(&self, handles: bool) {
        self.state().handles_tags = handles;
    }

    /// Whether every control operation that can fail does.
    pub fn set_refusing(&self, refuses: bool) {
        self.state().refuses = refuses;
    }

    /// How many rings there are.
    pub fn rings(&self) -> u16 {
        self.state().rings.len() as u16
    }

    /// The group that a ring belongs to.
    pub fn group_of(&self, ring: u16) -> u16 {
        let groups = &self.state().shape.groups;
        let at = groups.iter().position(|group| group.rings.contains(&ring));
        at.unwrap_or(0) as u16
    }

    /// A frame comes over the wire; returns the ring that got it.
    pub fn arrive(&self, frame: RxFrame) -> Option<u16> {
        let mut state = self.state();
        let Some(ring) = state.ring_for(&frame) else {
            state.filtered += 1;
            return None;
        };
        let slots = state.rx_slots;
        let at = &mut state.rings[usize::from(ring)];
        if at.waiting.len() >= slots {
            at.dropped += 1;
            return None;
        }
        at.waiting.push_back(frame);
        if std::mem::take(&mut at.is_armed) {
            at.interrupts += 1;
            at.is_pending = true;
        }
        Some(ring)
    }

    /// Takes a ring's pending interrupt.
    pub fn take_interrupt(&self, ring: u16) -> bool {
        std::mem::take(&mut self.state().rings[usize::from(ring)].is_pending)
    }

    /// Interrupts that a ring raised so far.
    pub fn interrupts(&self, ring: u16) -> u64 {
        self.state().rings[usize::from(ring)].interrupts
    }

    /// How often a ring was asked for frames so far.
    pub fn pulls(&self, ring: u16) -> u64 {
        self.state().rings[usize::from(ring)].pulls
    }

    /// Frames that a ring lost because it was full.
    pub fn dropped(&self, ring: u16) -> u64 {
        self.state().rings[usize::from(ring)].dropped
    }

    /// Frames that wait in a ring.
    pub fn waiting(&self, ring: u16) -> usize {
        self.state().rings[usize::from(ring)].waiting.len()
    }

    /// What promiscuous mode is on for.
    pub fn promiscuous(&self) -> Option<PromiscuousScope> {
        self.state().promiscuous
    }

    /// Multicasts that the card was told to take.
    pub fn multicasts(&self) -> Vec<[u8; 6]> {
        self.state().multicasts.clone()
    }

    /// VLANs whose frames the card was told to take; `None` for all.
    pub fn vlans(&self) -> Option<Vec<u16>> {
        self.state().vlans.clone()
    }

    /// Takes what went out on the wire, with the ring that it left by.
    pub fn take_sent(&self) -> Vec<(u16, TxFrame)> {
        std::mem::take(&mut self.state().sent)
    }

    /// The control half.
    pub fn control(&self) -> Box<dyn NicControl + Send> {
        Box::new(self.clone())
    }

    /// One queue pair.
    pub fn queue(&self, ring: u16) -> CardQueue {
        CardQueue {
            card: self.clone(),
            ring,
        }
    }
}

impl State {
    fn ring_for(&self, frame: &RxFrame) -> Option<u16> {
        let header = Header::of(&frame.chain)?;
        if !self.lets_in(header.tag) {
            return None;
        }
        let filter = self.filters.iter().find(|(_, mac)| *mac == header.dst.0);
        let group = match (filter, self.promiscuous) {
            _ if header.dst.is_multicast() => 0,
            (Some((group, _)), _) => *group,
            (None, Some(PromiscuousScope::Group(group))) => group,
            (None, Some(PromiscuousScope::Card)) => 0,
            (None, None) => return None,
        };
        let first = self
            .shape
            .groups
            .get(usize::from(group))
            .map_or(0, |group| group.rings.start);
        let spread = self
            .spreads
            .get(usize::from(group))
            .and_then(Option::as_ref);
        let offset = spread.map_or(0, |spread| {
            let packet = Packet::of(&header, &frame.chain);
            spread.table[bucket_of(spread.hasher.hash(packet.as_ref()))]
        });
        Some(first + offset)
    }

    /// Who listens to everything hears all VLANs.
    fn lets_in(&self, tag: Tag) -> bool {
        match (&self.vlans, tag) {
            (Some(only), Tag::Vlan(vid)) if self.promiscuous.is_none() => only.contains(&vid.get()),
            _ => true,
        }
    }

    fn check(&self) -> Result<(), NicError> {
        if self.refuses {
            Err(NicError::Failed)
        } else {
            Ok(())
        }
    }
}

impl NicControl for Card {
    fn shape(&self) -> NicShape {
        self.state().shape.clone()
    }

    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
        let mut state = self.state();
        state.check()?;
        let used = state.filters.iter().filter(|(at, _)| *at == group).count();
        let room = state.shape.groups.get(usize::from(group));
        if room.is_none_or(|group| used >= usize::from(group.filters)) {
            return Err(NicError::FiltersFull);
        }
        state.filters.push((group, mac));
        Ok(())
    }

    fn remove_address(&mut self, group: u16, mac: [u8; 6]) {
        self.state().filters.retain(|at| *at != (group, mac));
    }

    fn set_promiscuous(&mut self, scope: PromiscuousScope, on: bool) -> Result<(), NicError> {
        let mut state = self.state();
        state.check()?;
        state.promiscuous = on.then_some(scope);
        Ok(())
    }

    fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError> {
        let mut state = self.state();
        state.check()?;
        state.multicasts = match filter {
            MulticastFilter::All => Vec::new(),
            MulticastFilter::Only(macs) => macs.to_vec(),
        };
        Ok(())
    }

    fn spread(&mut self, group: u16, rule: &SpreadRule<'_>) -> Result<(), NicError> {
        let mut state = self.state();
        state.check()?;
        state.spreads[usize::from(group)] = Some(Spread {
            hasher: Hasher::new(&Rss {
                key: Key(*rule.key),
                ports: PortFields {
                    tcp: rule.tcp_ports,
                    udp: rule.udp_ports,
                },
                ..Rss::default()
            }),
            table: *rule.table,
        });
        Ok(())
    }

    fn set_moderation(&mut self, _ring: u16, _spacing: Duration) -> Result<(), NicError> {
        self.state().check()
    }

    fn set_vlans(&mut self, filter: VlanFilter<'_>) -> Result<(), NicError> {
        let mut state = self.state();
        state.check()?;
        state.vlans = match filter {
            VlanFilter::All => None,
            VlanFilter::Only(ids) => Some(ids.to_vec()),
        };
        Ok(())
    }
}

/// A received frame whose tag is beside it.
fn without_tag(mut frame: RxFrame) -> RxFrame {
    let mut bytes = [0; 4];
    frame.chain.copy_to_slice(12, &mut bytes);
    if let [0x81, 0, high, low] = bytes {
        frame.tag = Some(u16::from_be_bytes([high, low]));
        assert!(vlan::strip(&mut frame.chain, &HeapPool::new(1)), "a buffer");
    }
    frame
}

/// A sent frame as it is on the wire.
fn with_tag(mut frame: TxFrame) -> TxFrame {
    if let Some(control) = frame.tag.take() {
        let pool = HeapPool::new(1);
        assert!(vlan::insert(&mut frame.chain, control, &pool), "a buffer");
    }
    frame
}

/// One queue pair of a card.
pub struct CardQueue {
    card: Card,
    ring: u16,
}

impl CardQueue {
    fn with<R>(&self, work: impl FnOnce(&mut Ring) -> R) -> R {
        work(&mut self.card.state().rings[usize::from(self.ring)])
    }
}

impl FramePort for CardQueue {
    fn mac(&self) -> [u8; 6] {
        self.card.state().shape.mac
    }

    fn mtu(&self) -> u16 {
        self.card.state().shape.mtu
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tags: self.card.state().handles_tags,
            ..Capabilities::default()
        }
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        let slots = self.card.state().tx_slots;
        self.with(|ring| {
            if ring.unsent.len() >= slots {
                return Err(frame);
            }
            ring.unsent.push_back(frame);
            Ok(())
        })
    }

    fn kick(&mut self) {
        self.reclaim();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        let frames: Vec<RxFrame> = self.with(|ring| {
            ring.pulls += 1;
            let count = budget.min(ring.waiting.len());
            ring.waiting.drain(..count).collect()
        });
        let count = frames.len();
        let handles_tags = self.card.state().handles_tags;
        for frame in frames {
            sink(match handles_tags {
                true => without_tag(frame),
                false => frame,
            });
        }
        count
    }

    fn unsent(&mut self) -> usize {
        self.with(|ring| ring.unsent.len())
    }

    fn reclaim(&mut self) {
        let mut state = self.card.state();
        if !state.sends {
            return;
        }
        let gone: Vec<_> = state.rings[usize::from(self.ring)]
            .unsent
            .drain(..)
            .collect();
        let ring = self.ring;
        assert!(
            state.handles_tags || gone.iter().all(|frame| frame.tag.is_none()),
            "it would leave its network"
        );
        let gone = gone.into_iter().map(|frame| (ring, with_tag(frame)));
        state.sent.extend(gone);
    }

    fn has_received(&mut self) -> bool {
        self.with(|ring| !ring.waiting.is_empty())
    }

    fn arm(&mut self) -> bool {
        self.with(|ring| {
            ring.is_armed = ring.waiting.is_empty();
            !ring.is_armed
        })
    }

    fn disarm(&mut self) {
        self.with(|ring| ring.is_armed = false);
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }

    /// It sends when a test says so.
    fn watch(&mut self, _now: Instant) -> Option<Stall> {
        None
    }
}
