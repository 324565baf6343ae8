//! What a program asks for (`struct tpacket_req3`), checked.

use base::Duration;

use crate::layout::{DESCRIPTOR_BYTES, FRAME_ALIGN, HEADER_BYTES};

/// Frames of the older versions lie at multiples of this; their sizes are still checked.
const SLOT_ALIGN: u32 = 16;
const PAGE_BYTES: u32 = 4096;
/// How long a block waits if the program does not say (`DEFAULT_PRB_RETIRE_TOV`).
const RETIRE_DEFAULT_MS: u32 = 8;

/// What the program sees of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Link header and all (`SOCK_RAW`).
    Link,
    /// From the network header on (`SOCK_DGRAM`).
    Network,
}

/// The request as it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingRequest {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// How many.
    pub blocks: u32,
    /// Bytes of a slot: without meaning since blocks hold frames of any size, but checked.
    pub frame_bytes: u32,
    /// Slots in all blocks.
    pub frames: u32,
    /// Milliseconds that a block may wait to be full; zero for the default.
    pub retire_ms: u32,
    /// Bytes in each block that the program keeps for itself.
    pub private_bytes: u32,
    /// Bytes that the program wants free in front of each packet (`PACKET_RESERVE`).
    pub reserve_bytes: u32,
}

/// Why there is no such ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No blocks, or not whole pages.
    BlockBytes(u32),
    /// The private area and one header do not fit in a block.
    PrivateBytes(u32),
    /// Too small for a header, larger than a block, or not a multiple of 16.
    FrameBytes(u32),
    /// Not as many as the blocks hold.
    Frames {
        /// What they hold.
        fit: u64,
    },
    /// More than the caller allows.
    TooLarge {
        /// Bytes of all blocks.
        bytes: u64,
    },
}

/// A ring that is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    pub(crate) block_bytes: usize,
    pub(crate) blocks: u32,
    /// Where the first frame lies in a block.
    pub(crate) first_offset: usize,
    pub(crate) reserve_bytes: usize,
    pub(crate) retire_after: Duration,
    pub(crate) view: View,
}

impl Geometry {
    /// Checks a request as Linux does; all blocks together have at most `bytes_max`.
    pub fn check(request: &RingRequest, view: View, bytes_max: u64) -> Result<Self, Refusal> {
        let RingRequest {
            block_bytes,
            blocks,
            private_bytes,
            ..
        } = *request;
        let header_bytes = HEADER_BYTES as u64 + u64::from(request.reserve_bytes);
        let first_offset =
            DESCRIPTOR_BYTES as u64 + u64::from(private_bytes).next_multiple_of(FRAME_ALIGN as u64);
        let is_whole = block_bytes != 0 && block_bytes % PAGE_BYTES == 0 && blocks != 0;
        if is_whole && first_offset + header_bytes > block_bytes.into() {
            return Err(Refusal::PrivateBytes(private_bytes));
        }
        check_blocks(request, header_bytes, bytes_max)?;
        let retire_ms = match request.retire_ms {
            0 => RETIRE_DEFAULT_MS,
            wanted => wanted,
        };
        Ok(Self {
            block_bytes: block_bytes as usize,
            blocks,
            first_offset: first_offset as usize,
            reserve_bytes: request.reserve_bytes as usize,
            retire_after: Duration::from_millis(retire_ms.into()),
            view,
        })
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.block_bytes * self.blocks as usize
    }
}

/// What rings of all versions must be: whole pages, cut evenly into frames that have room for
/// headers.
pub(crate) fn check_blocks(
    request: &RingRequest,
    header_bytes: u64,
    bytes_max: u64,
) -> Result<(), Refusal> {
    let RingRequest {
        block_bytes,
        blocks,
        frame_bytes,
        ..
    } = *request;
    if block_bytes == 0 || block_bytes % PAGE_BYTES != 0 || blocks == 0 {
        return Err(Refusal::BlockBytes(block_bytes));
    }
    let is_slot = u64::from(frame_bytes) >= header_bytes && frame_bytes % SLOT_ALIGN == 0;
    if !is_slot || frame_bytes > block_bytes {
        return Err(Refusal::FrameBytes(frame_bytes));
    }
    let fit = u64::from(block_bytes / frame_bytes) * u64::from(blocks);
    if u64::from(request.frames) != fit {
        return Err(Refusal::Frames { fit });
    }
    let bytes = u64::from(block_bytes) * u64::from(blocks);
    match bytes > bytes_max {
        true => Err(Refusal::TooLarge { bytes }),
        false => Ok(()),
    }
}
