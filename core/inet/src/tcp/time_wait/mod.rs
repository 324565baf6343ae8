//! Connections that are over, remembered for late segments (RFC 9293 3.6.1).
//!
//! # Problem
//! Whoever closes first must remember the connection while its segments may be under way,
//! or an old one is taken for a new connection's. But a name is only four numbers, and one
//! client has 28 232 ports towards one server: at a thousand connections a second each new
//! one meets an old one's memory. What happens then decides whether the client goes on at
//! once, waits a second, or is refused. `docs/time-wait.md` tells the story and has the table.
//!
//! # Idea
//! An entry is a tenth of a connection. All wait equally long, so they end in the order in
//! which they began: the timer wheel of their own is one list, and the table beside it
//! finds them by name. [`judge`] decides what a segment leads to. Past the limit the oldest
//! goes, since it is the least likely to be missed.
//!
//! | file | what |
//! |---|---|
//! | `entry` | what is remembered |
//! | `judge` | the decision table |
//! | `input` | segments, and what follows |
//! | `rules` | what may be chosen |
//!
//! Invariants: the list runs from `oldest` to `newest` by `since`; an entry is in the list
//! and in `by_name`, or in `free`.

mod entry;
mod input;
mod judge;
mod rules;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use base::{Duration, Instant};
use hashbrown::HashTable;
use wire::{Seq, TcpRepr};

use self::entry::Entry;
pub use self::rules::{Reuse, TimeWaitRules};
use super::segment::Segment;
use super::syn::Syn;
use super::tcb::Tcb;
use crate::addr::FourTuple;
use crate::hash::Key;
use crate::totals::Tally;

const NONE: u32 = u32::MAX;

/// The table.
pub(crate) struct TimeWait {
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_name: HashTable<u32>,
    oldest: u32,
    newest: u32,
    limit: usize,
    /// How many there are, of which `limit` counts those of all stacks.
    pub(crate) tally: Tally,
    wait: Duration,
    key: Key,
}

impl TimeWait {
    pub fn new(limit: usize, rules: &TimeWaitRules, key: Key) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            oldest: NONE,
            newest: NONE,
            limit,
            tally: Tally::default(),
            wait: rules.wait(),
            key,
        }
    }

    /// Other limits from now on; says how many of the oldest that has cost.
    pub fn reconfigure(&mut self, limit: usize, rules: &TimeWaitRules) -> u64 {
        (self.limit, self.wait) = (limit, rules.wait());
        let before = self.len();
        while self.len() != 0 && self.tally.all() > limit {
            self.remove(self.oldest);
        }
        (before - self.len()) as u64
    }

    pub fn len(&self) -> usize {
        self.tally.own()
    }

    pub(super) fn find(&self, tuple: &FourTuple) -> Option<u32> {
        let hash = self.key.tuple(tuple);
        let is_same = |at: &u32| self.entries[*at as usize].tuple == *tuple;
        self.by_name.find(hash, is_same).copied()
    }

    /// Whether a connection of ours may have that name now.
    pub fn is_free(
        &self,
        tuple: &FourTuple,
        rules: &TimeWaitRules,
        is_same_host: bool,
        now: Instant,
    ) -> bool {
        self.find(tuple).is_none_or(|at| {
            let entry = self.entry(at);
            entry.is_reusable(rules, is_same_host, now.since(entry.since))
        })
    }

    /// Ends a wait for a connection of ours; says where the old one's numbers ended.
    pub fn take_over(&mut self, tuple: &FourTuple) -> Option<Seq> {
        let at = self.find(tuple)?;
        let end = self.entry(at).seq;
        self.remove(at);
        Some(end)
    }

    /// Remembers a connection; returns whether one had to be forgotten for it, perhaps
    /// itself if there is no memory, or if all that may be remembered are other stacks'.
    fn insert(&mut self, tcb: &Tcb, now: Instant) -> bool {
        if let Some(old) = self.find(&tcb.tuple) {
            self.remove(old);
        }
        let is_full = self.tally.all() >= self.limit || !self.has_room();
        if is_full {
            if self.len() == 0 {
                return true;
            }
            self.remove(self.oldest);
            if !self.has_room() {
                return true;
            }
        }
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        let entry = Entry::new(tcb, now);
        match self.entries.get_mut(at as usize) {
            Some(slot) => *slot = entry,
            None => self.entries.push(entry),
        }
        self.append(at);
        let (key, entries) = (self.key, &self.entries);
        self.by_name.insert_unique(key.tuple(&tcb.tuple), at, |at| {
            key.tuple(&entries[*at as usize].tuple)
        });
        self.tally.add(1);
        is_full
    }

    /// Sees to it that one more entry, and its freeing, needs no memory.
    fn has_room(&mut self) -> bool {
        let (key, entries) = (self.key, &self.entries);
        let hash_of = |at: &u32| key.tuple(&entries[*at as usize].tuple);
        let is_named = self.by_name.try_reserve(1, hash_of).is_ok();
        let has_slot = !self.free.is_empty() || self.entries.try_reserve(1).is_ok();
        let missing = self.entries.len() + 1 - self.free.len();
        is_named && has_slot && self.free.try_reserve(missing).is_ok()
    }

    /// Puts an entry at the young end of the list.
    fn append(&mut self, at: u32) {
        match self.entries.get_mut(self.newest as usize) {
            Some(newest) => newest.newer = at,
            None => self.oldest = at,
        }
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, self.newest);
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match self.entries.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn remove(&mut self, at: u32) {
        let Some(entry) = self.entries.get(at as usize) else {
            return;
        };
        let hash = self.key.tuple(&entry.tuple);
        if let Ok(found) = self.by_name.find_entry(hash, |other| *other == at) {
            found.remove();
            self.tally.sub(1);
            self.unlink(at);
            self.free.push(at);
        }
    }

    /// Forgets those whose time has come, `most` at once; says how many.
    fn expire(&mut self, now: Instant, most: usize) -> u64 {
        let before = self.len();
        while self.next_deadline().is_some_and(|due| due <= now) && before - self.len() < most {
            self.remove(self.oldest);
        }
        (before - self.len()) as u64
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        Some(self.entries.get(self.oldest as usize)?.since + self.wait)
    }

    /// Names of all, for tools.
    pub fn iter(&self) -> impl Iterator<Item = &FourTuple> {
        self.by_name
            .iter()
            .map(|at| &self.entries[*at as usize].tuple)
    }

    /// An entry that [`find`](Self::find) has found.
    fn entry(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    fn keep_refused(&mut self, at: u32, syn: &Segment) {
        self.entries[at as usize].refused = Some(Syn::new(syn));
    }

    fn note_clock(&mut self, at: u32, segment: &Segment) {
        let entry = &mut self.entries[at as usize];
        if let (Some(clock), Some(stamp)) = (&mut entry.clock, segment.options.timestamps) {
            *clock = stamp.value;
        }
    }

    fn acknowledgement(&mut self, at: u32, now: Instant) -> Option<TcpRepr> {
        self.entries[at as usize].acknowledgement(now)
    }

    /// The wait begins anew.
    fn restart(&mut self, at: u32, now: Instant) {
        self.unlink(at);
        self.append(at);
        self.entries[at as usize].since = now;
    }
}
