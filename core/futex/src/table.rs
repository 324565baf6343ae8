//! The waiters, hashed by the word they wait for.

use alloc::sync::Arc;

use base::lock::Lock;

use crate::bucket::{Bucket, Entry};
use crate::host::{Host, LockOf, Thread, Word};
use crate::pair::Pair;
use crate::stop::{Refusal, Stop};
use crate::{BATCH_WAITERS, Key, MATCH_ANY, Operation, pi};

/// All waiters of a machine, in `BUCKETS` buckets, a power of two.
pub struct Table<H: Host, const BUCKETS: usize> {
    pub(crate) buckets: [LockOf<H, Bucket<H>>; BUCKETS],
    pub(crate) pi: LockOf<H, pi::Locks<H, BUCKETS>>,
}

impl<H: Host, const BUCKETS: usize> Default for Table<H, BUCKETS> {
    fn default() -> Self {
        let buckets = core::array::from_fn(|_| Lock::new(Bucket::new()));
        Self::over(buckets, Lock::new(pi::Locks::new()))
    }
}

impl<H: Host, const BUCKETS: usize> Table<H, BUCKETS> {
    /// A table of these empty parts, for a static.
    pub const fn over(
        buckets: [LockOf<H, Bucket<H>>; BUCKETS],
        pi: LockOf<H, pi::Locks<H, BUCKETS>>,
    ) -> Self {
        const { assert!(BUCKETS.is_power_of_two(), "the hash is masked") };
        Self { buckets, pi }
    }

    pub(crate) fn bucket(&self, key: Key) -> <LockOf<H, Bucket<H>> as Lock<Bucket<H>>>::Guard<'_> {
        self.buckets[key.bucket(BUCKETS)].lock()
    }

    /// Puts `me`, which runs, among the waiters of a word that holds `expected`; only those who
    /// name a bit of `bits` wake it.
    pub fn enqueue<W: Word>(
        &self,
        me: Arc<H::Thread>,
        key: Key,
        word: &W,
        expected: u32,
        bits: u32,
    ) -> Result<(), Stop<W::Fault>> {
        self.enter(me, (key, bits, None), word, expected)
    }

    /// The same; with `target` it is to be moved to that lock and not to be woken.
    pub(crate) fn enter<W: Word>(
        &self,
        me: Arc<H::Thread>,
        (key, bits, target): (Key, u32, Option<Key>),
        word: &W,
        expected: u32,
    ) -> Result<(), Stop<W::Fault>> {
        let mut bucket = self.bucket(key);
        if word.load().map_err(Stop::Fault)? != expected {
            return Err(Refusal::Changed.into());
        }
        bucket.make_room(1)?;
        me.waiter().set_key(key);
        me.waiter().expect_wake();
        bucket.insert(Entry {
            key,
            bits,
            target,
            rank: me.rank(),
            thread: me,
        });
        Ok(())
    }

    /// Sleeps after [`Table::enqueue`] until somebody wakes `me`. `park` returns when it was
    /// unparked, with a reason if the wait is to end for that.
    pub fn sleep<R>(&self, me: &H::Thread, park: impl FnMut() -> Result<(), R>) -> Result<(), R> {
        match until_woken(me, park) {
            Err(reason) if self.give_up(me) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Takes the thread out of the table; false if a waker has done so.
    fn give_up(&self, me: &H::Thread) -> bool {
        loop {
            if self.bucket(me.waiter().key()).remove(me) {
                return true;
            }
            if me.waiter().is_woken() {
                return false;
            }
            // It was moved between the two looks.
            H::relax();
        }
    }

    /// Wakes up to `count` waiters that match `bits`; returns how many.
    pub fn wake(&self, key: Key, bits: u32, count: usize) -> usize {
        if count == 1 {
            return usize::from(self.wake_first(key, bits));
        }
        // Who comes while the lock is let go is not woken.
        let all = self.bucket(key).count(key, bits).min(count);
        let mut woken = 0;
        while woken < all {
            let batch = (all - woken).min(BATCH_WAITERS);
            let more = self.bucket(key).wake(key, bits, batch);
            if more == 0 {
                break;
            }
            woken += more;
            H::resched_point();
        }
        woken
    }

    /// Wakes the first waiter that matches `bits`, if there is one. To interrupt its CPU may take
    /// long, and whoever is woken comes back here, so the bucket is let go before.
    fn wake_first(&self, key: Key, bits: u32) -> bool {
        let first = self.bucket(key).take_first(key, bits);
        if let Some(thread) = &first {
            thread.unpark();
        }
        first.is_some()
    }

    /// Wakes up to `wake_count` waiters of `from` and moves up to `move_count` others to `to`;
    /// returns (woken, moved). With `check`, a word and what it must hold.
    pub fn requeue<W: Word>(
        &self,
        (from, to): (Key, Key),
        (wake_count, move_count): (usize, usize),
        check: Option<(&W, u32)>,
    ) -> Result<(usize, usize), Stop<W::Fault>> {
        let move_count = if from == to { 0 } else { move_count };
        let mut pair = Pair::<H>::lock(&self.buckets, from, to);
        if let Some((word, expected)) = check
            && word.load().map_err(Stop::Fault)? != expected
        {
            return Err(Refusal::Changed.into());
        }
        let woken = pair
            .one()
            .wake(from, MATCH_ANY, wake_count.min(BATCH_WAITERS));
        // Those who are still to be woken are not moved.
        let (to_wake, to_move) = match woken {
            BATCH_WAITERS if wake_count != woken => (wake_count - woken, 0),
            _ => (0, move_count.min(BATCH_WAITERS)),
        };
        let moved = pair.requeue(from, to, to_move);
        drop(pair);
        if to_wake == 0 && moved < BATCH_WAITERS {
            return Ok((woken, moved));
        }
        let woken = woken + self.wake(from, MATCH_ANY, to_wake);
        Ok((woken, moved + self.move_rest(from, to, move_count - moved)))
    }

    /// Moves up to `count` waiters more, in batches.
    fn move_rest(&self, from: Key, to: Key, count: usize) -> usize {
        let mut moved = 0;
        while moved < count {
            H::resched_point();
            let batch = (count - moved).min(BATCH_WAITERS);
            let more = Pair::<H>::lock(&self.buckets, from, to).requeue(from, to, batch);
            moved += more;
            if more < batch {
                break;
            }
        }
        moved
    }

    /// Changes the word of `second`, wakes up to `count` waiters of `first`, and up to
    /// `second_count` of `second` if the old value passes the test; returns how many.
    pub fn wake_op<W: Word>(
        &self,
        (first, second): (Key, Key),
        word: &W,
        operation: &Operation,
        (count, second_count): (usize, usize),
    ) -> Result<usize, W::Fault> {
        let mut pair = Pair::<H>::lock(&self.buckets, first, second);
        let old = replace::<H, W>(word, |old| operation.change(old))?;
        let second_count = match operation.is_second_woken(old) {
            true => second_count,
            false => 0,
        };
        let one = pair.one().wake(first, MATCH_ANY, count.min(BATCH_WAITERS));
        let two = pair
            .two()
            .wake(second, MATCH_ANY, second_count.min(BATCH_WAITERS));
        drop(pair);
        let rest = |key, done, wanted| match done {
            BATCH_WAITERS => self.wake(key, MATCH_ANY, wanted - done),
            _ => 0,
        };
        Ok(one + two + rest(first, one, count) + rest(second, two, second_count))
    }
}

/// Parks `me` until it is woken, or for as long as `park` knows no reason to stop.
pub(crate) fn until_woken<T: Thread, R>(
    me: &T,
    mut park: impl FnMut() -> Result<(), R>,
) -> Result<(), R> {
    while !me.waiter().is_woken() {
        park()?;
    }
    Ok(())
}

/// Replaces a word of a program's atomically; returns the old value.
pub fn replace<H: Host, W: Word>(word: &W, change: impl Fn(u32) -> u32) -> Result<u32, W::Fault> {
    let mut old = word.load()?;
    loop {
        let seen = word.compare_exchange(old, change(old))?;
        if seen == old {
            return Ok(old);
        }
        old = seen;
        H::relax();
    }
}
