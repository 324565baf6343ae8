//! What a CPU knows of its own TLB.
//!
//! The TLB keeps the translations of the last few spaces apart by tags. For each tag the CPU
//! knows the space and its generation when something was last forgotten: nothing that the
//! space lost up to then is remembered. Tags go round; a space whose tag went to another
//! one starts with nothing remembered.

use crate::{Event, Hardware, Pages};

/// Most tags in use, besides 0, the kernel's. As on Linux: more spaces than these between
/// two visits have pushed the translations out anyway.
pub const TAGS_MAX: usize = 6;
/// Pages up to which a range is forgotten one by one: measured, see "Measured" in
/// `docs/memory.md`.
const ONE_BY_ONE_MAX: u64 = 32;

/// The space behind a tag; number 0 is none.
#[derive(Clone, Copy, Debug)]
struct Tag {
    space: u64,
    generation: u64,
}

/// The state that only its own CPU has.
#[derive(Debug)]
pub struct Local {
    /// Tag 0 is the kernel's table, which never loses anything.
    tags: [Tag; TAGS_MAX + 1],
    /// Tags that the processor offers.
    usable: usize,
    current: usize,
    /// The tag that was given away last.
    latest: usize,
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

impl Local {
    /// A CPU that has the kernel's table loaded and no tags but the one that every CPU has.
    pub const fn new() -> Self {
        let none = Tag {
            space: 0,
            generation: 0,
        };
        Self {
            tags: [none; TAGS_MAX + 1],
            usable: 1,
            current: 0,
            latest: 0,
        }
    }

    /// The processor can tell translations of different spaces apart: use all tags.
    pub fn use_tags(&mut self) {
        self.usable = TAGS_MAX;
    }

    /// The number of the space that is loaded; 0 for the kernel's table.
    #[inline(always)]
    pub fn space(&self) -> u64 {
        self.tags[self.current].space
    }

    pub(crate) fn enter_kernel(&mut self) {
        self.current = 0;
    }

    /// Picks the tag for a space that is to be loaded, and says whether all that is remembered
    /// under it is still valid at `generation`.
    #[inline]
    pub(crate) fn choose(&mut self, space: u64, generation: u64, hw: &impl Hardware) -> bool {
        let known = self.tags[1..=self.usable]
            .iter()
            .position(|tag| tag.space == space);
        let at = known.map_or_else(|| self.next(), |index| index + 1);
        let before = core::mem::replace(&mut self.tags[at], Tag { space, generation });
        self.current = at;
        let keep = known.is_some() && before.generation == generation;
        match (known, keep) {
            (Some(_), true) => hw.count(Event::Kept, 1),
            (Some(_), false) => hw.count(Event::CaughtUp, 1),
            (None, _) => {}
        }
        keep
    }

    fn next(&mut self) -> usize {
        self.latest = self.latest % self.usable + 1;
        self.latest
    }

    #[inline(always)]
    pub(crate) fn tag(&self) -> usize {
        self.current
    }

    /// The loaded space is at `generation`: forgets everything if that is news.
    #[inline]
    pub(crate) fn catch_up(&mut self, generation: u64, hw: &impl Hardware) {
        let tag = &mut self.tags[self.current];
        if tag.generation < generation {
            tag.generation = generation;
            hw.count(Event::CaughtUp, 1);
            forget_all(hw);
        }
    }

    /// The loaded space lost `pages` and so came to `generation`.
    ///
    /// If the CPU missed changes before that, it does not know which: it forgets everything.
    pub(crate) fn forget(&mut self, pages: Pages, generation: u64, hw: &impl Hardware) {
        let tag = &mut self.tags[self.current];
        if tag.generation >= generation {
            return;
        }
        let is_next = tag.generation + 1 == generation;
        tag.generation = generation;
        if !is_next || pages.count > ONE_BY_ONE_MAX {
            return forget_all(hw);
        }
        hw.count(Event::ForgotOne, pages.count);
        let addresses = (0..pages.count).map(|page| pages.first + (page << base::PAGE_SHIFT));
        addresses.for_each(|address| hw.forget_one(address));
    }
}

fn forget_all(hw: &impl Hardware) {
    hw.count(Event::ForgotAll, 1);
    hw.forget_all();
}
