//! The bytes that a program finds in a block (`struct tpacket_block_desc`, `tpacket3_hdr`)
//! or in a slot (`tpacket2_hdr`).
//!
//! ```text
//! block:  descriptor, private area, then frames at multiples of eight
//! frame:  header, sockaddr_ll, gap, packet
//! slot:   status, header, sockaddr_ll, gap, packet
//! ```

use crate::bytes::Fields;
use crate::frame::Frame;
use crate::ring::Timestamp;

/// Words of status, of blocks and of frames.
pub mod status {
    /// The block is the kernel's.
    pub const KERNEL: u32 = 0;
    /// The block is the program's.
    pub const USER: u32 = 1;
    /// Packets were dropped since the program last asked.
    pub const LOSING: u32 = 1 << 2;
    /// The transport checksum is still to be computed.
    pub const CHECKSUM_NOT_READY: u32 = 1 << 3;
    /// The frame's tag is valid.
    pub const TAG_VALID: u32 = 1 << 4;
    /// The block was handed over by the timer.
    pub const TIMER: u32 = 1 << 5;
    /// The tag's EtherType is valid.
    pub const TAG_TYPE_VALID: u32 = 1 << 6;
    /// The transport checksum was verified.
    pub const CHECKSUM_VALID: u32 = 1 << 7;
}

/// `TPACKET_V3` as a number.
const VERSION: u32 = 2;

/// Bytes in front of the private area.
pub(crate) const DESCRIPTOR_BYTES: usize = 48;
/// Where in the descriptor the status lies.
pub(crate) const STATUS_OFFSET: usize = 8;
/// Frames lie at multiples of this.
pub(crate) const FRAME_ALIGN: usize = 8;
/// Bytes of a frame's header and of the address behind it.
pub(crate) const HEADER_BYTES: usize = 48 + ADDRESS_BYTES;
/// Bytes of `struct sockaddr_ll`.
const ADDRESS_BYTES: usize = 20;

const AF_PACKET: u16 = 17;

/// What a descriptor says but for the status.
pub(crate) struct Descriptor {
    pub frames: u32,
    pub first_offset: u32,
    /// Bytes in use from the block's start.
    pub used: u32,
    pub sequence: u64,
    pub opened: Timestamp,
    pub last: Timestamp,
}

impl Descriptor {
    /// The bytes before the status, and those behind it.
    pub(crate) fn emit(&self) -> ([u8; STATUS_OFFSET], [u8; 36]) {
        let mut head = [0; STATUS_OFFSET];
        Fields::new(&mut head)
            .u32(VERSION)
            .u32(DESCRIPTOR_BYTES as u32);
        let mut tail = [0; 36];
        Fields::new(&mut tail)
            .u32(self.frames)
            .u32(self.first_offset)
            .u32(self.used)
            .u64(self.sequence)
            .u32(self.opened.seconds)
            .u32(self.opened.nanoseconds)
            .u32(self.last.seconds)
            .u32(self.last.nanoseconds);
        (head, tail)
    }
}

/// Where in a block's frame what lies.
pub(crate) struct Place {
    /// To the next frame.
    pub step: u32,
    /// Where the packet starts.
    pub packet: u16,
    /// Where its network header starts.
    pub network: u16,
    /// Bytes of the packet that are there.
    pub kept: u32,
    /// Bytes that it had.
    pub len: u32,
}

/// A frame's header with the address behind it.
pub(crate) fn frame_header(frame: &Frame, place: &Place, time: Timestamp) -> [u8; HEADER_BYTES] {
    let mut status = status::USER | frame.checksum;
    let tag = frame.tag.unwrap_or_default();
    if frame.tag.is_some() {
        status |= status::TAG_VALID | status::TAG_TYPE_VALID;
    }
    let mut bytes = [0; HEADER_BYTES];
    Fields::new(&mut bytes)
        .u32(place.step)
        .u32(time.seconds)
        .u32(time.nanoseconds)
        .u32(place.kept)
        .u32(place.len)
        .u32(status)
        .u16(place.packet)
        .u16(place.network)
        .u32(frame.flow_hash)
        .u32(tag.control.into())
        .u16(tag.ether_type)
        .bytes(&[0; 2 + 8])
        .bytes(&address(frame));
    bytes
}

/// `struct sockaddr_ll`.
fn address(frame: &Frame) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    Fields::new(&mut bytes)
        .u16(AF_PACKET)
        .bytes(&frame.protocol.to_be_bytes())
        .u32(frame.interface)
        .u16(frame.hardware_type)
        .bytes(&[frame.packet_type, frame.sender.len])
        .bytes(&frame.sender.bytes);
    bytes
}

/// Bytes of a slot's header (`struct tpacket2_hdr`) and of the address behind it.
pub(crate) const SLOT_HEADER_BYTES: usize = 32 + ADDRESS_BYTES;

/// Where in a slot what lies.
pub(crate) struct SlotPlace {
    /// Where the packet starts.
    pub packet: u16,
    /// Where its network header starts.
    pub network: u16,
    /// Bytes of the packet that are there.
    pub kept: u32,
    /// Bytes that it had.
    pub len: u32,
}

/// A slot's header behind its status, with the address.
pub(crate) fn slot_header(
    frame: &Frame,
    place: &SlotPlace,
    time: Timestamp,
) -> [u8; SLOT_HEADER_BYTES - 4] {
    let tag = frame.tag.unwrap_or_default();
    let mut bytes = [0; SLOT_HEADER_BYTES - 4];
    Fields::new(&mut bytes)
        .u32(place.len)
        .u32(place.kept)
        .u16(place.packet)
        .u16(place.network)
        .u32(time.seconds)
        .u32(time.nanoseconds)
        .u16(tag.control)
        .u16(tag.ether_type)
        .bytes(&[0; 4])
        .bytes(&address(frame));
    bytes
}
