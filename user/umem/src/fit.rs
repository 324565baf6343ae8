//! Which free units a span takes: `UMEM_OPTIONS=allocator=`.
//!
//! Unless told otherwise a span comes from a segment on a list of segments with a run that is
//! long enough ("instant": a few looks, however many segments there are). The other policies
//! look at every free run of every segment and take the one that comes first in their order;
//! they are for finding out what a program's fragmentation comes from.

use core::ptr::NonNull;

use crate::map::UNIT;
use crate::segment::Segment;
use crate::settings::Fit;

impl Fit {
    /// What makes one run come before another: the smaller number does.
    fn rank(self, address: usize, units: usize, last: usize) -> (usize, usize) {
        match self {
            Self::Best => (units, address),
            Self::Next => (usize::from(address < last), address),
            Self::First | Self::Instant => (0, address),
        }
    }

    /// The run of `units` units that comes first, with its segment. The last span that was
    /// taken ends at `last`. The caller holds the lock of the spans.
    pub fn choose(
        self,
        segments: impl Iterator<Item = NonNull<Segment>>,
        units: usize,
        last: usize,
    ) -> Option<(NonNull<Segment>, usize)> {
        let mut chosen = None;
        for segment in segments {
            let start = segment.addr().get();
            // SAFETY: **Header**.
            let header = unsafe { segment.as_ref() };
            header.for_each_free_run(|first, length| {
                let rank = self.rank(start + first * UNIT, length, last);
                if length >= units && chosen.is_none_or(|(best, _, _)| rank < best) {
                    chosen = Some((rank, segment, first));
                }
            });
        }
        chosen.map(|(_, segment, first)| (segment, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two segments: free runs of 5, 9 and all the rest, and one that is free from 10 on.
    fn segments() -> [NonNull<Segment>; 2] {
        let mut segments = [(); 2].map(|()| Segment::map().expect("there is memory"));
        segments.sort_unstable();
        let taken: [&[(usize, usize)]; 2] = [&[(3, 7), (15, 5), (29, 1)], &[(3, 7)]];
        for (segment, spans) in segments.iter_mut().zip(taken) {
            for &(first, units) in spans {
                // SAFETY: the segment is the test's alone.
                unsafe { segment.as_mut() }.take(first, units);
            }
        }
        segments
    }

    #[test]
    fn each_policy_takes_the_run_that_it_says() {
        let [low, high] = segments();
        let behind = |segment: NonNull<Segment>, unit| segment.addr().get() + unit * UNIT;
        let end = behind(high, 200);
        for (fit, units, last, expected) in [
            (Fit::First, 4, 0, (low, 10)),
            (Fit::First, 6, 0, (low, 20)),
            (Fit::Best, 6, 0, (low, 20)),
            (Fit::Best, 10, 0, (low, 30)),
            (Fit::Next, 4, behind(low, 20), (low, 20)),
            (Fit::Next, 4, behind(low, 31), (high, 10)),
            (Fit::Next, 4, end, (low, 10)),
        ] {
            for order in [[low, high], [high, low]] {
                let chosen = fit.choose(order.into_iter(), units, last);
                assert_eq!(chosen, Some(expected), "{fit:?} {units} {last:#x}");
            }
        }
        assert_eq!(Fit::Best.choose([low, high].into_iter(), 250, 0), None);
    }
}
