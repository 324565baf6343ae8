//! Packets that wait for recvmsg(2).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use base::Duration;
use capture::{Frame, Now, status};

use super::drops::DropReason;
use mach::mem::fallible::TryGrow;
use vfs::socket::{Auxiliary, PacketAddress};

/// What a packet counts for besides its bytes, so that empty ones are bounded too.
const OVERHEAD_BYTES: usize = 256;

/// A packet as a program gets it.
#[derive(Clone)]
pub struct Packet {
    /// What the filter kept.
    pub bytes: Vec<u8>,
    /// By which interface it came, and from whom.
    pub from: PacketAddress,
    /// When it came, since 1970.
    pub stamp: Duration,
    /// What PACKET_AUXDATA says of it.
    pub auxiliary: Auxiliary,
}

impl Packet {
    /// A copy of at most `keep` bytes behind the first `skip`; `None` without memory.
    fn copy(frame: &Frame<'_>, skip: usize, keep: usize, now: Now) -> Option<Self> {
        let len = frame.len().saturating_sub(skip);
        let kept = keep.min(len);
        let mut bytes = Vec::new();
        bytes.make_room(kept).ok()?;
        for piece in frame.pieces(skip, kept) {
            bytes.extend_from_slice(piece);
        }
        let tag = frame.tag.unwrap_or_default();
        let tag_status = match frame.tag {
            Some(_) => status::TAG_VALID | status::TAG_TYPE_VALID,
            None => 0,
        };
        let wall = now.wall;
        Some(Self {
            bytes,
            from: PacketAddress {
                interface: frame.interface,
                protocol: frame.protocol,
                hardware_type: frame.hardware_type,
                packet_type: frame.packet_type,
                station_len: frame.sender.len(),
                station: frame.sender.bytes(),
            },
            stamp: Duration::new(wall.seconds.into(), wall.nanoseconds),
            auxiliary: Auxiliary {
                status: status::USER | frame.checksum | tag_status,
                len: u32::try_from(len).unwrap_or(u32::MAX),
                kept: u32::try_from(kept).unwrap_or(u32::MAX),
                network: u16::try_from(frame.network - skip.min(frame.network)).unwrap_or(0),
                tag: tag.control,
                tag_type: tag.ether_type,
            },
        })
    }

    fn cost(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }
}

/// Packets in order, within a number of bytes.
#[derive(Default)]
pub(super) struct Queue {
    packets: VecDeque<Packet>,
    bytes: usize,
}

impl Queue {
    /// Adds a copy, as [`Packet::copy`] makes it, if there is room within `limit` bytes.
    pub(super) fn put(
        &mut self,
        frame: &Frame<'_>,
        (skip, keep): (usize, usize),
        now: Now,
        limit: usize,
    ) -> Result<(), DropReason> {
        if self.bytes >= limit {
            return Err(DropReason::QueueFull);
        }
        let packet = Packet::copy(frame, skip, keep, now).ok_or(DropReason::NoMemory)?;
        let room = self.packets.make_room(1);
        room.map_err(|_| DropReason::NoMemory)?;
        self.bytes += packet.cost();
        self.packets.push_back(packet);
        Ok(())
    }

    /// The oldest packet; it stays if `peek` says so.
    pub(super) fn take(&mut self, peek: bool) -> Option<Packet> {
        if peek {
            return self.packets.front().cloned();
        }
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.cost();
        Some(packet)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// What its packets count for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the oldest packet.
    pub(super) fn first_len(&self) -> usize {
        self.packets.front().map_or(0, |packet| packet.bytes.len())
    }
}
