//! Programs in a machine, and cuts of the power of its disk.
//!
//! QEMU records every write and flush of a disk ([`write_log`]). The disk is an image of ext4, and behind
//! it a place for *marks*: when a program's transaction has returned, `tests/harness/power_cut.py`
//! writes a block there, directly. So the record itself says what was acknowledged before which
//! write, and no clock is compared.
//!
//! Each image is mounted by `core/ext4`, judged, and the files that are left are given to the
//! [`oracles`]: the host's `sqlite3`, and readers of our own; or to the host's PostgreSQL ([`postgres`]).

pub mod oracles;
pub mod postgres;
pub mod write_log;

use std::path::Path;

use crate::cuts::{Cache, Event, Fate};
use crate::files::sequence::recover;
use crate::image::{self, Tree};
use crate::medium::Medium;
use crate::random::Random;

/// What ran: a disk as it was, and what was asked of it.
pub struct Recording {
    /// The image of ext4 before.
    before: Medium,
    /// Events on the image.
    events: Vec<Event>,
    /// Marks, each with the number of events before it.
    marks: Vec<(usize, String)>,
}

/// Whether the files that are left keep what was marked.
pub type Oracle = fn(&Tree, &[&str]) -> Result<(), String>;

/// How much to look at.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Images.
    pub images: usize,
    /// One in so many goes to e2fsck.
    pub fsck_every: usize,
    /// What chance begins with.
    pub seed: u64,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Images.
    pub images: usize,
    /// Those that e2fsck saw.
    pub checked: usize,
    /// Those that a program had acknowledged something in.
    pub promised: usize,
}

impl Recording {
    /// Of a disk that had `before` on it, and whose writes are in the file `log`.
    pub fn read(before: Vec<u8>, log: &Path) -> Result<Self, String> {
        let end = before.len() as u64 / 512;
        let (mut events, mut marks) = (Vec::new(), Vec::new());
        for event in write_log::read(log)? {
            match &event {
                Event::Write { pieces, .. } if pieces.iter().any(|piece| piece.0 >= end) => {
                    let text = pieces.iter().flat_map(|piece| piece.1.iter().copied());
                    let text: Vec<u8> = text.take_while(|byte| *byte != 0).collect();
                    marks.push((events.len(), String::from_utf8_lossy(&text).into_owned()));
                }
                _ => events.push(event),
            }
        }
        Ok(Self {
            before: Medium::new(before),
            events,
            marks,
        })
    }

    /// How many writes and flushes there were, and how many marks.
    pub fn len(&self) -> (usize, usize) {
        (self.events.len(), self.marks.len())
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Makes images of ext4 and judges them; the oracle judges their files.
    pub fn judge(&self, effort: &Effort, oracle: Oracle) -> Result<Tally, String> {
        let mut tally = Tally::default();
        self.judge_by(effort, |medium, marks| {
            let tree = judge_one(medium, marks, effort, &mut tally)?;
            oracle(&tree, marks)
        })?;
        Ok(tally)
    }

    /// Makes images, and has each judged with the marks that were written before.
    pub fn judge_by(
        &self,
        effort: &Effort,
        mut judge: impl FnMut(Medium, &[&str]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut random = Random::new(effort.seed);
        let mut cuts: Vec<usize> = (0..effort.images)
            .map(|_| 1 + random.below(self.events.len()))
            .collect();
        cuts.sort_unstable();
        let mut cache = Cache::new(self.before.clone());
        let mut passed = 0;
        for cut in cuts {
            let events = &self.events[passed..cut];
            events.iter().for_each(|event| cache.pass(event));
            passed = cut;
            let mut fates = cache.fates(3, &mut random);
            fates.push(Fate::All);
            let fate = fates[random.below(fates.len())];
            let marks = self.marks.iter().filter(|mark| mark.0 <= cut);
            let marks: Vec<&str> = marks.map(|mark| mark.1.as_str()).collect();
            judge(cache.after(fate), &marks).map_err(|error| {
                format!(
                    "seed {}, cut after {cut} of {} events, {fate:?}: {error}",
                    effort.seed,
                    self.events.len()
                )
            })?;
        }
        Ok(())
    }

    /// The disk as a cut after all events would leave it, recovered by nobody.
    pub fn last_image(&self) -> Vec<u8> {
        let mut cache = Cache::new(self.before.clone());
        self.events.iter().for_each(|event| cache.pass(event));
        cache.after(Fate::Nothing).flatten()
    }
}

/// Whether ext4 is sound on what a cut has left; its files.
fn judge_one(
    medium: Medium,
    marks: &[&str],
    effort: &Effort,
    tally: &mut Tally,
) -> Result<Tree, String> {
    tally.images += 1;
    let (medium, _) = recover(medium)?;
    let tree = image::judge(&medium)?;
    if tally.images.is_multiple_of(effort.fsck_every) {
        tally.checked += 1;
        crate::e2fsck(&medium)?;
    }
    tally.promised += usize::from(!marks.is_empty());
    Ok(tree)
}
