//! The memory that frames lie in: checked once, then only arithmetic.

use core::ops::RangeInclusive;

use base::PAGE_BYTES;

use crate::descriptor::Descriptor;

/// Bytes of a chunk.
const CHUNK_BYTES: RangeInclusive<u32> = 2048..=PAGE_BYTES as u32;
/// What lies free in front of a received frame before what the program asks for
/// (XDP_PACKET_HEADROOM).
pub const FRAME_HEADROOM: u32 = 256;
/// Bytes of the shortest frame that can be sent: an Ethernet header.
const FRAME_BYTES_MIN: u32 = 14;

/// What a program asks for (`struct xdp_umem_reg`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UmemRequest {
    /// Where it has the memory.
    pub address: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
    /// Bytes in front of a received frame that are the program's.
    pub headroom: u32,
    /// XDP_UMEM_UNALIGNED_CHUNK_FLAG and others: none that we have.
    pub flags: u32,
}

/// Why there can be no such memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A flag that means nothing here.
    Flags(u32),
    /// Chunks are 2048 or 4096 bytes.
    ChunkBytes(u32),
    /// It does not begin at a page.
    Address(u64),
    /// It has no chunk, or a part of one, or more than an address can say.
    Bytes(u64),
    /// A chunk has no room for a frame behind so much.
    Headroom(u32),
}

/// The memory's shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Umem {
    bytes: u64,
    chunk_bytes: u32,
    headroom: u32,
}

impl Umem {
    /// Checks a request.
    pub fn check(request: &UmemRequest) -> Result<Self, Refusal> {
        let UmemRequest {
            address,
            bytes,
            chunk_bytes,
            headroom,
            flags,
        } = *request;
        if flags != 0 {
            return Err(Refusal::Flags(flags));
        }
        if !CHUNK_BYTES.contains(&chunk_bytes) || !chunk_bytes.is_power_of_two() {
            return Err(Refusal::ChunkBytes(chunk_bytes));
        }
        if address % PAGE_BYTES as u64 != 0 {
            return Err(Refusal::Address(address));
        }
        let is_whole = bytes != 0 && bytes % u64::from(chunk_bytes) == 0;
        if !is_whole || address.checked_add(bytes).is_none() || bytes > u32::MAX.into() {
            return Err(Refusal::Bytes(bytes));
        }
        if headroom >= chunk_bytes - FRAME_HEADROOM {
            return Err(Refusal::Headroom(headroom));
        }
        Ok(Self {
            bytes,
            chunk_bytes,
            headroom,
        })
    }

    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the longest frame that can be received.
    pub fn frame_bytes_max(&self) -> usize {
        (self.chunk_bytes - self.headroom - FRAME_HEADROOM) as usize
    }

    /// Where a received frame goes in the chunk that holds `address`; `None` if there is none.
    pub(crate) fn frame_at(&self, address: u64) -> Option<u64> {
        let chunk = address & !u64::from(self.chunk_bytes - 1);
        let at = chunk + u64::from(FRAME_HEADROOM + self.headroom);
        (address < self.bytes).then_some(at)
    }

    /// Whether a frame that the program gives is one: within one chunk, with a header.
    pub(crate) fn holds(&self, frame: Descriptor) -> bool {
        let offset = frame.address & u64::from(self.chunk_bytes - 1);
        frame.options == 0
            && frame.address < self.bytes
            && frame.len >= FRAME_BYTES_MIN
            && offset + u64::from(frame.len) <= self.chunk_bytes.into()
    }
}
