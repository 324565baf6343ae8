//! Completes the checksum of a frame that a card would have completed.

use mbuf::{Chain, Checksum, Pool, RxFrame};
use wire::Sum;

/// Fills in what `Partial` says is missing: in its place if nobody shares the bytes, else in bytes of the
/// frame's own. A frame that was to be cut into segments has no one checksum and stays as it
/// is. False if `pool` has no buffer.
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
    let is_complete = complete_in_place(&mut frame.chain, start, field)
        || complete_in_copy(&mut frame.chain, start, field, pool);
    if is_complete {
        frame.checksum = Checksum::Verified;
    }
    is_complete
}

fn complete_in_place(chain: &mut Chain, start: usize, field: usize) -> bool {
    let Some(bytes) = chain.as_single_mut() else {
        return false;
    };
    let sum = bytes.get(start..).map(|summed| Sum::new().bytes(summed));
    match (sum, bytes.get_mut(field..field + 2)) {
        (Some(sum), Some(place)) => {
            place.copy_from_slice(&checksum_of(sum).to_be_bytes());
            true
        }
        _ => false,
    }
}

fn complete_in_copy(chain: &mut Chain, start: usize, field: usize, pool: &dyn Pool) -> bool {
    let Some(mut buffer) = pool.alloc() else {
        return false;
    };
    let tail = chain.share(start, usize::MAX);
    let sum = tail
        .slices()
        .fold(Sum::new(), |sum, bytes| sum.bytes(bytes));
    buffer.append(&checksum_of(sum).to_be_bytes());
    let mut whole = chain.share(0, field);
    whole.push_back(buffer);
    whole.append(chain.share(field + 2, usize::MAX));
    *chain = whole;
    true
}

/// A sum of zero is sent as its other form (RFC 768).
fn checksum_of(sum: Sum) -> u16 {
    match sum.checksum() {
        0 => 0xffff,
        sum => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use mbuf::{ChecksumOffload, HeapPool};

    /// A frame of one part whose sum, over all behind the first four bytes, belongs behind the sixth
    /// byte, where the pseudo header's is.
    fn frame(pool: &HeapPool) -> RxFrame {
        let mut part = pool.alloc().expect("a buffer");
        part.append(b"head\x12\x34\0\x07data");
        let mut frame = RxFrame::default();
        frame.chain.push_back(part);
        frame.checksum = Checksum::Partial(ChecksumOffload {
            start: 4,
            offset: 2,
        });
        frame
    }

    fn bytes(chain: &Chain) -> Vec<u8> {
        chain.slices().flatten().copied().collect()
    }

    #[test]
    fn a_frame_of_ones_own_gets_its_sum_in_place_and_a_shared_one_in_a_copy() {
        let pool = HeapPool::new(4);
        let (mut own, mut shared) = (frame(&pool), frame(&pool));
        let other = shared.chain.share(0, usize::MAX);
        for frame in [&mut own, &mut shared] {
            assert!(complete_checksum(frame, &pool));
            assert_eq!(frame.checksum, Checksum::Verified);
            let whole = bytes(&frame.chain);
            let pseudo_header = [0, 7];
            let sum = Sum::new().bytes(&whole[4..]).bytes(&pseudo_header);
            assert!(sum.is_valid());
        }
        assert_eq!([own.chain.parts(), shared.chain.parts()], [1, 3]);
        assert_eq!(bytes(&own.chain), bytes(&shared.chain));
        assert_eq!(bytes(&other)[6..8], [0, 7], "the other one's is as it was");
    }

    #[test]
    fn a_shared_frame_is_left_without_a_buffer_and_ones_own_needs_none() {
        let pool = HeapPool::new(2);
        let (mut own, mut shared) = (frame(&pool), frame(&pool));
        let _other = shared.chain.share(0, usize::MAX);
        assert!(!complete_checksum(&mut shared, &pool));
        assert!(complete_checksum(&mut own, &pool));
    }
}
