//! The buckets of two keys, locked together.

use base::lock::Lock;

use crate::Key;
use crate::bucket::Bucket;
use crate::host::{Host, LockOf};

type Guard<'a, H> = <LockOf<H, Bucket<H>> as Lock<Bucket<H>>>::Guard<'a>;

/// Both buckets, locked in their order.
pub(crate) struct Pair<'a, H: Host> {
    first: Guard<'a, H>,
    second: Option<Guard<'a, H>>,
    swapped: bool,
}

impl<'a, H: Host> Pair<'a, H> {
    pub(crate) fn lock<const BUCKETS: usize>(
        buckets: &'a [LockOf<H, Bucket<H>>; BUCKETS],
        one: Key,
        two: Key,
    ) -> Self {
        let (a, b) = (one.bucket(BUCKETS), two.bucket(BUCKETS));
        let first = buckets[a.min(b)].lock();
        let second = (a != b).then(|| buckets[a.max(b)].lock());
        Self {
            first,
            second,
            swapped: a > b,
        }
    }

    /// The bucket of the first key.
    pub(crate) fn one(&mut self) -> &mut Bucket<H> {
        match &mut self.second {
            Some(second) if self.swapped => second,
            _ => &mut self.first,
        }
    }

    /// The bucket of the second key.
    pub(crate) fn two(&mut self) -> &mut Bucket<H> {
        match &mut self.second {
            Some(second) if !self.swapped => second,
            _ => &mut self.first,
        }
    }

    /// Moves up to `count` waiters from the first key to the second; returns how many.
    pub(crate) fn requeue(&mut self, from: Key, to: Key, count: usize) -> usize {
        let wanted = count.min(self.one().len());
        let has_room = self.two().make_room(wanted).is_ok();
        let count = if has_room { count } else { 0 };
        let moved = self.one().rename(from, to, count);
        let number = moved.len();
        let two = self.two();
        moved.into_iter().for_each(|entry| two.insert(entry));
        number
    }
}
