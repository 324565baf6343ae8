//! What is alive of each entry, from the log's head to the one that is being gathered.

use alloc::collections::VecDeque;

use planted::is;
use plog::{Log, Place, Sequence};

use crate::file::Dead;

#[derive(Debug)]
struct Entry {
    place: Place,
    /// Bytes of files, and one for each name.
    alive: u32,
}

/// All of them. The last one is being gathered.
#[derive(Debug)]
pub(crate) struct Entries {
    entries: VecDeque<Entry>,
    alive: u64,
    /// Those before the place are of no use, and go when those before the number are durable.
    trimming: Option<(Place, Sequence)>,
}

impl Entries {
    /// Only the one that begins at `place`.
    pub fn new(place: Place) -> Self {
        let entry = Entry { place, alive: 0 };
        Self {
            entries: VecDeque::from([entry]),
            alive: 0,
            trimming: None,
        }
    }

    /// The entry that was the last is at its place; the next begins at `place`.
    pub fn push(&mut self, place: Place) {
        self.entries.push_back(Entry { place, alive: 0 });
    }

    /// The number of the one that is being gathered.
    pub fn gathering(&self) -> Sequence {
        self.entries.back().map_or(0, |last| last.place.sequence())
    }

    fn at(&mut self, sequence: Sequence) -> Option<&mut Entry> {
        let first = self.entries.front()?.place.sequence();
        let at = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.entries.get_mut(at)
    }

    /// Where an entry begins.
    pub fn place(&self, sequence: Sequence) -> Option<Place> {
        let first = self.entries.front()?.place.sequence();
        let at = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.entries.get(at).map(|entry| entry.place)
    }

    /// So much of it is alive.
    pub fn live(&mut self, sequence: Sequence, count: u32) {
        self.alive += u64::from(count);
        if let Some(entry) = self.at(sequence) {
            entry.alive += count;
        }
    }

    /// So much of it is not any more.
    pub fn die(&mut self, dead: Dead) {
        self.alive = self.alive.saturating_sub(dead.count.into());
        if let Some(entry) = self.at(dead.sequence) {
            entry.alive = entry.alive.saturating_sub(dead.count);
        }
    }

    /// What is alive of all of them.
    pub fn alive(&self) -> u64 {
        self.alive
    }

    /// The oldest, of which something is alive.
    pub fn oldest(&self) -> Option<Place> {
        let sealed = self.entries.len().saturating_sub(1);
        let mut entries = self.entries.iter().take(sealed);
        entries
            .find(|entry| entry.alive != 0)
            .map(|entry| entry.place)
    }

    /// How many are in the log.
    pub fn len(&self) -> usize {
        self.entries.len().saturating_sub(1)
    }

    /// Trims those at the head that are of no use. Until which entry must be durable before there is more of it.
    /// `is_gathered`: the last one has records.
    pub fn trim(&mut self, log: &mut Log, is_gathered: bool) -> Option<Sequence> {
        loop {
            if let Some((end, barrier)) = self.trimming {
                let is_early = is("an entry is trimmed before what replaced it is durable");
                if log.durable().sequence() < barrier && !is_early {
                    return Some(barrier);
                }
                if log.trim(end).is_err() {
                    return Some(end.sequence());
                }
                self.forget(end);
            }
            let end = self.useless_end(log)?;
            self.trimming = Some((end, self.gathering() + u64::from(is_gathered)));
        }
    }

    fn forget(&mut self, end: Place) {
        self.trimming = None;
        while let Some(first) = self.entries.front()
            && first.place.sequence() < end.sequence()
        {
            self.entries.pop_front();
        }
    }

    /// Behind the sealed entries at the head of which nothing is alive.
    fn useless_end(&self, log: &Log) -> Option<Place> {
        let sealed = self.entries.len().saturating_sub(1);
        let useless = self.entries.iter().take(sealed);
        let count = useless.take_while(|entry| entry.alive == 0).count();
        let end = self.entries.get(count)?.place;
        (end.sequence() > log.head().sequence()).then_some(end)
    }
}
