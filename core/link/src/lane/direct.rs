//! Frames that need no look: between the wire and the client of their address.
//!
//! A port with idle VNICs is not plain, but most of its frames still concern one client that
//! everything is allowed to, and nobody else wants to see them. For such a client
//! ([`Client::is_direct`]) the first bytes of a frame decide, and the frame passes the lane by:
//! - received, where it is for the client's address and a protocol that its one stream takes;
//! - sent, where it goes to an address on the wire, and nothing waits here before it.
//!
//! Whatever else there is (groups, neighbours on the port, tags) goes through the lane as ever, and while anything waits in it, all does, so that frames keep their
//! order. Both ways count the same.
//!
//! Frames of the client who asks are counted together, once a batch, and nobody reads a clock
//! for them.
//!
//! Not here: telling the card of what was sent; who sends does that once a batch.

use hal::FramePort;
use mbuf::{Chain, RxFrame, TxFrame};
use wire::{ETHERNET_HEADER_BYTES, EtherType, MacAddr};

use super::{Env, Lane, Works};
use crate::counters::{Cause, RxCount, TxCount};
use crate::table::{Client, LinkId, QueueSpec, Table};

/// What became of a batch ([`Lane::interrupt_past`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Frames that went to who asked.
    pub taken: usize,
    /// Frames for others, and their bytes.
    pub others: u64,
    /// See `others`.
    pub others_bytes: u64,
    /// Whether the lane has to run now.
    pub has_more: bool,
}

/// What a stream must take for its client to be direct.
const PROTOCOLS: [EtherType; 3] = [EtherType::Ipv4, EtherType::Arp, EtherType::Ipv6];

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

/// Receiver and protocol of a frame whose header is in one piece and has no tag.
#[inline]
fn ends(frame: &Chain) -> Option<MacAddr> {
    let bytes = frame.front()?.bytes().get(..ETHERNET_HEADER_BYTES)?;
    let protocol = u16::from_be_bytes([bytes[12], bytes[13]]);
    let is_known = PROTOCOLS.iter().any(|kind| kind.number() == protocol);
    is_known.then(|| MacAddr([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]))
}

impl Lane {
    /// [`interrupt`](Self::interrupt) for who takes the frames of `link` in place: those that need
    /// no look go to `sink`, up to `budget` of them. `None` where the lane must see all.
    pub fn interrupt_past<P: FramePort + ?Sized>(
        &mut self,
        link: LinkId,
        card: &mut P,
        budget: usize,
        env: &mut impl Env,
        sink: &mut dyn FnMut(RxFrame),
    ) -> Option<Passed> {
        let slot = self.works.direct_slot(&self.table, link)?;
        if self.works.poller.is_polling() || !self.works.backlog.is_empty() {
            return None;
        }
        let works = &mut self.works;
        Some(works.receive_past(&self.table, slot, card, budget, env, sink))
    }

    /// Sends a frame that needs no look; it comes back where the lane must see it. The card is
    /// told by the caller.
    pub fn transmit_past<P: FramePort + ?Sized>(
        &mut self,
        link: LinkId,
        frame: TxFrame,
        card: &mut P,
    ) -> Result<(), TxFrame> {
        let table = &self.table;
        let slot = self.works.direct_slot(table, link);
        let (Some(slot), Some(to)) = (slot, ends(&frame.chain)) else {
            return Err(frame);
        };
        let mtu = usize::from(table.clients[slot].mtu) + ETHERNET_HEADER_BYTES;
        let is_whole = frame.segment.is_some() || frame.chain.len() <= mtu;
        let is_local = to.is_multicast() || table.find(to, None).is_some();
        if !is_whole || is_local || self.works.tx.waiting() != 0 || self.works.is_card_full {
            return Err(frame);
        }
        let bytes = frame.chain.len();
        card.transmit(frame)?;
        let counts = &mut self.works.accounts[slot].counters.tx;
        counts.count(TxCount::Packets);
        counts.add(TxCount::Bytes, bytes as u64);
        Ok(())
    }
}

impl Works {
    fn direct_slot(&self, table: &Table, link: LinkId) -> Option<usize> {
        let slot = table.slot_of(link)?;
        (table.is_direct(slot) && slot < self.accounts.len()).then_some(slot)
    }

    /// Nothing waits here that a pass would move.
    fn is_idle(&self) -> bool {
        self.rx.waiting() == 0 && self.tx.waiting() == 0 && !self.is_card_full
    }

    /// One batch from the card; what the lane must see is in its backlog then.
    fn receive_past<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        slot: usize,
        card: &mut P,
        budget: usize,
        env: &mut impl Env,
        sink: &mut dyn FnMut(RxFrame),
    ) -> Passed {
        let (mut taken, mut bytes) = (0, 0);
        let (mut others, mut others_bytes) = (0, 0);
        let own = table.clients[slot].mac;
        let (backlog, sorter, accounts) = (&mut self.backlog, &mut self.sorter, &mut self.accounts);
        card.receive(budget, &mut |frame| {
            let len = frame.chain.len() as u64;
            let to = match frame.tag {
                None => ends(&frame.chain),
                Some(_) => None,
            };
            if to == Some(own) {
                taken += 1;
                bytes += len;
                return sink(frame);
            }
            others += 1;
            others_bytes += len;
            let of = to.and_then(|to| table.direct_to(to, slot));
            let Some((of, stream)) = of.and_then(|of| Some((of, table.stream_of(of)?))) else {
                return backlog.push(frame);
            };
            if let Some(account) = accounts.get_mut(of) {
                account.counters.rx.count(RxCount::Packets);
                account.counters.rx.add(RxCount::Bytes, len);
            }
            sorter.push(stream, frame);
        });
        if let Some(account) = accounts.get_mut(slot) {
            account.counters.rx.add(RxCount::Packets, taken as u64);
            account.counters.rx.add(RxCount::Bytes, bytes);
        }
        let all = taken + others as usize;
        if all != 0 {
            let all_bytes = bytes + others_bytes;
            self.ring.pulled(all, all_bytes, Cause::Interrupt);
            self.sorter.deliver(env);
        }
        if !self.backlog.is_empty() {
            self.poller.arrived(self.backlog.len());
        }
        Passed {
            taken,
            others,
            others_bytes,
            has_more: !self.backlog.is_empty() || !self.is_idle(),
        }
    }
}
