//! The kernel's half of a ring of version 2: a slot of fixed size for each packet.
//!
//! Programs that want each packet at once ask for it (libpcap's immediate mode). A slot changes
//! hands by the first word of its header, the last thing written; the rest is as in the rings of
//! blocks: the kernel writes only to the slot that is next and reads only status words.

use crate::frame::Frame;
use crate::geometry::{Refusal, RingRequest, View, check_blocks};
use crate::layout::{SLOT_HEADER_BYTES, SlotPlace, slot_header, status};
use crate::memory::RingMemory;
use crate::ring::{DropReason, LINK_HEADER_MIN, PACKET_ALIGN, Statistics, Timestamp};

/// A ring of slots that is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotGeometry {
    block_bytes: usize,
    blocks: u32,
    slot_bytes: usize,
    slots: u32,
    reserve_bytes: usize,
    view: View,
}

impl SlotGeometry {
    /// Checks a request as Linux does; all blocks together have at most `bytes_max`.
    pub fn check(request: &RingRequest, view: View, bytes_max: u64) -> Result<Self, Refusal> {
        let header_bytes = SLOT_HEADER_BYTES as u64 + u64::from(request.reserve_bytes);
        check_blocks(request, header_bytes, bytes_max)?;
        Ok(Self {
            block_bytes: request.block_bytes as usize,
            blocks: request.blocks,
            slot_bytes: request.frame_bytes as usize,
            slots: request.frames,
            reserve_bytes: request.reserve_bytes as usize,
            view,
        })
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.block_bytes * self.blocks as usize
    }

    fn offset(&self, slot: u32) -> usize {
        let in_block = self.block_bytes / self.slot_bytes;
        let slot = slot as usize;
        slot / in_block * self.block_bytes + slot % in_block * self.slot_bytes
    }
}

/// A ring of slots.
#[derive(Debug)]
pub struct SlotRing {
    geometry: SlotGeometry,
    /// The slot of the next packet.
    next: u32,
    statistics: Statistics,
}

impl SlotRing {
    /// A ring over memory that is all zero.
    pub fn new(geometry: SlotGeometry) -> Self {
        Self {
            geometry,
            next: 0,
            statistics: Statistics::default(),
        }
    }

    /// Puts at most `keep` bytes of the packet into the next slot and hands it over; a packet
    /// that is larger than a slot is cut to it. Returns the bytes that went in.
    pub fn receive(
        &mut self,
        memory: &mut impl RingMemory,
        frame: &Frame,
        keep: usize,
        time: Timestamp,
    ) -> Result<usize, DropReason> {
        self.statistics.packets = self.statistics.packets.saturating_add(1);
        let stored = self.store(memory, frame, keep, time);
        if stored.is_err() {
            self.statistics.drops = self.statistics.drops.saturating_add(1);
        }
        stored
    }

    fn store(
        &mut self,
        memory: &mut impl RingMemory,
        frame: &Frame,
        keep: usize,
        time: Timestamp,
    ) -> Result<usize, DropReason> {
        let at = self.geometry.offset(self.next);
        if memory.status(at) != status::KERNEL {
            return Err(DropReason::NoFreeSlot);
        }
        let (skip, place) = self.place(frame, keep)?;
        memory.write(at + size_of::<u32>(), &slot_header(frame, &place, time));
        let mut to = at + usize::from(place.packet);
        for piece in frame.pieces(skip, place.kept as usize) {
            memory.write(to, piece);
            to += piece.len();
        }
        let losing = match self.statistics.drops {
            0 => 0,
            _ => status::LOSING,
        };
        let tag = match frame.tag {
            Some(_) => status::TAG_VALID | status::TAG_TYPE_VALID,
            None => 0,
        };
        memory.publish(at, status::USER | losing | tag | frame.checksum);
        self.next = (self.next + 1) % self.geometry.slots;
        Ok(place.kept as usize)
    }

    /// How many bytes of the frame are skipped, and where the rest goes in its slot.
    fn place(&self, frame: &Frame, keep: usize) -> Result<(usize, SlotPlace), DropReason> {
        let link_bytes = frame.network.min(frame.len());
        let (skip, in_front) = match self.geometry.view {
            View::Link => (0, link_bytes),
            View::Network => (link_bytes, 0),
        };
        let headers = SLOT_HEADER_BYTES + in_front.max(LINK_HEADER_MIN);
        let network = headers.next_multiple_of(PACKET_ALIGN) + self.geometry.reserve_bytes;
        let network_field = u16::try_from(network).map_err(|_| DropReason::HeadersTooLong)?;
        let packet = network - in_front;
        let room = self.geometry.slot_bytes.checked_sub(packet);
        let room = room.ok_or(DropReason::HeadersTooLong)?;
        let len = frame.len() - skip;
        let place = SlotPlace {
            packet: packet as u16,
            network: network_field,
            kept: len.min(keep).min(room) as u32,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        };
        Ok((skip, place))
    }

    /// Whether the slot before the next one is the program's to read.
    pub fn is_readable(&self, memory: &impl RingMemory) -> bool {
        let before = self.next.checked_sub(1).unwrap_or(self.geometry.slots - 1);
        memory.status(self.geometry.offset(before)) != status::KERNEL
    }

    /// What happened since the last call.
    pub fn take_statistics(&mut self) -> Statistics {
        core::mem::take(&mut self.statistics)
    }
}
