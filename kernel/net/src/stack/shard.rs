//! The shards of a stack: `inet::Stack`s, each behind a lock ([`super::locked`]).
//!
//! A shard has connections, ports, neighbours and timers of its own. A stack begins with one,
//! which has loopback; the first stack with one for each CPU ([`super::loopback`]). A card with
//! several rings gets the first of them, one for each ring; shard `n` belongs to CPU `n`.
//! Belonging means: that CPU polls the shard's ring, is interrupted for it, and runs its
//! timers. Any CPU may enter any shard for a program's call.
//!
//! Each connection is in one shard for all its life, the one that `steer` names. A socket
//! without a connection is in the first shard, where all names are (`handle`).
//!
//! Invariant: nobody holds the locks of two shards, but for who sends over a link: from the shard of
//! its interface into the one that has the card ([`NetStack::with_pair`]), never the other way.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use inet::{EventKind, Share, Stack};
use mach::mem::fallible;
use sync::{Error, Result};

use super::env::{Attachment, Link};
use super::locked::{LockedShard, Slot};
use super::{NetStack, SHARDS_MAX};
use crate::device::pair::Pair;
use crate::device::pulls::Pulls;
use crate::device::{reception, ring, steer};
use crate::refusal::Answer;
use crate::stack::interface::CARD;

/// One stack with its environment.
pub(crate) struct Shard {
    pub(crate) stack: Stack,
    pub(crate) link: Link,
}

impl Shard {
    /// A shard that is attached to nothing, for an interface.
    ///
    /// Errors: `OutOfMemory`.
    #[inline(never)]
    pub(crate) fn boxed(of: &NetStack, interface: u32, number: u16) -> Result<Box<Self>> {
        let secret = [random::next_u64(), random::next_u64()];
        let stack = Stack::new(of.settings().part(of.count()), secret);
        let stack = stack.map_err(|_| Error::OutOfMemory)?;
        let link = Link::new(of, interface, number);
        let mut shard = fallible::boxed(Self { stack, link })?;
        let stack = &mut shard.stack;
        stack.share_memory(&crate::device::memory::HELD);
        stack.number_events_by(of.shared.event_numbers.clone());
        stack.share_totals(&of.shared.totals);
        // A further interface's has its addresses for itself.
        if number < of.loopback_count() && of.loopback_count() > 1 {
            stack.set_share(Share {
                number,
                owner_of: steer::owner_of_connection,
            });
        }
        Ok(shard)
    }
}

impl Drop for Shard {
    /// The card need not take the groups of a stack that ended.
    fn drop(&mut self) {
        let stations = self.stack.group_stations();
        stations.for_each(|station| reception::group(station, false));
    }
}

impl NetStack {
    /// Makes one shard more, of the card if it will have one; returns its number.
    ///
    /// Errors: `NoBuffers` at the limit, `OutOfMemory`.
    pub(crate) fn add_shard(&self) -> Result<u16> {
        let number = self.shard_count();
        if usize::from(number) >= SHARDS_MAX {
            return Err(Error::NoBuffers);
        }
        let shard = Shard::boxed(self, CARD, number)?;
        let slot = fallible::boxed(Slot::new(shard))?;
        self.shards[usize::from(number)].call_once(|| slot);
        self.shard_count.store(number + 1, Ordering::Release);
        Ok(number)
    }

    /// Gives each of `count` shards, of which there is one for each CPU, its part of the limits and
    /// its ring; once, when the card is attached.
    pub(crate) fn split(&self, count: u16, facts: inet::Port) {
        self.cpu_shards.store(count, Ordering::Release);
        let limits = self.settings().part(count);
        for number in 0..count {
            self.with_shard(number, |stack, link| {
                stack.reconfigure(limits);
                stack.attach(facts);
                link.is_polled = true;
                link.attachment = ring::of_shard(number).map_or(Attachment::None, Attachment::Ring);
            });
        }
    }

    /// Frames that went through these shards, by the CPU that took them.
    pub(crate) fn taken(&self, shards: Range<u16>) -> Vec<u64> {
        let mut sums = vec![0; mach::cpu::count()];
        for shard in shards {
            self.with_shard(shard, |_, link| {
                for (sum, frames) in sums.iter_mut().zip(link.taken()) {
                    *sum += frames;
                }
            });
        }
        sums
    }

    /// Calls `work` with a shard's stack and its environment; `None` if there is none.
    ///
    /// `work` must not block, nor enter another shard.
    #[inline]
    pub fn with_shard<R>(
        &self,
        number: u16,
        work: impl FnOnce(&mut Stack, &mut Link) -> R,
    ) -> Option<R> {
        let mut locked = LockedShard::new(self, number)?;
        let (stack, link) = locked.parts();
        Some(work(stack, link))
    }

    /// The same where there must be one.
    ///
    /// Errors: `NetworkDown`.
    pub fn in_shard<R>(
        &self,
        number: u16,
        work: impl FnOnce(&mut Stack, &mut Link) -> Answer<R>,
    ) -> Result<R> {
        let answer = self.with_shard(number, work);
        Ok(answer.ok_or(Error::NetworkDown)??)
    }

    /// Calls `work` with the pair of queues of a shard and what was taken from it; `None` without
    /// one.
    ///
    /// Whoever does so may be in a shard of an interface over a link already.
    pub(crate) fn with_pair<R>(
        &self,
        number: u16,
        work: impl FnOnce(&mut Pair, &mut Pulls) -> R,
    ) -> Option<R> {
        if self.is_first()
            && let Some(ring) = ring::of_shard(number)
        {
            return Some(ring.with_pair(work));
        }
        let mut shard = LockedShard::to_look(self, number)?;
        let (_, link) = shard.parts();
        match &mut link.attachment {
            Attachment::Own(pair) => Some(work(pair, &mut link.pulls)),
            Attachment::None | Attachment::Ring(_) => None,
        }
    }

    /// What `look` sees of each shard in turn.
    pub fn each_shard<R>(&self, mut look: impl FnMut(&Stack) -> R) -> Vec<R> {
        (0..self.shard_count())
            .filter_map(|number| self.with_shard(number, |stack, _| look(stack)))
            .collect()
    }

    /// The first shard, which knows what all know: addresses, routes.
    pub fn with_first_shard<R>(&self, look: impl FnOnce(&Stack) -> R) -> Option<R> {
        self.with_shard(0, |stack, _| look(stack))
    }

    /// The last events of all shards ([`inet::merged`]).
    pub fn journal(&self) -> Vec<inet::Event> {
        // Those with lower numbers are in their journals when these are unlocked.
        let ends = EventKind::ALL.map(|kind| (kind, self.shared.event_numbers.next(kind)));
        let journals = self.each_shard(|stack| stack.journal().copied().collect::<Vec<_>>());
        inet::merged(&journals.concat(), &ends)
    }

    /// The counters of all shards together.
    pub fn stats(&self) -> inet::Stats {
        let mut sum = inet::Stats::default();
        for number in 0..self.shard_count() {
            self.with_shard(number, |stack, _| sum.add(stack.stats()));
        }
        sum
    }
}
