//! Ports that nobody asked for by number (RFC 6056 algorithm 4).
//!
//! A secret hash of the destination hides both where in the range its ports begin, and which
//! of many counters steps through them. With one counter for all destinations, somebody
//! who owns one of them would learn how many connections go elsewhere. Because ports are
//! taken in turn, the one that was used longest ago comes first: a range that is used up by
//! connections that are over meets the oldest of them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

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

    /// The lowest.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The highest.
    pub const fn last(self) -> u16 {
        self.first + self.more
    }

    /// The same ports as `ranges`, rising and apart.
    pub(crate) fn united(mut ranges: Vec<Self>) -> Vec<Self> {
        ranges.sort_unstable_by_key(|range| range.first);
        ranges.dedup_by(|next, last| {
            let is_apart = u32::from(next.first) > u32::from(last.last()) + 1;
            if !is_apart {
                last.more = last.last().max(next.last()) - last.first;
            }
            !is_apart
        });
        ranges
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

/// Whether one of `ranges`, which rise, has `port`.
fn holds(ranges: &[PortRange], port: u16) -> bool {
    let behind = ranges.partition_point(|range| range.first <= port);
    let below = ranges[..behind].last();
    below.is_some_and(|range| port <= range.last())
}

/// Counters, shared by the destinations that a hash throws together.
const STEPS: usize = 1024;

/// Where the next ports come from.
pub(crate) struct Ephemeral {
    pub range: PortRange,
    /// What is left out of it: rising, and apart.
    pub reserved: Vec<PortRange>,
    steps: Box<[u16]>,
}

impl Ephemeral {
    pub fn new(range: PortRange) -> Self {
        let steps = vec![0; STEPS].into_boxed_slice();
        let reserved = Vec::new();
        Self {
            range,
            reserved,
            steps,
        }
    }

    /// Each port of the range once, but for those that are left out, in the order in which a destination with that hash tries
    /// them; one that is taken is not tried again before all others.
    pub fn candidates(&mut self, hash: u64) -> impl Iterator<Item = u16> {
        let (offset, group) = (hash as u32, (hash >> 32) as usize % STEPS);
        let (range, step) = (self.range, &mut self.steps[group]);
        let reserved = &self.reserved;
        let ports = (0..range.count()).map(move |_| {
            let place = offset.wrapping_add(u32::from(*step));
            *step = step.wrapping_add(1);
            range.nth(place)
        });
        ports.filter(|port| !holds(reserved, *port))
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

    fn ranges(ends: &[(u16, u16)]) -> Vec<PortRange> {
        let ranges = ends
            .iter()
            .map(|&(first, last)| PortRange::new(first, last));
        ranges.map(|range| range.expect("some ports")).collect()
    }

    #[test]
    fn ranges_in_any_order_become_rising_ones_that_are_apart() {
        let united = PortRange::united(ranges(&[
            (65_535, 65_535),
            (10, 20),
            (8, 9),
            (12, 15),
            (30, 65_535),
            (22, 28),
        ]));
        assert_eq!(united, ranges(&[(8, 20), (22, 28), (30, 65_535)]));
    }

    #[test]
    fn a_port_that_is_reserved_is_never_a_candidate() {
        let range = PortRange::new(5000, 5009).expect("ten ports");
        let mut ephemeral = Ephemeral::new(range);
        ephemeral.reserved = ranges(&[(4000, 5000), (5003, 5004), (5009, 6000)]);
        let mut ports: Vec<u16> = ephemeral.candidates(7).collect();
        ports.sort_unstable();
        assert_eq!(ports, [5001, 5002, 5005, 5006, 5007, 5008]);
    }
}
