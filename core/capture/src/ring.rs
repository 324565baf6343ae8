//! The kernel's half of a ring.

use base::Instant;

use crate::frame::Frame;
use crate::geometry::{Geometry, View};
use crate::layout::{
    Descriptor, FRAME_ALIGN, HEADER_BYTES, Place, STATUS_OFFSET, frame_header, status,
};
use crate::memory::RingMemory;

/// The gap behind a frame's header is a multiple of this.
pub(crate) const PACKET_ALIGN: usize = 16;
/// The least room for a link header, so that network headers line up.
pub(crate) const LINK_HEADER_MIN: usize = 16;

probes::counters! {
    /// Why a packet is not in the ring.
    pub enum DropReason => Drops {
        /// The program has not given back the block that is next.
        NoFreeBlock = "no_free_block",
        /// The program has not given back the slot that is next.
        NoFreeSlot = "no_free_slot",
        /// The link header and the reserve are longer than an offset can say.
        HeadersTooLong = "headers_too_long",
    }
}

/// A time of day, as the ring shows it; seconds since 1970, until 2106.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timestamp {
    /// Whole seconds.
    pub seconds: u32,
    /// The rest.
    pub nanoseconds: u32,
}

/// The time twice: for the timer, and to be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// The machine's clock.
    pub clock: Instant,
    /// The time of day.
    pub wall: Timestamp,
}

/// A packet went into the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Bytes of it that did.
    pub kept: usize,
    /// Whether a block was handed over on the way: wake who waits for one.
    pub is_block_ready: bool,
}

/// What happened since the program last asked (`struct tpacket_stats_v3`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Packets that came, dropped ones too.
    pub packets: u32,
    /// Those that were dropped.
    pub drops: u32,
    /// How often the ring froze.
    pub freezes: u32,
}

/// The block that is being filled.
#[derive(Clone, Copy, Debug)]
struct Filling {
    sequence: u64,
    opened: Timestamp,
    /// Where the next frame goes, from the block's start.
    next: usize,
    frames: u32,
    /// Where the last frame lies, and when it came.
    last: Option<(usize, Timestamp)>,
}

/// A ring of blocks.
#[derive(Debug)]
pub struct Ring {
    geometry: Geometry,
    /// The block that is being filled, or would be if the program had given it back.
    block: u32,
    /// `None` while the ring is frozen.
    filling: Option<Filling>,
    /// The next block's number, counted for ever.
    sequence: u64,
    deadline: Instant,
    statistics: Statistics,
    drops: Drops,
}

impl Ring {
    /// A ring over memory that is all zero; the first block is open.
    pub fn new(geometry: Geometry, now: Now) -> Self {
        let mut ring = Self {
            geometry,
            block: 0,
            filling: None,
            sequence: 1,
            deadline: Instant::NEVER,
            statistics: Statistics::default(),
            drops: Drops::default(),
        };
        ring.open(now);
        ring
    }

    /// Puts at most `keep` bytes of the packet into the ring. A packet that is larger than
    /// a block is cut to it.
    pub fn receive(
        &mut self,
        memory: &mut impl RingMemory,
        frame: &Frame,
        keep: usize,
        now: Now,
    ) -> Result<Captured, DropReason> {
        self.statistics.packets = self.statistics.packets.saturating_add(1);
        let result = self.store(memory, frame, keep, now);
        if let Err(reason) = result {
            self.statistics.drops = self.statistics.drops.saturating_add(1);
            self.drops.count(reason);
        }
        result
    }

    /// To be called at [`deadline`](Self::deadline): hands over a block that has waited long
    /// enough, and says whether it did; looks after a frozen ring.
    pub fn expire(&mut self, memory: &mut impl RingMemory, now: Now) -> bool {
        if now.clock < self.deadline {
            return false;
        }
        self.deadline = now.clock + self.geometry.retire_after;
        match self.filling {
            None => {
                self.thaw(memory, now);
                false
            }
            Some(filling) if filling.frames == 0 => false,
            Some(filling) => {
                self.hand_over(memory, filling, status::TIMER);
                self.advance(memory, now);
                true
            }
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether packets wait for their block to be handed over.
    pub fn is_waiting(&self) -> bool {
        self.filling.is_some_and(|filling| filling.frames != 0)
    }

    /// Whether the block before the current one is the program's to read.
    pub fn is_readable(&self, memory: &impl RingMemory) -> bool {
        let before = self
            .block
            .checked_sub(1)
            .unwrap_or(self.geometry.blocks - 1);
        memory.status(self.status_offset(before)) & status::USER != 0
    }

    /// What happened since the last call.
    pub fn take_statistics(&mut self) -> Statistics {
        core::mem::take(&mut self.statistics)
    }

    /// Why packets were dropped, since the ring was made.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    fn store(
        &mut self,
        memory: &mut impl RingMemory,
        frame: &Frame,
        keep: usize,
        now: Now,
    ) -> Result<Captured, DropReason> {
        let (skip, place) = self.place(frame, keep)?;
        let (mut filling, is_block_ready) = self.room(memory, place.step as usize, now)?;
        let at = self.block_offset(self.block) + filling.next;
        memory.write(at, &frame_header(frame, &place, now.wall));
        let mut to = at + usize::from(place.packet);
        for piece in frame.pieces(skip, place.kept as usize) {
            memory.write(to, piece);
            to += piece.len();
        }
        filling.last = Some((filling.next, now.wall));
        filling.next += place.step as usize;
        filling.frames += 1;
        self.filling = Some(filling);
        Ok(Captured {
            kept: place.kept as usize,
            is_block_ready,
        })
    }

    /// How many bytes of the frame are skipped, and where the rest goes in its own place.
    fn place(&self, frame: &Frame, keep: usize) -> Result<(usize, Place), DropReason> {
        let link_bytes = frame.network.min(frame.len());
        let (skip, in_front) = match self.geometry.view {
            View::Link => (0, link_bytes),
            View::Network => (link_bytes, 0),
        };
        let headers = HEADER_BYTES + in_front.max(LINK_HEADER_MIN);
        let network = headers.next_multiple_of(PACKET_ALIGN) + self.geometry.reserve_bytes;
        let network_field = u16::try_from(network).map_err(|_| DropReason::HeadersTooLong)?;
        let packet = network - in_front;
        let room = self.geometry.block_bytes - self.geometry.first_offset;
        let room = room.checked_sub(packet).ok_or(DropReason::HeadersTooLong)?;
        let len = frame.len() - skip;
        let kept = len.min(keep).min(room);
        let place = Place {
            step: (packet + kept).next_multiple_of(FRAME_ALIGN) as u32,
            packet: packet as u16,
            network: network_field,
            kept: kept as u32,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        };
        Ok((skip, place))
    }

    /// The block that has room for `step` bytes, and whether another was handed over for it.
    fn room(
        &mut self,
        memory: &mut impl RingMemory,
        step: usize,
        now: Now,
    ) -> Result<(Filling, bool), DropReason> {
        if self.filling.is_none() {
            self.thaw(memory, now);
        }
        let filling = self.filling.ok_or(DropReason::NoFreeBlock)?;
        if filling.next + step <= self.geometry.block_bytes {
            return Ok((filling, false));
        }
        self.hand_over(memory, filling, 0);
        self.advance(memory, now);
        // An empty block has room for any place.
        let filling = self.filling.ok_or(DropReason::NoFreeBlock)?;
        Ok((filling, true))
    }

    fn hand_over(&mut self, memory: &mut impl RingMemory, filling: Filling, why: u32) {
        let start = self.block_offset(self.block);
        let mut last = filling.opened;
        if let Some((offset, time)) = filling.last {
            // The last frame leads nowhere.
            memory.write(start + offset, &0_u32.to_le_bytes());
            last = time;
        }
        let descriptor = Descriptor {
            frames: filling.frames,
            first_offset: self.geometry.first_offset as u32,
            used: filling.next as u32,
            sequence: filling.sequence,
            opened: filling.opened,
            last,
        };
        let (head, tail) = descriptor.emit();
        memory.write(start, &head);
        memory.write(start + STATUS_OFFSET + size_of::<u32>(), &tail);
        let losing = match self.statistics.drops {
            0 => 0,
            _ => status::LOSING,
        };
        let at = self.status_offset(self.block);
        memory.publish(at, status::USER | losing | why);
        self.filling = None;
    }

    /// To the next block, which may be the program's.
    fn advance(&mut self, memory: &impl RingMemory, now: Now) {
        self.block = (self.block + 1) % self.geometry.blocks;
        self.thaw(memory, now);
        if self.filling.is_none() {
            self.statistics.freezes = self.statistics.freezes.saturating_add(1);
        }
    }

    /// Opens the current block if the program has given it back.
    fn thaw(&mut self, memory: &impl RingMemory, now: Now) {
        if memory.status(self.status_offset(self.block)) == status::KERNEL {
            self.open(now);
        }
    }

    fn open(&mut self, now: Now) {
        self.filling = Some(Filling {
            sequence: self.sequence,
            opened: now.wall,
            next: self.geometry.first_offset,
            frames: 0,
            last: None,
        });
        self.sequence += 1;
        self.deadline = now.clock + self.geometry.retire_after;
    }

    fn block_offset(&self, block: u32) -> usize {
        block as usize * self.geometry.block_bytes
    }

    fn status_offset(&self, block: u32) -> usize {
        self.block_offset(block) + STATUS_OFFSET
    }
}
