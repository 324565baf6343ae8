//! Frames that need no look: between the wire and the client of their address.
//!
//! A port with idle VNICs is not plain, but most of its frames still concern one client that
//! everything is allowed to, and nobody else wants to see them. Such a client is *direct*
//! ([`may_pass`]). The first six bytes of a frame, read as one number, then decide:
//! - received, where they are a direct client's address and no tag follows;
//! - sent, where they are neither a group's nor those of a client of this port.
//!
//! Frames of the ring's own stack do not come here at all, nor do those that other clients send:
//! whoever has the ring asks its [`Bypass`], which costs two comparisons for a frame. It is shut
//! while the lane must see all, and while anything waits there, so that frames keep their order.
//! What other direct clients receive comes by [`Lane::sort`], and batches that they send by
//! [`Lane::transmit`], which asks the table itself ([`Table::leaves`]). All ways count the same.
//!
//! Whatever else there is (groups, neighbours on the port, tags) goes through the lane as ever.
//!
//! Not here: telling the card of what was sent; who sends does that once a batch.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mbuf::{Chain, RxFrame, TxFrame};
use wire::{ETHERNET_HEADER_BYTES, EtherType, MacAddr};

use super::{Account, Env, Lane, Works};
use crate::counters::{RxCount, TxCount};
use crate::table::{Client, Generation, LinkId, QueueSpec, Table};
use crate::vlan::TAG_TYPE;

/// What a stream must take for its client to be direct.
const PROTOCOLS: [EtherType; 3] = [EtherType::Ipv4, EtherType::Arp, EtherType::Ipv6];

/// The bits of an address in the first eight bytes of a frame.
const ADDRESS_BITS: u64 = (1 << 48) - 1;
/// The bit of them that a group's address has.
const GROUP_BIT: u64 = 1;
/// No address.
const NOBODY: u64 = u64::MAX;

/// Whether frames of a client may pass the lane by. The table has found that nobody watches
/// unicast frames.
pub(crate) fn may_pass(client: &Client, queues: &[QueueSpec]) -> bool {
    let [listener] = &client.listeners[..] else {
        return false;
    };
    let queue = queues.get(usize::from(client.queue));
    client.guard.is_none()
        && !client.learns
        && client.vid.is_none()
        && client.flows.is_empty()
        && queue.is_some_and(|queue| !queue.is_limited(true) && !queue.is_limited(false))
        && PROTOCOLS.iter().all(|kind| listener.takes(kind.number()))
}

/// An address as [`receiver_of`] reads it.
pub(crate) const fn as_receiver(mac: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// The receiver of a frame whose header is in one piece.
#[inline]
fn receiver_of(frame: &Chain) -> Option<u64> {
    let header = header_of(frame)?;
    Some(first_address(header))
}

/// The same of a frame whose bytes have no tag.
#[inline]
fn untagged_receiver_of(frame: &RxFrame) -> Option<u64> {
    let header = header_of(&frame.chain)?;
    let is_tagged = frame.tag.is_some() || header[12..14] == TAG_TYPE.to_be_bytes();
    (!is_tagged).then(|| first_address(header))
}

#[inline]
fn header_of(frame: &Chain) -> Option<&[u8; ETHERNET_HEADER_BYTES]> {
    frame.front()?.bytes().first_chunk()
}

#[inline]
fn first_address(header: &[u8; ETHERNET_HEADER_BYTES]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *header;
    u64::from_le_bytes([a, b, c, d, e, f, g, h]) & ADDRESS_BITS
}

/// The addresses of a port's clients, and a bit for each of their last bytes: mostly the bits tell
/// at once that an address is none of theirs.
#[derive(Clone, Default, Debug)]
pub(crate) struct Addresses {
    all: Vec<u64>,
    last_bytes: u64,
}

impl Addresses {
    pub fn new(clients: &[Client]) -> Self {
        let all: Vec<u64> = clients.iter().map(|one| as_receiver(one.mac)).collect();
        let last_bytes = all.iter().fold(0, |bits, one| bits | last_byte_bit(*one));
        Self { all, last_bytes }
    }

    /// The address of the client in a place of the table.
    fn of(&self, slot: usize) -> Option<u64> {
        self.all.get(slot).copied()
    }

    #[inline]
    fn contains(&self, address: u64) -> bool {
        self.last_bytes & last_byte_bit(address) != 0 && self.all.contains(&address)
    }

    /// Whether frames to this address stay on the port, all or some of them.
    #[inline]
    fn is_local(&self, to: u64) -> bool {
        to & GROUP_BIT != 0 || self.contains(to)
    }
}

/// One of 64 bits, by the last byte of an address.
#[inline]
const fn last_byte_bit(address: u64) -> u64 {
    1 << (address >> 40 & 63)
}

/// Frames and their bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Carried {
    frames: u64,
    bytes: u64,
}

impl Carried {
    #[inline]
    fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// Which frames need no look: a copy of what the lane's table says, for whoever has the ring.
#[derive(Debug)]
pub struct Bypass {
    /// Which table it is of, and the port's newest: a table that somebody has just replaced lets
    /// nothing pass.
    generation: u64,
    newest: Option<Arc<Generation>>,
    /// The own stack's address, or [`NOBODY`].
    own: u64,
    /// Nothing waits in the lane.
    is_clear: bool,
    /// And the own stack's frames pass.
    is_open: bool,
    local: Addresses,
    received: Carried,
    sent: Carried,
    /// What other clients sent, by their place in the table.
    sent_by: Vec<(LinkId, Carried)>,
}

/// Where a client is in one table that lets its frames pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    generation: u64,
    slot: usize,
}

impl Default for Bypass {
    fn default() -> Self {
        Self {
            generation: 0,
            newest: None,
            own: NOBODY,
            is_clear: false,
            is_open: false,
            local: Addresses::default(),
            received: Carried::default(),
            sent: Carried::default(),
            sent_by: Vec::new(),
        }
    }
}

impl Bypass {
    /// Whether any frames of the own stack pass now.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_open && self.is_current()
    }

    #[inline]
    fn is_current(&self) -> bool {
        let mut newest = self.newest.iter();
        newest.any(|newest| newest.is(self.generation))
    }

    /// Whether a received frame is for the own stack and needs no look, while the way is open.
    #[inline]
    pub fn receives(&self, frame: &RxFrame) -> bool {
        untagged_receiver_of(frame) == Some(self.own)
    }

    /// Whether a frame of the own stack is for a station on the wire and needs no look.
    #[inline]
    pub fn sends(&self, frame: &TxFrame) -> bool {
        self.is_open() && self.leaves(frame)
    }

    /// The same of a frame of another client, which was at this place.
    #[inline]
    pub fn sends_of(&self, client: Place, frame: &TxFrame) -> bool {
        let is_there = self.generation == client.generation && self.is_current();
        self.is_clear && is_there && self.leaves(frame)
    }

    #[inline]
    fn leaves(&self, frame: &TxFrame) -> bool {
        let to = receiver_of(&frame.chain);
        frame.tag.is_none() && to.is_some_and(|to| !self.local.is_local(to))
    }

    /// So many frames [were received](Self::receives).
    #[inline]
    pub fn note_received(&mut self, frames: usize, bytes: u64) {
        self.received.frames += frames as u64;
        self.received.bytes += bytes;
    }

    /// A frame [was sent](Self::sends).
    #[inline]
    pub fn note_sent(&mut self, bytes: usize) {
        self.sent.add(bytes);
    }

    /// A frame [was sent](Self::sends_of) by another client.
    #[inline]
    pub fn note_sent_of(&mut self, client: Place, bytes: usize) {
        if let Some((_, sent)) = self.sent_by.get_mut(client.slot) {
            sent.add(bytes);
        }
    }

    fn adopt(&mut self, table: &Table, newest: &Arc<Generation>, own: Option<usize>) {
        self.generation = table.generation;
        self.newest = Some(newest.clone());
        let direct = own.filter(|slot| table.is_direct(*slot));
        let address = direct.and_then(|slot| table.addresses.of(slot));
        self.own = address.unwrap_or(NOBODY);
        self.local.clone_from(&table.addresses);
        self.sent_by.clear();
        let clients = table.clients.iter();
        self.sent_by
            .extend(clients.map(|client| (client.link, Carried::default())));
    }
}

impl Table {
    /// Whether a frame of a direct client, who may have made it as it likes, is for a station on the
    /// wire and needs no look.
    #[inline]
    pub(super) fn leaves(&self, client: &Client, frame: &TxFrame) -> bool {
        let Some(header) = header_of(&frame.chain) else {
            return false;
        };
        let is_plain = frame.tag.is_none()
            && frame.segment.is_none()
            && header[12..14] != TAG_TYPE.to_be_bytes();
        let fits = frame.chain.len() <= usize::from(client.mtu) + ETHERNET_HEADER_BYTES;
        is_plain && fits && !self.addresses.is_local(first_address(header))
    }
}

impl Lane {
    /// Brings `bypass` in step with the lane, and counts what it let pass: frames of `own`, the
    /// link of the ring's own stack, and of other clients. `is_clear` says that nothing waits for
    /// that stack above.
    pub fn settle(&mut self, own: LinkId, is_clear: bool, bypass: &mut Bypass) {
        let works = &mut self.works;
        let received = core::mem::take(&mut bypass.received);
        works.count_received_past(own, received);
        works.count_sent_past(own, core::mem::take(&mut bypass.sent));
        for (link, sent) in &mut bypass.sent_by {
            works.count_sent_past(*link, core::mem::take(sent));
        }
        let table = &self.table;
        if bypass.newest.is_none() || bypass.generation != table.generation {
            bypass.adopt(table, &self.generation, table.slot_of(own));
        }
        bypass.is_clear = works.is_clear();
        bypass.is_open = bypass.own != NOBODY && is_clear && bypass.is_clear;
    }

    /// The place of a client, while its frames may pass.
    pub fn place_of(&self, link: LinkId) -> Option<Place> {
        let table = &self.table;
        let slot = table.slot_of(link)?;
        table.is_direct(slot).then_some(Place {
            generation: table.generation,
            slot,
        })
    }

    /// A received frame that no bypass took; [`end_batch`](Self::end_batch) follows.
    pub fn sort(&mut self, frame: RxFrame) {
        let to = untagged_receiver_of(&frame);
        let works = &mut self.works;
        let Some((slot, stream)) = to.and_then(|to| self.table.direct_to(to)) else {
            return works.backlog.push(frame);
        };
        if let Some(account) = works.accounts.get_mut(slot) {
            account.counters.rx.count(RxCount::Packets);
            let len = frame.chain.len() as u64;
            account.counters.rx.add(RxCount::Bytes, len);
        }
        works.sorter.push(stream, frame);
    }

    /// Hands on what was sorted; says whether the lane has to run now.
    pub fn end_batch(&mut self, env: &mut impl Env) -> bool {
        let works = &mut self.works;
        works.sorter.deliver(env);
        if !works.backlog.is_empty() {
            works.poller.arrived(works.backlog.len());
        }
        !works.backlog.is_empty() || !works.is_idle()
    }
}

impl Works {
    fn count_received_past(&mut self, link: LinkId, received: Carried) {
        if received.frames != 0
            && let Some(account) = self.account_of(link)
        {
            account.counters.rx.add(RxCount::Packets, received.frames);
            account.counters.rx.add(RxCount::Bytes, received.bytes);
        }
    }

    fn count_sent_past(&mut self, link: LinkId, sent: Carried) {
        if sent.frames != 0
            && let Some(account) = self.account_of(link)
        {
            account.counters.tx.add(TxCount::Packets, sent.frames);
            account.counters.tx.add(TxCount::Bytes, sent.bytes);
        }
    }

    fn account_of(&mut self, link: LinkId) -> Option<&mut Account> {
        let mut all = self.accounts.iter_mut();
        all.find(|account| account.link == link)
    }

    /// Nothing waits here that a pass would move.
    fn is_idle(&self) -> bool {
        self.rx.waiting() == 0 && self.tx.waiting() == 0 && !self.is_card_full
    }

    /// Nothing is here that a frame past the lane would overtake, and the ring is not the lane's.
    pub(super) fn is_clear(&self) -> bool {
        self.is_idle() && self.backlog.is_empty() && !self.poller.is_polling()
    }
}
