//! Completes the checksum of a frame that a card would have completed.

use mbuf::{Chain, Checksum, ChecksumOffload, Pool, RxFrame};
use wire::Sum;

/// Fills in what `Partial` says is missing, in bytes of the copy's own. A frame that was
/// to be cut into segments has no one checksum and stays as it is. False if `pool` has
/// no buffer.
pub fn complete_checksum(frame: &mut RxFrame, pool: &dyn Pool) -> bool {
    let Checksum::Partial(offload) = frame.checksum else {
        return true;
    };
    if frame.coalesced.is_some() {
        return true;
    }
    let start = usize::from(offload.start);
    let field = start + usize::from(offload.offset);
    if field + 2 > frame.chain.len() {
        return true;
    }
    let Some(mut buffer) = pool.alloc() else {
        return false;
    };
    buffer.append(&sum_from(&frame.chain, offload).to_be_bytes());
    let mut whole = frame.chain.share(0, field);
    whole.push_back(buffer);
    whole.append(frame.chain.share(field + 2, usize::MAX));
    frame.chain = whole;
    frame.checksum = Checksum::Verified;
    true
}

fn sum_from(chain: &Chain, offload: ChecksumOffload) -> u16 {
    let tail = chain.share(offload.start.into(), usize::MAX);
    let sum = tail
        .slices()
        .fold(Sum::new(), |sum, bytes| sum.bytes(bytes));
    // A sum of zero is sent as its other form (RFC 768).
    match sum.checksum() {
        0 => 0xffff,
        sum => sum,
    }
}
