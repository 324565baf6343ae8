//! Ports that nobody asked for by number (RFC 6056 algorithm 4).
//!
//! A secret hash of the destination hides both where in the range its ports begin, and which
//! of many counters steps through them. With one counter for all destinations, somebody
//! who owns one of them would learn how many connections go elsewhere. Because ports are
//! taken in turn, the one that was used longest ago comes first: a range that is used up by
//! connections that are over meets the oldest of them.

use alloc::boxed::Box;
use alloc::vec;

/// Ephemeral ports: the first, and how many follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    first: u16,
    more: u16,
}

impl PortRange {
    /// From `first` to `last`; `None` if that is nothing or begins with port 0.
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if first == 0 || last < first {
            return None;
        }
        let more = last - first;
        Some(Self { first, more })
    }

    const fn count(self) -> u32 {
        self.more as u32 + 1
    }

    const fn nth(self, place: u32) -> u16 {
        self.first + (place % self.count()) as u16
    }
}

impl Default for PortRange {
    /// RFC 6335's dynamic ports begin later; this is Linux's range.
    fn default() -> Self {
        let (first, last) = (32768, 60999);
        let more = last - first;
        Self { first, more }
    }
}

/// Counters, shared by the destinations that a hash throws together.
const STEPS: usize = 1024;

/// Where the next ports come from.
pub(crate) struct Ephemeral {
    range: PortRange,
    steps: Box<[u16]>,
}

impl Ephemeral {
    pub fn new(range: PortRange) -> Self {
        let steps = vec![0; STEPS].into_boxed_slice();
        Self { range, steps }
    }

    /// Each port of the range once, in the order in which a destination with that hash tries
    /// them; one that is taken is not tried again before all others.
    pub fn candidates(&mut self, hash: u64) -> impl Iterator<Item = u16> {
        let (offset, group) = (hash as u32, (hash >> 32) as usize % STEPS);
        let (range, step) = (self.range, &mut self.steps[group]);
        (0..range.count()).map(move |_| {
            let place = offset.wrapping_add(u32::from(*step));
            *step = step.wrapping_add(1);
            range.nth(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_port_and_not_port_zero() {
        assert_eq!(PortRange::new(0, 10), None);
        assert_eq!(PortRange::new(11, 10), None);
        assert!(PortRange::new(1, u16::MAX).is_some_and(|all| all.count() == 65535));
    }
}
