//! The pages of one file, with marks.
//!
//! Pages are kept in chunks of 64, each with a word of bits for the pages that are there and one
//! for each mark. So a run of dirty pages is found by counting bits, and a look at a page is one
//! step of a tree that is 64 times smaller than the file.
//!
//! Invariants: only a page that is there has marks; no chunk is empty; `len` and `counts` are the
//! numbers of bits.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::ops::Range;

/// Pages of a chunk.
pub const CHUNK_PAGES: u64 = 64;

/// What is remembered of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// It has bytes that what is below has not.
    Dirty,
    /// A program may store to it without saying so.
    Stored,
    /// Room below was promised to it.
    Promised,
    /// It has its room below: to write it back takes no more.
    Settled,
    /// It was used since somebody last looked for pages to give up.
    Used,
}

const MARKS: usize = 5;

struct Chunk<P> {
    pages: [Option<P>; CHUNK_PAGES as usize],
    present: u64,
    marks: [u64; MARKS],
}

impl<P> Chunk<P> {
    fn new() -> Self {
        Self {
            pages: [const { None }; CHUNK_PAGES as usize],
            present: 0,
            marks: [0; MARKS],
        }
    }
}

/// The pages of one file by their numbers.
pub struct Index<P> {
    chunks: BTreeMap<u64, Box<Chunk<P>>>,
    len: usize,
    counts: [usize; MARKS],
}

impl<P> Default for Index<P> {
    fn default() -> Self {
        Self {
            chunks: BTreeMap::new(),
            len: 0,
            counts: [0; MARKS],
        }
    }
}

fn place(index: u64) -> (u64, usize) {
    (index / CHUNK_PAGES, (index % CHUNK_PAGES) as usize)
}

/// The bits of a word from `from` on.
fn from_bit(from: usize) -> u64 {
    u64::MAX.checked_shl(from as u32).unwrap_or(0)
}

impl<P> Index<P> {
    /// How many pages there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many have the mark.
    pub fn count(&self, mark: Mark) -> usize {
        self.counts[mark as usize]
    }

    fn chunk(&self, index: u64) -> Option<(&Chunk<P>, usize)> {
        let (key, bit) = place(index);
        Some((self.chunks.get(&key)?, bit))
    }

    /// A page.
    pub fn get(&self, index: u64) -> Option<&P> {
        let (chunk, bit) = self.chunk(index)?;
        chunk.pages[bit].as_ref()
    }

    /// Whether a page has the mark.
    pub fn has(&self, index: u64, mark: Mark) -> bool {
        let chunk = self.chunk(index);
        chunk.is_some_and(|(chunk, bit)| chunk.marks[mark as usize] >> bit & 1 != 0)
    }

    /// A page that is there, to look at several of its marks by one step.
    pub fn slot(&mut self, index: u64) -> Option<Slot<'_, P>> {
        let (key, bit) = place(index);
        let chunk = self.chunks.get_mut(&key)?;
        (chunk.present >> bit & 1 != 0).then_some(Slot {
            chunk,
            counts: &mut self.counts,
            bit,
        })
    }

    /// Marks a page that is there; whether it was not marked before.
    pub fn set(&mut self, index: u64, mark: Mark) -> bool {
        self.slot(index).is_some_and(|mut slot| slot.set(mark))
    }

    /// Takes a mark away; whether it was there.
    pub fn clear(&mut self, index: u64, mark: Mark) -> bool {
        self.slot(index).is_some_and(|mut slot| slot.clear(mark))
    }

    /// Adds a page without marks; gives back the one that was there.
    pub fn insert(&mut self, index: u64, page: P) -> Option<P> {
        let before = self.remove(index);
        let (key, bit) = place(index);
        let chunk = self.chunks.entry(key);
        let chunk = chunk.or_insert_with(|| Box::new(Chunk::new()));
        chunk.pages[bit] = Some(page);
        chunk.present |= 1 << bit;
        self.len += 1;
        before
    }

    /// Takes a page out, with its marks.
    pub fn remove(&mut self, index: u64) -> Option<P> {
        let (key, bit) = place(index);
        let chunk = self.chunks.get_mut(&key)?;
        let page = chunk.pages[bit].take()?;
        for (word, count) in chunk.marks.iter_mut().zip(&mut self.counts) {
            *count -= (*word >> bit & 1) as usize;
            *word &= !(1 << bit);
        }
        chunk.present &= !(1 << bit);
        if chunk.present == 0 {
            self.chunks.remove(&key);
        }
        self.len -= 1;
        Some(page)
    }

    /// Takes the first page out.
    pub fn pop(&mut self) -> Option<P> {
        let first = self.next(0)?;
        self.remove(first)
    }

    /// The first page from `from` on.
    pub fn next(&self, from: u64) -> Option<u64> {
        self.first_bit(from, |chunk| chunk.present)
    }

    fn first_bit(&self, from: u64, word: impl Fn(&Chunk<P>) -> u64) -> Option<u64> {
        let (key, bit) = place(from);
        self.chunks.range(key..).find_map(|(at, chunk)| {
            let skipped = if *at == key { bit } else { 0 };
            let bits = word(chunk) & from_bit(skipped);
            (bits != 0).then(|| at * CHUNK_PAGES + u64::from(bits.trailing_zeros()))
        })
    }

    /// Shows the pages of a range.
    pub fn each(&self, pages: Range<u64>, show: &mut dyn FnMut(u64, &P)) {
        for (key, chunk) in self.chunks.range(pages.start / CHUNK_PAGES..) {
            let first = key * CHUNK_PAGES;
            if first >= pages.end {
                return;
            }
            let mut bits = chunk.present;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let index = first + u64::from(bit);
                if let (true, Some(page)) = (pages.contains(&index), &chunk.pages[bit as usize]) {
                    show(index, page);
                }
            }
        }
    }

    /// The first run of pages with the mark in a range, of at most `most` pages.
    pub fn marked_run(&self, mark: Mark, range: Range<u64>, most: u64) -> Option<Range<u64>> {
        if self.count(mark) == 0 {
            return None;
        }
        let first = self.first_bit(range.start, |chunk| chunk.marks[mark as usize])?;
        let limit = range.end.min(first.saturating_add(most));
        let mut end = first;
        while end < limit {
            let Some((chunk, bit)) = self.chunk(end) else {
                break;
            };
            let ones = (chunk.marks[mark as usize] >> bit).trailing_ones();
            end += u64::from(ones);
            if ones == 0 || (ones as usize) < CHUNK_PAGES as usize - bit {
                break;
            }
        }
        (first < limit).then(|| first..end.min(limit))
    }

    /// Takes out the pages from `at` on, with their marks.
    pub fn split_off(&mut self, at: u64) -> Self {
        let mut gone = Self::default();
        let (key, bit) = place(at);
        if bit != 0 {
            for index in at..(key + 1) * CHUNK_PAGES {
                gone.move_from(self, index);
            }
        }
        gone.chunks
            .append(&mut self.chunks.split_off(&at.div_ceil(CHUNK_PAGES)));
        gone.recount();
        self.recount();
        gone
    }

    fn move_from(&mut self, other: &mut Self, index: u64) {
        let marked = Mark::ALL.map(|mark| other.has(index, mark));
        if let Some(page) = other.remove(index) {
            self.insert(index, page);
            for mark in Mark::ALL.into_iter().filter(|mark| marked[*mark as usize]) {
                self.set(index, mark);
            }
        }
    }

    fn recount(&mut self) {
        (self.len, self.counts) = (0, [0; MARKS]);
        for chunk in self.chunks.values() {
            self.len += chunk.present.count_ones() as usize;
            for (word, count) in chunk.marks.iter().zip(&mut self.counts) {
                *count += word.count_ones() as usize;
            }
        }
    }

    /// Looks at a chunk of pages from `from` on for some to give up: clean ones for which `is_free`
    /// holds and that were not used since the last look. Gives back how many went and
    /// where to look next; `None` behind the last.
    pub fn give_up(&mut self, from: u64, is_free: impl Fn(&P) -> bool) -> Option<(usize, u64)> {
        let (&key, chunk) = self.chunks.range(from / CHUNK_PAGES..).next()?;
        let kept = chunk.marks[Mark::Dirty as usize] | chunk.marks[Mark::Used as usize];
        let mut bits = chunk.present & !kept;
        let first = key * CHUNK_PAGES;
        let mut gone = 0;
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            let index = first + u64::from(bit);
            if self.get(index).is_some_and(&is_free) {
                drop(self.remove(index));
                gone += 1;
            }
        }
        if let Some(chunk) = self.chunks.get_mut(&key) {
            let used = core::mem::take(&mut chunk.marks[Mark::Used as usize]);
            self.counts[Mark::Used as usize] -= used.count_ones() as usize;
        }
        Some((gone, first + CHUNK_PAGES))
    }
}

/// A page that is there.
pub struct Slot<'a, P> {
    chunk: &'a mut Chunk<P>,
    counts: &'a mut [usize; MARKS],
    bit: usize,
}

impl<P> Slot<'_, P> {
    /// The page.
    pub fn page(&self) -> Option<&P> {
        self.chunk.pages.get(self.bit)?.as_ref()
    }

    /// Whether it has the mark.
    pub fn has(&self, mark: Mark) -> bool {
        self.chunk.marks[mark as usize] >> self.bit & 1 != 0
    }

    /// Marks it; whether it was not marked before.
    pub fn set(&mut self, mark: Mark) -> bool {
        let is_new = !self.has(mark);
        self.chunk.marks[mark as usize] |= 1 << self.bit;
        self.counts[mark as usize] += usize::from(is_new);
        is_new
    }

    /// Takes a mark away; whether it was there.
    pub fn clear(&mut self, mark: Mark) -> bool {
        let was_set = self.has(mark);
        self.chunk.marks[mark as usize] &= !(1 << self.bit);
        self.counts[mark as usize] -= usize::from(was_set);
        was_set
    }
}

impl Mark {
    const ALL: [Self; MARKS] = [
        Self::Dirty,
        Self::Stored,
        Self::Promised,
        Self::Settled,
        Self::Used,
    ];
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::vec::Vec;

    use models::for_each_seed;

    use super::{Index, Mark};

    #[test]
    fn it_agrees_with_a_map_and_a_set() {
        for_each_seed(40, |_, mut random| {
            let mut index = Index::default();
            let (mut pages, mut dirty) = (BTreeMap::new(), BTreeSet::new());
            for step in 0..2000u32 {
                let at = u64::from(random.below(400u32));
                match random.below(8) {
                    0..=2 => {
                        assert_eq!(index.insert(at, step), pages.insert(at, step));
                        dirty.remove(&at);
                    }
                    3 | 4 => {
                        let is_new = pages.contains_key(&at) && dirty.insert(at);
                        assert_eq!(index.set(at, Mark::Dirty), is_new);
                    }
                    5 => assert_eq!(index.clear(at, Mark::Dirty), dirty.remove(&at)),
                    6 => {
                        assert_eq!(index.remove(at), pages.remove(&at));
                        dirty.remove(&at);
                    }
                    _ if random.once_in(20) => {
                        let (gone, other) = (index.split_off(at), pages.split_off(&at));
                        let marked = dirty.split_off(&at);
                        assert_eq!(
                            (gone.len(), gone.count(Mark::Dirty)),
                            (other.len(), marked.len())
                        );
                    }
                    _ => {
                        let next = pages.range(at..).next().map(|(at, _)| *at);
                        assert_eq!(index.next(at), next);
                    }
                }
                assert_eq!(
                    (index.len(), index.count(Mark::Dirty)),
                    (pages.len(), dirty.len())
                );
            }
            let mut shown = Vec::new();
            index.each(3..333, &mut |at, page| shown.push((at, *page)));
            let wanted: Vec<_> = pages.range(3..333).map(|(at, page)| (*at, *page)).collect();
            assert_eq!(shown, wanted);
        });
    }

    #[test]
    fn runs_of_marked_pages_are_found_across_chunks() {
        let mut index = Index::default();
        for at in 0..300 {
            index.insert(at, ());
        }
        for at in (60..200).chain(210..211) {
            index.set(at, Mark::Dirty);
        }
        let run = |range, most| index.marked_run(Mark::Dirty, range, most);
        assert_eq!(run(0..300, 1000), Some(60..200));
        assert_eq!(run(0..300, 70), Some(60..130));
        assert_eq!(run(130..140, 70), Some(130..140));
        assert_eq!(run(200..300, 70), Some(210..211));
        assert_eq!(run(211..300, 70), None);
        assert_eq!(run(0..60, 70), None);
        assert_eq!(index.marked_run(Mark::Stored, 0..300, 9), None);
    }

    #[test]
    fn what_was_used_or_is_dirty_or_held_is_not_given_up() {
        let mut index = Index::default();
        for at in 0..10u64 {
            index.insert(at, at);
        }
        index.set(1, Mark::Dirty);
        index.set(2, Mark::Used);
        assert_eq!(index.give_up(0, |page| *page != 3), Some((7, 64)));
        assert_eq!(index.give_up(64, |_| true), None);
        // The second look finds it unused.
        assert_eq!(index.give_up(0, |page| *page != 3), Some((1, 64)));
        assert_eq!(index.len(), 2);
    }
}
