//! The pages of a file, as `kernel/pagecache` keeps them: by `core/pagecache`, without locks and mappings.

use std::ops::Range;

use base::Instant;
use ext4::Time;
use pagecache::{Failures, Index, Mark};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Pages of one run.
const RUN_PAGES: u64 = 256;

/// A page's bytes.
pub type Page = Box<[u8; PAGE as usize]>;

/// What a machine has in memory of a file.
#[derive(Default)]
pub struct Pages {
    /// By their numbers.
    pub index: Index<Page>,
    /// As programs see it.
    pub size: u64,
    /// When it was changed, if the disk does not know.
    pub modified: Option<Time>,
    /// Since when it has something to be brought down.
    pub listed: Option<Instant>,
    /// Write-backs that failed.
    pub failures: Failures,
    /// What its one open file has heard of them.
    pub heard: u32,
}

/// Pages taken to be brought down.
pub struct Run {
    /// The first.
    pub first: u64,
    /// Their bytes, one after the other.
    pub bytes: Vec<u8>,
    /// How many had room promised.
    pub promised: u64,
}

impl Pages {
    /// Of a file of this size, nothing of which is in memory.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            ..Self::default()
        }
    }

    /// Stores into a page that is there.
    pub fn put(&mut self, page: u64, within: usize, bytes: &[u8]) {
        if let Some(mut old) = self.index.get(page).cloned() {
            old[within..within + bytes.len()].copy_from_slice(bytes);
            self.replace(page, old);
        }
    }

    /// Other bytes for a page, whose marks stay.
    fn replace(&mut self, page: u64, bytes: Page) {
        let marks = [Mark::Dirty, Mark::Promised, Mark::Settled];
        let marks = marks.map(|mark| (mark, self.index.has(page, mark)));
        self.index.insert(page, bytes);
        for (mark, _) in marks.iter().filter(|(_, is_set)| *is_set) {
            self.index.set(page, *mark);
        }
    }

    /// The next run of dirty pages from `from` on; dirty no more.
    pub fn take_run(&mut self, from: u64) -> Option<Run> {
        let run = (self.index).marked_run(Mark::Dirty, from..u64::MAX, RUN_PAGES)?;
        let (mut bytes, mut promised) = (Vec::new(), 0);
        for page in run.clone() {
            self.index.clear(page, Mark::Dirty);
            promised += u64::from(self.index.clear(page, Mark::Promised));
            bytes.extend_from_slice(&self.index.get(page)?[..]);
        }
        Some(Run {
            first: run.start,
            bytes,
            promised,
        })
    }

    /// The file has another size: how many pages that are gone had room promised.
    pub fn resize(&mut self, size: u64) -> u64 {
        self.size = size;
        let within = (size % PAGE) as usize;
        self.put(size / PAGE, within, &[0; PAGE as usize][within..]);
        self.index.clear(size / PAGE, Mark::Settled);
        let gone = self.index.split_off(size.div_ceil(PAGE));
        gone.count(Mark::Promised) as u64
    }

    /// A hole: how many pages that need no room any more had some promised.
    pub fn punch(&mut self, bytes: Range<u64>) -> u64 {
        let mut promised = 0;
        for page in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
            let start = bytes.start.max(page * PAGE) - page * PAGE;
            let end = bytes.end.min((page + 1) * PAGE) - page * PAGE;
            let zeroes = [0; PAGE as usize];
            self.put(page, start as usize, &zeroes[start as usize..end as usize]);
            self.index.clear(page, Mark::Settled);
            if end - start == PAGE {
                self.index.clear(page, Mark::Dirty);
                promised += u64::from(self.index.clear(page, Mark::Promised));
            }
        }
        promised
    }

    /// Memory is short: pages that are on the disk go.
    pub fn give_up(&mut self, may_go: impl Fn(u64) -> bool) {
        let mut next = self.index.next(0);
        while let Some(page) = next {
            if !self.index.has(page, Mark::Dirty) && may_go(page) {
                self.index.remove(page);
            }
            next = self.index.next(page + 1);
        }
    }
}
