//! Looks for a netlink attribute in a packet (`SKF_AD_NLATTR`, `SKF_AD_NLATTR_NEST`).
//!
//! An attribute is `len[2] type[2] data`, host order, padded to four bytes. Filters on netlink
//! sockets use this; on other packets it finds whatever the bytes happen to say.

use crate::packet::Packet;

/// Attributes that one run may look at; a program could else search a packet of 64 KiB
/// with each of its instructions.
pub const ATTRIBUTES_MAX: u32 = 4096;

const HEADER_BYTES: usize = 4;
/// Two bits of the type are flags.
const TYPE_MASK: u16 = 0x3fff;

/// Searches within one run.
pub(crate) struct Search {
    left: u32,
}

/// The run has looked at [`ATTRIBUTES_MAX`] of them.
pub(crate) struct Exhausted;

impl Search {
    pub(crate) fn new() -> Self {
        Self {
            left: ATTRIBUTES_MAX,
        }
    }

    /// The offset of the first attribute of `kind` from `at` to the packet's end; 0 if none.
    pub(crate) fn flat(&mut self, packet: &Packet, at: u32, kind: u32) -> Result<u32, Exhausted> {
        self.range(packet, at as usize, packet.len(), kind)
    }

    /// The same within the attribute at `at`.
    pub(crate) fn nested(&mut self, packet: &Packet, at: u32, kind: u32) -> Result<u32, Exhausted> {
        let at = at as usize;
        let Some((len, _)) = header(packet, at) else {
            return Ok(0);
        };
        let end = at + len;
        if end > packet.len() {
            return Ok(0);
        }
        self.range(packet, at + HEADER_BYTES, end, kind)
    }

    fn range(
        &mut self,
        packet: &Packet,
        mut at: usize,
        end: usize,
        kind: u32,
    ) -> Result<u32, Exhausted> {
        while let Some((len, found)) = header(packet, at) {
            self.left = self.left.checked_sub(1).ok_or(Exhausted)?;
            if len < HEADER_BYTES || at + len > end {
                break;
            }
            if u32::from(found) == kind {
                return Ok(at as u32);
            }
            at += len.next_multiple_of(4);
        }
        Ok(0)
    }
}

/// Length and type of the attribute at `at`.
fn header(packet: &Packet, at: usize) -> Option<(usize, u16)> {
    let [l0, l1, t0, t1] = packet.visible(at)?;
    let len = usize::from(u16::from_le_bytes([l0, l1]));
    Some((len, u16::from_le_bytes([t0, t1]) & TYPE_MASK))
}
