//! Connections that are over, remembered for late segments (RFC 9293 3.6.1).
//!
//! All wait equally long, so they end in the order in which they began: entries form one
//! list, and the table beside it finds them by name. A new SYN takes an entry over if its
//! clock or its sequence number is beyond what the old connection has used (RFC 6191,
//! RFC 1122 4.2.2.13); resets are ignored (RFC 1337).

use alloc::vec::Vec;

use base::{Duration, Instant};
use hashbrown::HashTable;
use wire::{Seq, TcpFlags, TcpOptions, TcpRepr, Timestamps};

use super::segment::Segment;
use super::tcb::Tcb;
use crate::addr::FourTuple;
use crate::hash::Key;

/// Twice the time that a segment may live, as Linux has it.
const TIME_WAIT: Duration = Duration::from_secs(60);
const NONE: u32 = u32::MAX;

struct Entry {
    tuple: FourTuple,
    expires: Instant,
    /// Next byte that we would send, and expect.
    seq: Seq,
    ack: Seq,
    /// The peer's clock, if timestamps were used.
    clock: Option<u32>,
    clock_offset: u32,
    newer: u32,
    older: u32,
}

const _: () = assert!(size_of::<Entry>() <= 96, "thousands of these are kept");

/// The table.
pub(crate) struct TimeWait {
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_name: HashTable<u32>,
    oldest: u32,
    newest: u32,
    limit: usize,
    key: Key,
}

/// What a segment for a finished connection leads to.
pub(super) enum Verdict {
    /// A new connection; the old one is forgotten.
    Reuse,
    /// Our last acknowledgement again.
    Acknowledge(TcpRepr),
    Ignore,
}

impl TimeWait {
    pub fn new(limit: usize, key: Key) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            oldest: NONE,
            newest: NONE,
            limit: limit.max(1),
            key,
        }
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn find(&self, tuple: &FourTuple) -> Option<u32> {
        let hash = self.key.tuple(tuple);
        let is_same = |at: &u32| self.entries[*at as usize].tuple == *tuple;
        self.by_name.find(hash, is_same).copied()
    }

    pub fn contains(&self, tuple: &FourTuple) -> bool {
        self.find(tuple).is_some()
    }

    /// Remembers a connection; returns whether an older one had to go for it.
    pub(super) fn insert(&mut self, tcb: &Tcb, now: Instant) -> bool {
        let is_full = self.len() >= self.limit;
        if is_full {
            self.remove(self.oldest);
        }
        if let Some(old) = self.find(&tcb.tuple) {
            self.remove(old);
        }
        let entry = Entry {
            tuple: tcb.tuple,
            expires: now + TIME_WAIT,
            seq: tcb.sender.nxt,
            ack: tcb.receiver.nxt,
            clock: tcb.clocks.map(|clocks| clocks.recent),
            clock_offset: tcb.clock_offset,
            newer: NONE,
            older: self.newest,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.append(at);
        let (key, entries) = (self.key, &self.entries);
        self.by_name.insert_unique(key.tuple(&tcb.tuple), at, |at| {
            key.tuple(&entries[*at as usize].tuple)
        });
        is_full
    }

    fn append(&mut self, at: u32) {
        match self.entries.get_mut(self.newest as usize) {
            Some(newest) => newest.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    pub(super) fn remove(&mut self, at: u32) {
        let Some(entry) = self.entries.get(at as usize) else {
            return;
        };
        let (tuple, newer, older) = (entry.tuple, entry.newer, entry.older);
        let Ok(found) = self
            .by_name
            .find_entry(self.key.tuple(&tuple), |other| *other == at)
        else {
            return;
        };
        found.remove();
        match self.entries.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        self.free.push(at);
    }

    /// Forgets those whose time has come.
    pub fn expire(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|due| due <= now) {
            self.remove(self.oldest);
        }
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        Some(self.entries.get(self.oldest as usize)?.expires)
    }

    /// Names of all, for tools.
    pub fn iter(&self) -> impl Iterator<Item = &FourTuple> {
        self.by_name
            .iter()
            .map(|at| &self.entries[*at as usize].tuple)
    }

    /// Judges a segment for the entry at `at`.
    pub(super) fn judge(&mut self, at: u32, segment: &Segment, now: Instant) -> Verdict {
        let entry = &self.entries[at as usize];
        if segment.has(TcpFlags::RST) {
            return Verdict::Ignore;
        }
        let stamp = segment.options.timestamps;
        if segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK) {
            let is_newer_clock = match (entry.clock, stamp) {
                (Some(old), Some(new)) => (new.value.wrapping_sub(old) as i32) > 0,
                _ => false,
            };
            if is_newer_clock || segment.seq.after(entry.ack) {
                self.remove(at);
                return Verdict::Reuse;
            }
        } else if segment.len() == 0 && segment.seq == entry.ack {
            return Verdict::Ignore;
        }
        let clock = (now.as_millis() as u32).wrapping_add(entry.clock_offset);
        let timestamps = entry.clock.map(|echo| Timestamps { value: clock, echo });
        let repr = TcpRepr {
            src_port: entry.tuple.local.port,
            dst_port: entry.tuple.remote.port,
            seq: entry.seq,
            ack: entry.ack,
            flags: TcpFlags::ACK,
            window: 0,
            options: TcpOptions {
                timestamps,
                ..TcpOptions::default()
            },
        };
        // RFC 9293: a repeated FIN starts the wait anew.
        if segment.has(TcpFlags::FIN) {
            self.restart(at, now);
        }
        Verdict::Acknowledge(repr)
    }

    fn restart(&mut self, at: u32, now: Instant) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        if let Some(next) = self.entries.get_mut(newer as usize) {
            next.older = older;
            match self.entries.get_mut(older as usize) {
                Some(previous) => previous.newer = newer,
                None => self.oldest = newer,
            }
            let newest = self.newest;
            let entry = &mut self.entries[at as usize];
            (entry.newer, entry.older) = (NONE, newest);
            self.append(at);
        }
        self.entries[at as usize].expires = now + TIME_WAIT;
    }
}
