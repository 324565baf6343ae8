//! A machine's link layer around a simulated card: links, a lane for each ring, and a
//! shell that remembers what it was given.

use ::link::lane::{Blocked, Bypass, TxFlags};
use ::link::links::LinkError;
use ::link::rss::Rss;
use ::link::{Env, Lane, LinkId, Links, Outlook, RxChain, StreamId, TxChain};
use base::Instant;
use hal::FramePort;
use mbuf::{Chain, HeapPool, Pool, RxFrame};
use wire::MacAddr;

pub mod card;
pub mod frames;
mod fuzz_requests;
mod machine;
mod siege;
mod wellformed;

pub use card::Card;
pub use fuzz_requests::fuzz_requests;
pub use machine::Machine;
pub use siege::besiege;

/// What lanes see of their shell.
pub struct Shell {
    /// The clock.
    pub now: Instant,
    /// All buffers.
    pub pool: HeapPool,
    /// Frames that streams got, in order, and how long each chain was.
    pub delivered: Vec<(StreamId, RxFrame)>,
    /// Calls of `deliver`.
    pub deliveries: usize,
    /// What the test says waits above.
    pub backlog: usize,
    /// Links that may send again.
    pub resumed: Vec<LinkId>,
    snooped: Vec<(LinkId, bool, Chain)>,
}

impl Env for Shell {
    fn now(&self) -> Instant {
        self.now
    }

    fn pool(&self) -> &dyn Pool {
        &self.pool
    }

    fn deliver(&mut self, stream: StreamId, frames: &mut RxChain) {
        self.deliveries += 1;
        self.delivered
            .extend(frames.drain().map(|frame| (stream, frame)));
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn learn(&mut self, link: LinkId, is_sent: bool, frame: &Chain) {
        let frame = frame.share(0, usize::MAX);
        self.snooped.push((link, is_sent, frame));
    }

    fn resume(&mut self, link: LinkId) {
        self.resumed.push(link);
    }
}

/// One port with its lanes: over a card, or over none.
pub struct Lan {
    /// The control plane.
    pub links: Links,
    /// The port's link.
    pub port: LinkId,
    /// The card, if the port is no etherstub.
    pub card: Option<Card>,
    /// The shell.
    pub shell: Shell,
    /// One for each ring.
    pub lanes: Vec<Lane>,
    /// What passes the first one by.
    bypass: Bypass,
}

/// Buffers of a LAN.
const BUFFERS: usize = 16_384;

impl Lan {
    /// Over a card.
    pub fn with_card(card: Card) -> Result<Self, LinkError> {
        Self::with_buffers(Some(card), BUFFERS)
    }

    /// Over an etherstub with one lane.
    pub fn with_etherstub() -> Result<Self, LinkError> {
        Self::with_buffers(None, BUFFERS)
    }

    fn with_buffers(card: Option<Card>, buffers: usize) -> Result<Self, LinkError> {
        let mut links = Links::new();
        let port = match &card {
            Some(card) => links.attach("net0", card.control(), &Rss::default())?,
            None => links.create_etherstub("stub0")?,
        };
        let can_poll = card
            .as_ref()
            .is_none_or(|card| hal::NicControl::shape(card).can_poll);
        let rings = card.as_ref().map_or(1, Card::rings);
        let group_of = |ring| card.as_ref().map_or(0, |card| card.group_of(ring));
        let (generation, table) = links.table(port).ok_or(LinkError::NotFound)?;
        let lane = |ring| {
            let group = group_of(ring);
            Lane::new(group, can_poll, generation.clone(), table.clone())
        };
        Ok(Self {
            lanes: (0..rings).map(lane).collect(),
            bypass: Bypass::default(),
            links,
            port,
            card,
            shell: Shell {
                now: Instant::from_millis(1),
                pool: HeapPool::new(buffers),
                delivered: Vec::new(),
                deliveries: 0,
                backlog: 0,
                resumed: Vec::new(),
                snooped: Vec::new(),
            },
        })
    }

    /// A frame comes over the wire; returns the ring that got it.
    pub fn arrive(&mut self, bytes: &[u8]) -> Option<u16> {
        let frame = frames::received(&self.shell.pool, bytes)?;
        self.card.as_ref()?.arrive(frame)
    }

    /// What every shell does before a batch: takes the newest table.
    fn refresh(&mut self, ring: usize) {
        if self.lanes[ring].is_stale()
            && let Some((_, table)) = self.links.table(self.port)
        {
            self.lanes[ring].adopt(table);
        }
    }

    /// One call of a lane's worker, or of its interrupt if one is pending.
    pub fn run(&mut self, ring: usize) -> Outlook {
        self.refresh(ring);
        let lane = &mut self.lanes[ring];
        let Some(card) = &self.card else {
            return lane.run(None::<&mut dyn FramePort>, &mut self.shell);
        };
        let mut queue = card.queue(ring as u16);
        let outlook = match card.take_interrupt(ring as u16) {
            true => lane.interrupt(Some(&mut queue), &mut self.shell),
            false => lane.run(Some(&mut queue), &mut self.shell),
        };
        self.take_snooped();
        outlook
    }

    /// Runs all lanes until none has anything to do now.
    pub fn settle(&mut self) {
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            for ring in 0..self.lanes.len() {
                let pending = self.card.as_ref().map(|card| card.waiting(ring as u16));
                let unsent = self.lanes[ring].unsent();
                is_busy |= self.run(ring).is_busy || self.lanes[ring].unsent() < unsent;
                let left = self.card.as_ref().map(|card| card.waiting(ring as u16));
                is_busy |= left < pending;
            }
        }
    }

    /// Lets a stream's link send frames by a lane.
    pub fn send_by(
        &mut self,
        ring: usize,
        link: LinkId,
        bytes: &[Vec<u8>],
        flags: TxFlags,
    ) -> (Result<Outlook, Blocked>, TxChain) {
        self.refresh(ring);
        let pool = &self.shell.pool;
        let mut chain: TxChain = bytes
            .iter()
            .filter_map(|bytes| frames::sent(pool, bytes))
            .collect();
        let outcome = self.send_chain(ring, link, &mut chain, flags);
        (outcome, chain)
    }

    /// Sends frames that are made already.
    pub fn send_chain(
        &mut self,
        ring: usize,
        link: LinkId,
        chain: &mut TxChain,
        flags: TxFlags,
    ) -> Result<Outlook, Blocked> {
        self.refresh(ring);
        let mut queue = self.card.as_ref().map(|card| card.queue(ring as u16));
        let outcome =
            self.lanes[ring].transmit(link, chain, flags, queue.as_mut(), &mut self.shell);
        self.take_snooped();
        outcome
    }

    /// Sends one frame by the first lane.
    pub fn send(&mut self, link: LinkId, bytes: &[u8]) {
        let _ = self.send_by(0, link, &[bytes.to_vec()], TxFlags::empty());
    }

    /// Takes what may pass the first lane by on its way to `link`, as who polls in its stead does.
    pub fn receive_past(&mut self, link: LinkId) -> Vec<Vec<u8>> {
        self.refresh(0);
        let mut passed = Vec::new();
        let Some(card) = &self.card else {
            return passed;
        };
        let (lane, shell) = (&mut self.lanes[0], &mut self.shell);
        lane.settle(link, true, &mut self.bypass);
        if self.bypass.is_open() {
            let (mut frames, mut bytes) = (0, 0);
            card.queue(0).receive(usize::MAX, &mut |frame: RxFrame| {
                if !self.bypass.receives(&frame) {
                    return lane.sort(frame);
                }
                frames += 1;
                bytes += frame.chain.len() as u64;
                passed.push(frame.chain.slices().flatten().copied().collect());
            });
            self.bypass.note_received(frames, bytes);
            let _ = lane.end_batch(shell);
            lane.settle(link, true, &mut self.bypass);
        }
        passed
    }

    /// Sends one frame past the first lane, or by it where it must see the frame.
    pub fn send_past(&mut self, link: LinkId, bytes: &[u8]) {
        self.refresh(0);
        self.lanes[0].settle(self.port, true, &mut self.bypass);
        let frame = frames::sent(&self.shell.pool, bytes);
        let (Some(card), Some(frame)) = (&self.card, frame) else {
            return;
        };
        let mut queue = card.queue(0);
        let len = frame.chain.len();
        let is_sent = match self.lanes[0].place_of(link) {
            _ if link == self.port && self.bypass.sends(&frame) => {
                self.bypass.note_sent(len);
                queue.transmit(frame).is_ok()
            }
            Some(place) if link != self.port && self.bypass.sends_of(place, &frame) => {
                self.bypass.note_sent_of(place, len);
                queue.transmit(frame).is_ok()
            }
            _ => false,
        };
        match is_sent {
            true => queue.kick(),
            false => self.send(link, bytes),
        }
        self.lanes[0].settle(self.port, true, &mut self.bypass);
    }

    fn take_snooped(&mut self) {
        for (link, is_sent, frame) in std::mem::take(&mut self.shell.snooped) {
            self.links.learn(self.shell.now, link, is_sent, &frame);
        }
    }

    /// Takes the frames that a stream got.
    pub fn take(&mut self, stream: StreamId) -> Vec<Vec<u8>> {
        let all = std::mem::take(&mut self.shell.delivered);
        let (ours, rest) = all.into_iter().partition(|(to, _)| *to == stream);
        self.shell.delivered = rest;
        let ours: Vec<(StreamId, RxFrame)> = ours;
        ours.iter()
            .map(|(_, frame)| frame.chain.slices().flatten().copied().collect())
            .collect()
    }

    /// Takes what went out on the wire.
    pub fn take_wire(&self) -> Vec<Vec<u8>> {
        let sent = self.card.as_ref().map(Card::take_sent).unwrap_or_default();
        sent.iter()
            .map(|(_, frame)| frame.chain.slices().flatten().copied().collect())
            .collect()
    }

    /// A stream on a link that takes IPv4, ARP and IPv6, as a stack does.
    pub fn stack_on(&mut self, link: LinkId) -> Result<StreamId, LinkError> {
        let stream = self.links.open(link)?;
        for sap in [0x0800, 0x0806, 0x86dd] {
            self.links.bind(stream, sap)?;
        }
        Ok(stream)
    }
}

/// A station whose address ends so.
pub fn station(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}
