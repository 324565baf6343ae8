//! Frames in many small parts.
//!
//! The card reads each part by a descriptor of its own, and QEMU's drops a frame of more
//! than 64 parts without a word. So a frame of too many is copied into few.

use mbuf::{BLOCK_CAPACITY, Chain, Pool};

/// Parts of a frame at most: a packet of 64 KiB fits in buffers of ours.
pub(crate) const PARTS_MAX: usize = 40;
/// Bytes that fit into as many.
pub(crate) const BYTES_MAX: usize = PARTS_MAX * BLOCK_CAPACITY;

/// The bytes of a chain in as few buffers as they fit; `None` without buffers.
pub(crate) fn gather(chain: &Chain, pool: &dyn Pool) -> Option<Chain> {
    let mut gathered = Chain::new();
    while gathered.len() < chain.len() {
        let mut buffer = pool.alloc()?;
        let len = buffer.tailroom().min(chain.len() - gathered.len());
        chain.copy_to_slice(gathered.len(), buffer.extend(len)?);
        gathered.push_back(buffer);
    }
    Some(gathered)
}
