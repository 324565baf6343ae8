//! Between clients of one port, without the wire; and copies for whoever watches.

use mbuf::{Checksum, ChecksumOffload, Coalesced, Pool, RxFrame, TxFrame};
use wire::MacAddr;

use super::{Env, Works, fixups};
use crate::counters::{DropReason, RxCount, RxCounts};
use crate::headers::{Header, Packet};
use crate::promisc::{FrameClass, Promiscuity};
use crate::table::{Client, Table};
use crate::vlan::{self, TAG_BYTES, VlanId};

/// The packet in a frame.
pub(super) fn packet_in(frame: &mbuf::Chain) -> Option<Packet> {
    Packet::of(&Header::of(frame)?, frame)
}

/// The same frame, sharing its bytes.
pub(super) fn copy(frame: &RxFrame) -> RxFrame {
    RxFrame {
        chain: frame.chain.share(0, usize::MAX),
        ..*frame
    }
}

/// A sent frame as its receiver on this machine gets it: what was left for a card to do
/// is not done, and need not be, for the bytes never left memory.
pub(super) fn as_received(frame: &TxFrame) -> RxFrame {
    RxFrame {
        chain: frame.chain.share(0, usize::MAX),
        checksum: frame.checksum.map_or(Checksum::Unknown, Checksum::Partial),
        coalesced: frame.segment.map(|segment| Coalesced { mss: segment.mss }),
        tag: frame.tag,
    }
}

/// Takes the tag out, and moves what is said of offsets along.
pub(super) fn untag(frame: &mut RxFrame, pool: &dyn Pool) -> bool {
    if let Checksum::Partial(offload) = &mut frame.checksum {
        offload.start = offload.start.saturating_sub(TAG_BYTES as u16);
    }
    vlan::strip(&mut frame.chain, pool)
}

/// Puts the tag into the bytes that a card took out of them.
fn put_back(frame: &mut RxFrame, control: u16, pool: &dyn Pool) -> bool {
    if let Checksum::Partial(offload) = &mut frame.checksum {
        offload.start = offload.start.saturating_add(TAG_BYTES as u16);
    }
    vlan::insert(&mut frame.chain, control, pool)
}

/// Puts the tag that is beside a frame into its bytes, likewise, for a card that cannot.
pub(super) fn tag(frame: &mut TxFrame, pool: &dyn Pool) -> bool {
    let Some(control) = frame.tag.take() else {
        return true;
    };
    frame.checksum = frame.checksum.map(|offload| ChecksumOffload {
        start: offload.start.saturating_add(TAG_BYTES as u16),
        ..offload
    });
    if let Some(segment) = &mut frame.segment {
        segment.header_len = segment.header_len.saturating_add(TAG_BYTES as u16);
    }
    vlan::insert(&mut frame.chain, control, pool)
}

pub(super) fn sighting(client: &Client, header: &Header, is_own: bool) -> FrameClass {
    FrameClass {
        is_own,
        is_multicast: header.dst.is_multicast(),
        is_for_link: !is_own && client.receives(header),
    }
}

pub(super) fn count_received(counts: &mut RxCounts, header: &Header, len: usize, is_local: bool) {
    counts.count(RxCount::Packets);
    counts.add(RxCount::Bytes, len as u64);
    if is_local {
        counts.count(RxCount::Local);
        counts.add(RxCount::LocalBytes, len as u64);
    }
    if header.dst == MacAddr::BROADCAST {
        counts.count(RxCount::Broadcast);
    } else if header.dst.is_multicast() {
        counts.count(RxCount::Multicast);
    }
}

impl Works {
    /// Copies a frame to all clients that take part in its group, but not to `sender`.
    pub(super) fn copy_to_members(
        &mut self,
        table: &Table,
        header: &Header,
        frame: RxFrame,
        sender: Option<usize>,
        env: &mut impl Env,
    ) {
        let members = (0..table.clients.len())
            .filter(|slot| Some(*slot) != sender && table.clients[*slot].receives(header));
        let is_local = sender.is_some();
        let mut previous = None;
        for slot in members {
            if let Some(slot) = previous.replace(slot) {
                self.receive_for(table, slot, header, copy(&frame), is_local, env);
            }
        }
        match previous {
            Some(slot) => self.receive_for(table, slot, header, frame, is_local, env),
            None if is_local => {}
            None => self.drop_orphan(&frame.chain, DropReason::NoClient, env.now()),
        }
    }

    /// Shows a frame of the port to promiscuous streams. True if anybody saw it.
    pub(super) fn show_taps(
        &mut self,
        table: &Table,
        header: &Header,
        frame: &RxFrame,
        sender: Option<usize>,
        env: &mut impl Env,
    ) -> bool {
        if !table.is_watched && !header.dst.is_multicast() {
            return false;
        }
        let mut is_seen = false;
        for &(slot, index) in &table.taps {
            let client = &table.clients[usize::from(slot)];
            let listener = &client.listeners[usize::from(index)];
            let is_own = sender == Some(usize::from(slot));
            let sighting = sighting(client, header, is_own);
            let is_visible = client.is_primary || client.is_in(header.tag);
            if !is_visible || !listener.promiscuity.sees(sighting, client.is_filtered) {
                continue;
            }
            is_seen = true;
            let mut shown = copy(frame);
            if !prepare(&mut shown, client, header, listener.promiscuity, env.pool()) {
                let slot = usize::from(slot);
                self.drop_for(slot, DropReason::NoBuffer, &frame.chain, env.now());
                continue;
            }
            self.sorter.push(listener.id, shown);
        }
        is_seen
    }

    /// Gives a sent frame to the clients on this machine that it is for.
    pub(super) fn switch_local(
        &mut self,
        table: &Table,
        header: &Header,
        frame: RxFrame,
        sender: usize,
        vid: Option<VlanId>,
        env: &mut impl Env,
    ) {
        self.show_taps(table, header, &frame, Some(sender), env);
        if header.dst.is_multicast() {
            self.copy_to_members(table, header, frame, Some(sender), env);
        } else if let Some(slot) = table.find(header.dst, vid) {
            self.receive_for(table, slot, header, frame, true, env);
        }
    }
}

/// A copy as its stream wants it: a VLAN's members see no tag of it, whoever sees all VLANs sees it
/// in the bytes, and sums may be wanted complete.
fn prepare(
    frame: &mut RxFrame,
    client: &Client,
    header: &Header,
    wishes: Promiscuity,
    pool: &dyn Pool,
) -> bool {
    let sums = !wishes.contains(Promiscuity::FIXUPS) || fixups::complete_checksum(frame, pool);
    let beside = frame.tag.take();
    let tag = match (beside, client.is_primary) {
        (Some(control), true) => put_back(frame, control, pool),
        (None, false) if header.is_tagged => untag(frame, pool),
        _ => true,
    };
    sums && tag
}
