//! Free addresses on a bus, for registers that the firmware gave no place.

use core::ops::Range;

/// The highest place in `within` for `bytes` bytes, a power of two, aligned to themselves, that
/// touches none of `taken`, which may be in any order and overlap.
pub fn highest_free(bytes: u64, within: Range<u64>, taken: &[Range<u64>]) -> Option<u64> {
    let below = |end: u64| Some(end.checked_sub(bytes)? & !bytes.checked_sub(1)?);
    let mut start = below(within.end)?;
    // Each step goes below one of them, for good.
    for _ in 0..=taken.len() {
        if start < within.start {
            return None;
        }
        let touches = |range: &&Range<u64>| range.start < start + bytes && start < range.end;
        match taken.iter().find(touches) {
            None => return Some(start),
            Some(range) => start = below(range.start)?,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLE: Range<u64> = 0xfe00_0000..0xfec0_0000;

    #[test]
    fn the_highest_gap_that_is_large_enough_is_taken() {
        let taken = [0xfebe_0000..0xfec0_0000, 0xfebd_8000..0xfebd_c000];
        assert_eq!(highest_free(0x4000, HOLE, &taken), Some(0xfebd_c000));
        assert_eq!(highest_free(0x8000, HOLE, &taken), Some(0xfebd_0000));
        assert_eq!(highest_free(0x2_0000, HOLE, &taken), Some(0xfeba_0000));
    }

    #[test]
    fn overlapping_ranges_in_any_order_are_passed() {
        let taken = [
            0xfe80_0000..0xfea0_0000,
            0xfe90_0000..0xfec0_0000,
            0..0xfe40_0000,
        ];
        assert_eq!(highest_free(0x10_0000, HOLE, &taken), Some(0xfe70_0000));
        assert_eq!(highest_free(0x80_0000, HOLE, &taken), None);
    }

    #[test]
    fn what_cannot_be_placed_is_refused() {
        assert_eq!(highest_free(0, HOLE, &[]), None);
        assert_eq!(highest_free(1 << 32, HOLE, &[]), None);
        assert_eq!(highest_free(4096, 0..0, &[]), None);
        assert_eq!(highest_free(4096, 0..8192, &[0..4096, 4096..8192]), None);
    }
}
