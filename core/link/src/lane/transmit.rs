//! From a client downwards: to a neighbour on the same port, or to the card.
//!
//! A card without room lets frames wait here. Above [`HIGH`] the caller is told to wait
//! ([`Blocked`]) and hears of it once when it may go on ([`Env::resume`]); who ignores
//! that meets the cap of [`CAP`] frames, above which frames are dropped.

use hal::FramePort;
use mbuf::TxFrame;
use wire::MacAddr;

use super::{Env, Works, switch};
use crate::chain::TxChain;
use crate::counters::{DropReason, TxCount};
use crate::headers::{Header, Packet};
use crate::protect::learn::is_snooped;
use crate::shaper::Waiting;
use crate::table::{Client, LinkId, Table, vid_of};
use crate::vlan::{Tag, VlanId};

/// Frames of one queue that wait before its clients are told to.
pub const HIGH: usize = 1000;
/// Frames of one queue at most.
pub const CAP: usize = 100_000;
/// Frames sent in one call of [`Lane::run`].
const PUMP_FRAMES: usize = 256;

bitflags::bitflags! {
    /// What a caller wishes when the card has no room.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct TxFlags: u8 {
        /// Drop what does not fit.
        const DROP = 1 << 0;
        /// Leave what does not fit with the caller. Without effect beside `DROP`.
        const NO_QUEUE = 1 << 1;
    }
}

/// The caller is to wait until [`Env::resume`] names its link. What it passed was taken,
/// unless it asked for [`TxFlags::NO_QUEUE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocked;

/// Where one frame went.
enum Sent {
    Gone,
    /// The card has no room.
    Full(TxFrame),
}

impl Works {
    pub(super) fn transmit<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        link: LinkId,
        frames: &mut TxChain,
        flags: TxFlags,
        mut card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Result<(), Blocked> {
        let Some(slot) = table.slot_of(link) else {
            self.drop_orphans(frames, DropReason::LinkGone, env.now());
            frames.clear();
            return Ok(());
        };
        let mut outcome = Ok(());
        let mut is_direct = table.is_direct(slot) && self.is_clear();
        while let Some(mut frame) = frames.pop() {
            if is_direct && let Some(card) = card.as_deref_mut() {
                match self.send_directly(table, slot, frame, card) {
                    Sent::Gone => continue,
                    Sent::Full(back) => frame = back,
                }
            }
            // It may wait here, and then the next ones wait behind it.
            is_direct = false;
            if let Err(reason) = self.admit(&table.clients[slot], &mut frame, env) {
                self.drop_for(slot, reason, &frame.chain, env.now());
                continue;
            }
            match self.send_or_queue(table, slot, frame, flags, card.as_deref_mut(), env) {
                Ok(()) => {}
                Err(Refused::Blocked) => outcome = Err(Blocked),
                Err(Refused::Returned(frame)) => {
                    frames.unpop(frame);
                    outcome = Err(Blocked);
                    break;
                }
            }
        }
        if let Some(card) = card {
            card.kick();
        }
        self.sorter.deliver(env);
        if outcome.is_err() && !self.blocked.contains(&link) {
            self.blocked.push(link);
            self.accounts[slot].counters.tx.count(TxCount::Blocked);
        }
        outcome
    }

    /// Sends a frame that needs no look; others, and those that the card has no room for, come back.
    #[inline]
    fn send_directly<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        slot: usize,
        frame: TxFrame,
        card: &mut P,
    ) -> Sent {
        if !table.leaves(&table.clients[slot], &frame) {
            return Sent::Full(frame);
        }
        let bytes = frame.chain.len() as u64;
        match card.transmit(frame) {
            Ok(()) => {
                let counts = &mut self.accounts[slot].counters.tx;
                counts.count(TxCount::Packets);
                counts.add(TxCount::Bytes, bytes);
                Sent::Gone
            }
            Err(back) => Sent::Full(back),
        }
    }

    /// Whether a frame may be sent at all; it then has its VLAN's tag, in its bytes or beside.
    fn admit(
        &mut self,
        client: &Client,
        frame: &mut TxFrame,
        env: &mut impl Env,
    ) -> Result<(), DropReason> {
        let header = Header::beside(&frame.chain, frame.tag).ok_or(DropReason::Malformed)?;
        let payload = frame.chain.len().saturating_sub(header.packet_at());
        if frame.segment.is_none() && payload > usize::from(client.mtu) {
            return Err(DropReason::TooLong);
        }
        if let Some(guard) = &client.guard {
            let packet = Packet::of(&header, &frame.chain);
            guard.check(&header, packet.as_ref(), &frame.chain)?;
            if client.learns
                && let Some(packet) = packet
                && is_snooped(&packet, &frame.chain, true)
            {
                env.learn(client.link, true, &frame.chain);
            }
        }
        if needs_tag(client, &header)? {
            frame.tag = client.vid.map(VlanId::get);
        }
        Ok(())
    }

    fn send_or_queue<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        slot: usize,
        frame: TxFrame,
        flags: TxFlags,
        card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Result<(), Refused> {
        let client = &table.clients[slot];
        let queue = client.queue_of(|| switch::packet_in(&frame.chain), true);
        let len = frame.chain.len();
        if table.queues[usize::from(queue)].is_shut(true) {
            self.flows.count(queue, |flow| flow.tx_dropped += 1);
            self.drop_for(slot, DropReason::TxBandwidth, &frame.chain, env.now());
            return Ok(());
        }
        let mut frame = frame;
        if self.tx.may_pass(&table.queues, queue, env.now(), len) {
            match self.forward(table, slot, frame, card, env) {
                Sent::Gone => {
                    self.flows.count(queue, |flow| flow.sent(len));
                    return Ok(());
                }
                Sent::Full(back) => frame = back,
            }
            table.queues[usize::from(queue)].give_back(true, len);
        }
        if flags.contains(TxFlags::DROP) || self.tx.waiting_in(queue) >= CAP {
            self.flows.count(queue, |flow| flow.tx_dropped += 1);
            self.drop_for(slot, DropReason::TxBacklog, &frame.chain, env.now());
            return Ok(());
        }
        if flags.contains(TxFlags::NO_QUEUE) {
            return Err(Refused::Returned(frame));
        }
        if let Err(frame) = self.tx.push(queue, client.link, frame) {
            self.drop_for(slot, DropReason::LinkGone, &frame.chain, env.now());
        }
        match self.tx.waiting_in(queue) > HIGH {
            true => Err(Refused::Blocked),
            false => Ok(()),
        }
    }

    /// Sends what waits, as far as limits and the card allow.
    pub(super) fn pump<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        mut card: Option<&mut P>,
        env: &mut impl Env,
    ) {
        if self.tx.waiting() == 0 && !self.is_card_full {
            return;
        }
        if let Some(card) = card.as_deref_mut() {
            card.reclaim();
        }
        self.is_card_full = false;
        for _ in 0..PUMP_FRAMES {
            if !self.pump_one(table, card.as_deref_mut(), env) {
                break;
            }
        }
        if let Some(card) = card {
            card.kick();
        }
        self.sorter.deliver(env);
        if !self.is_card_full {
            self.unblock(table, env);
        }
    }

    /// False if nothing more can go now.
    fn pump_one<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        card: Option<&mut P>,
        env: &mut impl Env,
    ) -> bool {
        let Some((queue, waiting)) = self.tx.pop(&table.queues, env.now()) else {
            return false;
        };
        let Waiting {
            number,
            link,
            frame,
        } = waiting;
        let Some(slot) = table.slot_of(link) else {
            self.drop_orphan(&frame.chain, DropReason::LinkGone, env.now());
            return true;
        };
        let len = frame.chain.len();
        match self.forward(table, slot, frame, card, env) {
            Sent::Gone => {
                self.flows.count(queue, |flow| flow.sent(len));
                true
            }
            Sent::Full(frame) => {
                let waiting = Waiting {
                    number,
                    link,
                    frame,
                };
                self.tx.unpop(&table.queues, queue, waiting);
                false
            }
        }
    }

    /// Tells links to go on of whose frames few wait now.
    fn unblock(&mut self, table: &Table, env: &mut impl Env) {
        for link in core::mem::take(&mut self.blocked) {
            let Some(slot) = table.slot_of(link) else {
                continue;
            };
            let client = &table.clients[slot];
            let flows = client.flows.iter().map(|flow| flow.queue);
            let mut queues = flows.chain([client.queue]);
            if queues.any(|queue| self.tx.waiting_in(queue) > HIGH / 2) {
                self.blocked.push(link);
                continue;
            }
            self.accounts[slot].counters.tx.count(TxCount::Unblocked);
            env.resume(link);
        }
    }

    /// To whom the frame is for. The card is asked first: what it refuses has gone nowhere.
    fn forward<P: FramePort + ?Sized>(
        &mut self,
        table: &Table,
        slot: usize,
        mut frame: TxFrame,
        card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Sent {
        let Some(header) = Header::beside(&frame.chain, frame.tag) else {
            return Sent::Gone;
        };
        let vid = vid_of(header.tag).flatten();
        let len = frame.chain.len();
        let is_group = header.dst.is_multicast();
        let neighbour = table.find(header.dst, vid);
        let has_local = is_group || neighbour.is_some() || table.is_watched;
        let local = has_local.then(|| switch::as_received(&frame));
        if is_group || neighbour.is_none() {
            match (card, table.has_wire) {
                (Some(card), true) => {
                    let by_hand = frame.tag.is_some() && !card.capabilities().tags;
                    if by_hand && !switch::tag(&mut frame, env.pool()) {
                        self.drop_for(slot, DropReason::NoBuffer, &frame.chain, env.now());
                        return Sent::Gone;
                    }
                    if let Err(back) = card.transmit(frame) {
                        self.is_card_full = true;
                        return Sent::Full(back);
                    }
                    self.is_card_full = false;
                }
                _ if is_group => {}
                _ => self.drop_for(slot, DropReason::NoWire, &frame.chain, env.now()),
            }
        }
        self.count_sent(slot, &header, len);
        match (local, neighbour) {
            (Some(local), Some(own)) if own == slot => {
                self.drop_for(slot, DropReason::NoClient, &local.chain, env.now());
            }
            (Some(local), _) => self.switch_local(table, &header, local, slot, vid, env),
            (None, _) => {}
        }
        Sent::Gone
    }

    fn count_sent(&mut self, slot: usize, header: &Header, len: usize) {
        let counts = &mut self.accounts[slot].counters.tx;
        counts.count(TxCount::Packets);
        counts.add(TxCount::Bytes, len as u64);
        if header.dst == MacAddr::BROADCAST {
            counts.count(TxCount::Broadcast);
        } else if header.dst.is_multicast() {
            counts.count(TxCount::Multicast);
        }
    }
}

enum Refused {
    Blocked,
    Returned(TxFrame),
}

/// Whether the client's tag must be put in. Nobody sends into another client's VLAN.
fn needs_tag(client: &Client, header: &Header) -> Result<bool, DropReason> {
    let own: Option<VlanId> = client.vid;
    match (header.tag, own) {
        (Tag::Reserved, _) => Err(DropReason::Malformed),
        (Tag::Untagged, Some(_)) if header.is_tagged => Err(DropReason::ForeignVlan),
        (Tag::Untagged, own) => Ok(own.is_some()),
        (Tag::Vlan(vid), Some(own)) if vid != own => Err(DropReason::ForeignVlan),
        (Tag::Vlan(_), _) => Ok(false),
    }
}
