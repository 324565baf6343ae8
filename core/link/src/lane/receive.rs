//! From the card upwards.

use hal::FramePort;
use mbuf::RxFrame;

use super::{Env, Outlook, Works, switch};
use crate::chain::RxChain;
use crate::counters::{Cause, DropReason, RxCount};
use crate::headers::Header;
use crate::poll::{Action, Admission, Poller};
use crate::protect::learn::is_snooped;
use crate::table::{Table, vid_of};
use crate::vlan::VlanId;

/// Frames looked at in one pass before other work gets its turn.
const PASS_FRAMES: usize = 256;
/// Pulls of one call; a card that always has more does not keep its owner for ever.
const PULLS_MAX: usize = 8;

/// How a round of polling ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Poll {
    /// Nothing to pull, or what was pulled still waits above.
    Done,
    /// There may be more.
    Again,
    /// The interrupt may be armed at this time.
    At(base::Instant),
}

/// Received frames that wait for the limit of one flow.
pub(super) const LIMITED_FRAMES_MAX: usize = 1024;

impl Poll {
    /// Whether the ring needs another round soon: while it is polled no interrupt will ask for one.
    fn is_unfinished(self, poller: &Poller) -> bool {
        match self {
            Self::Done => poller.is_polling(),
            Self::Again => true,
            Self::At(_) => false,
        }
    }
}

impl Works {
    /// An interrupt brings a batch, unless the ring is polled already.
    pub(super) fn interrupt<P: FramePort + ?Sized>(&mut self, card: &mut P, env: &mut impl Env) {
        self.throttle.interrupted(env.now());
        let Some(budget) = self.poller.interrupt() else {
            return;
        };
        let mut chain = self.pull(card, budget);
        self.poller.observe(self.waiting(env));
        self.ring
            .pulled(chain.len(), chain.bytes(), Cause::Interrupt);
        match self.poller.arrived(chain.len()) {
            Admission::Queue => self.backlog.append(&mut chain),
            Admission::Drop => {
                self.drop_orphans(&chain, DropReason::RingBacklog, env.now());
                chain.clear();
            }
        }
        self.pulled = chain;
    }

    pub(super) fn run<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        mut card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Outlook {
        self.pass(table, env);
        let mut next = Poll::Done;
        if let Some(card) = card.as_deref_mut() {
            if self.poller.pass_ended() {
                self.ring.count(RxCount::PollStarts);
                card.disarm();
            }
            next = self.poll(table, card, env);
        }
        self.pump(table, card, env);
        let mut outlook =
            self.outlook(next.is_unfinished(&self.poller) || !self.backlog.is_empty());
        if let Poll::At(time) = next {
            outlook.at = outlook.at.min(time);
        }
        outlook
    }

    fn poll<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        card: &mut P,
        env: &mut impl Env,
    ) -> Poll {
        for _ in 0..PULLS_MAX {
            match self.poller.action() {
                Action::Wait | Action::Rest => return Poll::Done,
                Action::Arm => {
                    if let Some(later) = self.throttle.wait_until(env.now()) {
                        return Poll::At(later);
                    }
                    let is_waiting = card.arm();
                    if self.poller.armed(is_waiting) {
                        self.interrupt(card, env);
                        self.pass(table, env);
                        self.poller.pass_ended();
                    }
                }
                Action::Pull(budget) => {
                    let mut chain = self.pull(card, budget);
                    let is_empty = chain.is_empty();
                    self.ring.pulled(chain.len(), chain.bytes(), Cause::Poll);
                    self.poller.pulled(chain.len());
                    self.backlog.append(&mut chain);
                    self.pulled = chain;
                    self.pass(table, env);
                    // Whoever has the frames above may need this lane to be done with them.
                    if is_empty && self.waiting(env) != 0 {
                        return Poll::Done;
                    }
                }
            }
        }
        Poll::Again
    }

    /// Takes up to `budget` frames from the card, in the room kept for them.
    fn pull<P: FramePort + ?Sized>(&mut self, card: &mut P, budget: usize) -> RxChain {
        let mut chain = core::mem::take(&mut self.pulled);
        card.receive(budget, &mut |frame| chain.push(frame));
        chain
    }

    /// Takes frames of the backlog, and those that a limit lets pass by now, up.
    fn pass(&mut self, table: &Table, env: &mut impl Env) {
        self.release(table, env);
        for _ in 0..PASS_FRAMES {
            let Some(frame) = self.backlog.pop() else {
                break;
            };
            self.sort_received(table, frame, env);
        }
        self.sorter.deliver(env);
        self.poller.observe(self.waiting(env));
    }

    /// Passes on what waited for a limit.
    fn release(&mut self, table: &Table, env: &mut impl Env) {
        if self.rx.waiting() == 0 {
            return;
        }
        for _ in 0..PASS_FRAMES {
            let Some((_, waiting)) = self.rx.pop(&table.queues, env.now()) else {
                break;
            };
            let header = Header::beside(&waiting.frame.chain, waiting.frame.tag);
            if let (Some(slot), Some(header)) = (table.slot_of(waiting.link), header) {
                self.hand_up(table, slot, &header, waiting.frame, env);
            }
        }
    }

    /// Finds the clients of a frame from the wire.
    fn sort_received(&mut self, table: &Table, frame: RxFrame, env: &mut impl Env) {
        let Some(header) = Header::beside(&frame.chain, frame.tag) else {
            self.drop_orphan(&frame.chain, DropReason::Malformed, env.now());
            return;
        };
        let Some(vid) = vid_of(header.tag) else {
            self.drop_orphan(&frame.chain, DropReason::Malformed, env.now());
            return;
        };
        let was_tapped = self.show_taps(table, &header, &frame, None, env);
        if header.dst.is_multicast() {
            self.copy_to_members(table, &header, frame, None, env);
            return;
        }
        match self.client_of(table, &header, vid) {
            Some(slot) => self.receive_for(table, slot, &header, frame, false, env),
            None if was_tapped => {}
            None => self.drop_orphan(&frame.chain, DropReason::NoClient, env.now()),
        }
    }

    /// Where the group is alone with its address one comparison finds the client; any
    /// other frame that comes by its rings takes the long way.
    fn client_of(&self, table: &Table, header: &Header, vid: Option<VlanId>) -> Option<usize> {
        let alone = table.alone_in(self.group);
        let alone = alone.filter(|slot| {
            let client = &table.clients[*slot];
            client.mac == header.dst && client.vid == vid
        });
        alone.or_else(|| table.find(header.dst, vid))
    }

    /// A frame has reached its client: learn, count, limit, hand up.
    pub(super) fn receive_for(
        &mut self,
        table: &Table,
        slot: usize,
        header: &Header,
        frame: RxFrame,
        is_local: bool,
        env: &mut impl Env,
    ) {
        let len = frame.chain.len();
        let client = &table.clients[slot];
        if let Some(account) = self.accounts.get_mut(slot) {
            switch::count_received(&mut account.counters.rx, header, len, is_local);
        }
        if client.learns
            && let Some(packet) = switch::packet_in(&frame.chain)
            && is_snooped(&packet, &frame.chain, false)
        {
            env.learn(client.link, false, &frame.chain);
        }
        let queue = client.queue_of(|| switch::packet_in(&frame.chain), false);
        self.flows.count(queue, |flow| flow.received(len));
        if self.rx.may_pass(&table.queues, queue, env.now(), len) {
            self.hand_up(table, slot, header, frame, env);
        } else if self.rx.waiting_in(queue) >= LIMITED_FRAMES_MAX
            || table.queues[usize::from(queue)].is_shut(false)
        {
            self.flows.count(queue, |flow| flow.rx_dropped += 1);
            self.drop_for(slot, DropReason::RxBandwidth, &frame.chain, env.now());
        } else if let Err(frame) = self.rx.push(queue, client.link, frame) {
            self.drop_for(slot, DropReason::LinkGone, &frame.chain, env.now());
        }
    }

    /// Gives a frame to the streams that take its protocol, without its tag.
    fn hand_up(
        &mut self,
        table: &Table,
        slot: usize,
        header: &Header,
        mut frame: RxFrame,
        env: &mut impl Env,
    ) {
        let client = &table.clients[slot];
        let sighting = switch::sighting(client, header, false);
        frame.tag = None;
        if header.is_tagged && !switch::untag(&mut frame, env.pool()) {
            self.drop_for(slot, DropReason::NoBuffer, &frame.chain, env.now());
            return;
        }
        let mut is_seen = false;
        let mut taker = None;
        for listener in &client.listeners {
            if listener.promiscuity.sees(sighting, client.is_filtered) {
                // It has its copy already.
                is_seen = true;
            } else if listener.takes(header.ether_type)
                && let Some(other) = taker.replace(listener.id)
            {
                self.sorter.push(other, switch::copy(&frame));
            }
        }
        match taker {
            Some(stream) => self.sorter.push(stream, frame),
            None if is_seen => {}
            None => self.drop_for(slot, DropReason::Unclaimed, &frame.chain, env.now()),
        }
    }
}
