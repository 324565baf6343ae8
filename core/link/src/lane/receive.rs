//! From the card upwards.

use hal::FramePort;
use mbuf::RxFrame;

use super::{Env, Lane, Outlook, switch};
use crate::chain::RxChain;
use crate::counters::{DropReason, RxCount};
use crate::headers::Header;
use crate::poll::{Action, Admission};
use crate::protect::learn::is_lesson;
use crate::table::vid_of;
use crate::vlan::VlanId;

/// Frames looked at in one pass before other work gets its turn.
const PASS_FRAMES: usize = 256;
/// Pulls of one call; a card that always has more does not keep its owner for ever.
const PULLS_MAX: usize = 8;
/// Received frames that wait for the limit of one flow.
pub(super) const LIMITED_FRAMES_MAX: usize = 1024;

impl Lane {
    /// The ring's interrupt came.
    pub fn interrupt<P: FramePort + ?Sized>(
        &mut self,
        mut card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Outlook {
        if let (Some(card), Some(budget)) = (card.as_deref_mut(), self.poller.interrupt()) {
            let mut chain = RxChain::new();
            card.receive(budget, &mut |frame| chain.push(frame));
            self.poller.observe(self.waiting(env));
            self.count_pull(&chain, RxCount::Interrupts, RxCount::InterruptBytes);
            match self.poller.arrived(chain.len()) {
                Admission::Queue => self.backlog.append(&mut chain),
                Admission::Drop => self.drops.add(DropReason::RingBacklog, chain.len() as u64),
            }
        }
        self.run(card, env)
    }

    /// The worker's pass: takes what waits up, and polls while that is called for.
    pub fn run<P: FramePort + ?Sized>(
        &mut self,
        mut card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Outlook {
        self.pass(env);
        self.poller.observe(self.waiting(env));
        if self.poller.pass_ended()
            && let Some(card) = card.as_deref_mut()
        {
            card.disarm();
        }
        let mut is_busy = false;
        if let Some(card) = card.as_deref_mut() {
            is_busy = self.poll(card, env);
        }
        self.pump(card, env);
        self.outlook(is_busy || !self.backlog.is_empty())
    }

    /// True if there is more to poll at once.
    fn poll<P: FramePort + ?Sized>(&mut self, card: &mut P, env: &mut impl Env) -> bool {
        for _ in 0..PULLS_MAX {
            match self.poller.action() {
                Action::Wait | Action::Rest => return false,
                Action::Arm => {
                    let is_waiting = card.arm();
                    self.poller.armed(is_waiting);
                }
                Action::Pull(budget) => {
                    let mut chain = RxChain::new();
                    card.receive(budget, &mut |frame| chain.push(frame));
                    self.count_pull(&chain, RxCount::Polls, RxCount::PollBytes);
                    self.poller.pulled(chain.len());
                    self.backlog.append(&mut chain);
                    self.pass(env);
                    self.poller.observe(self.waiting(env));
                }
            }
        }
        true
    }

    fn count_pull(&mut self, chain: &RxChain, how: RxCount, bytes: RxCount) {
        let frames = chain.len() as u64;
        if frames == 0 {
            return;
        }
        self.ring.add(RxCount::Packets, frames);
        self.ring.add(RxCount::Bytes, chain.bytes());
        self.ring.add(how, frames);
        self.ring.add(bytes, chain.bytes());
        self.ring.chain(chain.len());
    }

    /// Takes frames of the backlog, and those that a limit lets pass by now, up.
    fn pass(&mut self, env: &mut impl Env) {
        self.release(env);
        for _ in 0..PASS_FRAMES {
            let Some(frame) = self.backlog.pop() else {
                break;
            };
            self.sort_received(frame, env);
        }
        self.sorter.deliver(env);
    }

    /// Passes on what waited for a limit.
    fn release(&mut self, env: &mut impl Env) {
        if self.rx.waiting() == 0 {
            return;
        }
        let table = self.table.clone();
        for _ in 0..PASS_FRAMES {
            let Some((_, waiting)) = self.rx.pop(&table.queues, env.now()) else {
                break;
            };
            if let Some(slot) = table.slot_of(waiting.link) {
                self.hand_up(slot, waiting.frame, env);
            }
        }
    }

    /// Finds the clients of a frame from the wire.
    fn sort_received(&mut self, frame: RxFrame, env: &mut impl Env) {
        let Some(header) = Header::of(&frame.chain) else {
            self.drops.count(DropReason::Malformed);
            return;
        };
        let Some(vid) = vid_of(header.tag) else {
            self.drops.count(DropReason::Malformed);
            return;
        };
        let was_tapped = self.show_taps(&header, &frame, None, env);
        if header.dst.is_multicast() {
            self.copy_to_members(&header, frame, None, env);
            return;
        }
        match self.client_of(&header, vid) {
            Some(slot) => self.receive_for(slot, &header, frame, false, env),
            None if was_tapped => {}
            None => self.drops.count(DropReason::NoClient),
        }
    }

    /// Where the group is alone with its address one comparison finds the client; any
    /// other frame that comes by its rings takes the long way.
    fn client_of(&self, header: &Header, vid: Option<VlanId>) -> Option<usize> {
        let alone = self.table.alone_in(self.group);
        let alone = alone.filter(|slot| {
            let client = &self.table.clients[*slot];
            client.mac == header.dst && client.vid == vid
        });
        alone.or_else(|| self.table.find(header.dst, vid))
    }

    /// A frame has reached its client: learn, count, limit, hand up.
    pub(super) fn receive_for(
        &mut self,
        slot: usize,
        header: &Header,
        frame: RxFrame,
        is_local: bool,
        env: &mut impl Env,
    ) {
        let (len, table) = (frame.chain.len(), self.table.clone());
        let client = &table.clients[slot];
        if let Some(account) = self.accounts.get_mut(slot) {
            switch::count_received(&mut account.counters.rx, header, len, is_local);
        }
        if client.learns
            && let Some(packet) = switch::packet_in(&frame.chain)
            && is_lesson(&packet, &frame.chain, false)
        {
            env.learn(client.link, false, &frame.chain);
        }
        let queue = client.queue_of(|| switch::packet_in(&frame.chain), false);
        if self.rx.may_pass(&table.queues, queue, env.now(), len) {
            self.hand_up(slot, frame, env);
        } else if self.rx.waiting_in(queue) >= LIMITED_FRAMES_MAX
            || table.queues[usize::from(queue)].is_shut(false)
        {
            self.drop_for(slot, DropReason::Bandwidth);
        } else if self.rx.push(queue, client.link, frame).is_err() {
            self.drop_for(slot, DropReason::LinkGone);
        }
    }

    /// Gives a frame to the streams that take its protocol, without its tag.
    fn hand_up(&mut self, slot: usize, mut frame: RxFrame, env: &mut impl Env) {
        let table = self.table.clone();
        let Some(header) = Header::of(&frame.chain) else {
            return;
        };
        let client = &table.clients[slot];
        let sighting = switch::sighting(client, &header, false);
        if header.is_tagged && !switch::untag(&mut frame, env.pool()) {
            self.drop_for(slot, DropReason::NoBuffer);
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
            None => self.drop_for(slot, DropReason::Unclaimed),
        }
    }
}
