//! What a disk may have on its medium after its power was cut.
//!
//! # Model
//! A write is in the disk's cache when it ends. The cache reaches the medium sector by sector, in any
//! order and in part; a flush brings out all that is in it, a forced write itself and nothing else. So
//! after a cut each sector holds any of its versions since the last flush, or the one from before:
//! that is what lost, reordered and torn writes look like.
//!
//! # What is tried
//! [`Cache::pass`] goes through a history event by event. After each event there is the image of a
//! disk that wrote everything in order; and where the cache is fullest, just before a flush or behind
//! a forced write, the images that [`Cache::fates`] lists. Subsets of an emptier cache are among them.

use crate::medium::{Medium, Sector};
use crate::random::Random;

/// Something that a disk was asked for and has ended.
#[derive(Clone, Debug)]
pub enum Event {
    /// Sectors with their new bytes.
    Write {
        /// Numbers and bytes.
        pieces: Vec<(u64, Sector)>,
        /// Whether it is on the medium before it ends.
        is_forced: bool,
    },
    /// All that has ended is on the medium.
    Flush,
}

impl Event {
    /// Whether it leaves something on the medium for good.
    pub fn is_ordering(&self) -> bool {
        !matches!(
            self,
            Self::Write {
                is_forced: false,
                ..
            }
        )
    }
}

/// Which of the writes in the cache reach the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// All.
    All,
    /// None.
    Nothing,
    /// The last one before the others.
    LastOnly,
    /// All but one, the how manieth.
    Without(usize),
    /// Each sector by chance.
    Torn(u64),
}

/// A disk's medium and its cache.
#[derive(Clone)]
pub struct Cache {
    durable: Medium,
    /// Sectors by the number of their write.
    pending: Vec<(usize, u64, Sector)>,
    writes: usize,
}

impl Cache {
    /// An empty cache.
    pub fn new(durable: Medium) -> Self {
        Self {
            durable,
            pending: Vec::new(),
            writes: 0,
        }
    }

    /// One event more.
    pub fn pass(&mut self, event: &Event) {
        match event {
            Event::Flush => {
                for (_, sector, bytes) in self.pending.drain(..) {
                    self.durable.put(sector, bytes);
                }
                self.writes = 0;
            }
            Event::Write {
                pieces,
                is_forced: false,
            } => {
                let pieces = pieces.iter().cloned();
                self.pending
                    .extend(pieces.map(|(sector, bytes)| (self.writes, sector, bytes)));
                self.writes += 1;
            }
            Event::Write {
                pieces,
                is_forced: true,
            } => {
                let is_older = |sector: u64| pieces.iter().any(|piece| piece.0 == sector);
                self.pending.retain(|(_, sector, _)| !is_older(*sector));
                for (sector, bytes) in pieces {
                    self.durable.put(*sector, bytes.clone());
                }
            }
        }
    }

    /// What is tried besides [`Fate::All`]; `torn` of them tear writes.
    pub fn fates(&self, torn: usize, random: &mut Random) -> Vec<Fate> {
        let mut fates = Vec::new();
        if self.pending.is_empty() {
            return fates;
        }
        fates.push(Fate::Nothing);
        if self.writes > 1 {
            fates.extend([Fate::LastOnly, Fate::Without(random.below(self.writes))]);
        }
        if self.pending.len() > 1 {
            fates.extend((0..torn).map(|_| Fate::Torn(random.bits())));
        }
        fates
    }

    /// The medium after the cut.
    pub fn after(&self, fate: Fate) -> Medium {
        let mut random = Random::new(match fate {
            Fate::Torn(seed) => seed,
            _ => 0,
        });
        let mut survives = |write: usize| match fate {
            Fate::All => true,
            Fate::Nothing => false,
            Fate::LastOnly => write + 1 == self.writes,
            Fate::Without(lost) => write != lost,
            Fate::Torn(_) => random.once_in(2),
        };
        let mut medium = self.durable.clone();
        for (write, sector, bytes) in &self.pending {
            if survives(*write) {
                medium.put(*sector, bytes.clone());
            }
        }
        medium
    }
}
