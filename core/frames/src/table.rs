//! From a frame's number to what is known of it: owners, links, and whether it is zero.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::{FrameInfo, FrameNo};

/// Ranges of RAM that one table can describe.
pub const SECTIONS_MAX: usize = 16;
/// Owners that one frame may have. Far above any honest use, and far enough below the
/// used bit that racing increments which are about to be refused can not reach it.
pub(crate) const OWNERS_MAX: u64 = 1 << 40;
/// Frames whose known-zero bits share a word.
const WORD_FRAMES: u64 = 64;

/// More ranges of RAM than [`SECTIONS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySections;

/// The frame has as many owners as can be counted; the request to share it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overshared;

#[derive(Clone, Copy, Debug)]
struct Section {
    first: FrameNo,
    infos: &'static [FrameInfo],
    /// Bit `frame % 64` of word `frame / 64 - first / 64`.
    zeros: &'static [AtomicU64],
}

/// All of RAM: a short list of sections, each an array of frame states and one of
/// known-zero bits.
#[derive(Debug)]
pub struct FrameTable {
    sections: [Section; SECTIONS_MAX],
    len: usize,
}

impl FrameTable {
    /// A table of no RAM.
    pub const fn new() -> Self {
        let none = Section {
            first: 0,
            infos: &[],
            zeros: &[],
        };
        Self {
            sections: [none; SECTIONS_MAX],
            len: 0,
        }
    }

    /// Words of known-zero bits for `frames` frames from `first` on.
    pub const fn zero_words(first: FrameNo, frames: usize) -> usize {
        ((first % WORD_FRAMES) as usize + frames).div_ceil(WORD_FRAMES as usize)
    }

    /// Describes the frames from `first` by `infos`, one each, and `zeros`, words of zeros
    /// at first ([`FrameTable::zero_words`]; where they are missing no frame is ever
    /// known to be zero). Larger sections should come first: they are looked at in the
    /// order of addition.
    pub fn add(
        &mut self,
        first: FrameNo,
        infos: &'static [FrameInfo],
        zeros: &'static [AtomicU64],
    ) -> Result<(), TooManySections> {
        let slot = self.sections.get_mut(self.len).ok_or(TooManySections)?;
        *slot = Section {
            first,
            infos,
            zeros,
        };
        self.len += 1;
        Ok(())
    }

    /// The state of `frame`, or `None` if it is not RAM that this table describes.
    #[inline]
    pub fn info(&self, frame: FrameNo) -> Option<&'static FrameInfo> {
        let first = &self.sections[0];
        match first.infos.get(frame.wrapping_sub(first.first) as usize) {
            Some(info) => Some(info),
            None => self.info_further_on(frame),
        }
    }

    #[cold]
    fn info_further_on(&self, frame: FrameNo) -> Option<&'static FrameInfo> {
        let section = self.section(frame)?;
        section.infos.get((frame - section.first) as usize)
    }

    #[inline]
    fn section(&self, frame: FrameNo) -> Option<&Section> {
        let holds =
            |section: &&Section| frame.wrapping_sub(section.first) < section.infos.len() as u64;
        let first = Some(&self.sections[0]).filter(holds);
        first.or_else(|| self.sections[..self.len].iter().find(holds))
    }

    /// Whether one section describes all of these frames.
    pub(crate) fn describes(&self, first: FrameNo, pages: u64) -> bool {
        self.section(first)
            .is_some_and(|section| first + pages <= section.first + section.infos.len() as u64)
    }

    /// Adds an owner to a frame in use.
    #[inline]
    pub fn share(&self, frame: FrameNo) -> Result<(), Overshared> {
        let info = self.info(frame).ok_or(Overshared)?;
        if info.add_owner() >= OWNERS_MAX {
            info.drop_owner();
            return Err(Overshared);
        }
        Ok(())
    }

    /// Takes an owner away; true if it was the last, and the caller now has to give
    /// the frame back. The used bit stays until the buddy clears it.
    #[inline]
    pub fn release(&self, frame: FrameNo) -> bool {
        let Some(info) = self.info(frame) else {
            return false;
        };
        // An only owner is the caller, so nobody can add one meanwhile.
        if info.owners() == 1 {
            return true;
        }
        let was_last = info.drop_owner() == 1;
        if was_last {
            info.set_used();
        }
        was_last
    }

    /// How many owners a frame in use has; 0 for a frame that is not RAM.
    #[inline]
    pub fn owners(&self, frame: FrameNo) -> u64 {
        self.info(frame)
            .filter(|info| info.is_used())
            .map_or(0, FrameInfo::owners)
    }

    /// What the only owner of a frame in use has noted ([`FrameTable::set_note`]); any number if
    /// it has not.
    #[inline]
    pub fn note(&self, frame: FrameNo) -> Option<u64> {
        let info = self.info(frame).filter(|info| info.is_used())?;
        Some(info.note())
    }

    /// Keeps a number for the only owner of a frame until that gives it back.
    #[inline]
    pub fn set_note(&self, frame: FrameNo, note: u64) {
        if let Some(info) = self.info(frame).filter(|info| info.is_used()) {
            info.set_note(note);
        }
    }

    /// The words that hold the known-zero bits of these frames of one section: the frame
    /// that bit 0 of a word stands for, the word, and the bits that are meant.
    #[inline]
    fn zero_words_of(
        &self,
        first: FrameNo,
        pages: u64,
    ) -> impl Iterator<Item = (FrameNo, &'static AtomicU64, u64)> {
        let end = first + pages;
        let (base, last) = (first / WORD_FRAMES, (end - 1) / WORD_FRAMES);
        let words = self.section(first).and_then(|section| {
            let before = section.first / WORD_FRAMES;
            section
                .zeros
                .get((base - before) as usize..=(last - before) as usize)
        });
        (base..=last)
            .zip(words.unwrap_or(&[]))
            .map(move |(index, word)| {
                let from = if index == base {
                    first % WORD_FRAMES
                } else {
                    0
                };
                let beyond = (index + 1) * WORD_FRAMES;
                let above = beyond.saturating_sub(end);
                (
                    index * WORD_FRAMES,
                    word,
                    u64::MAX << from & u64::MAX >> above,
                )
            })
    }

    /// Records that a free frame holds zeros.
    pub(crate) fn note_zero(&self, frame: FrameNo) {
        if let Some((word, bit)) = self.zero_bit(frame) {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// The first of these free frames that is not known to hold zeros.
    pub(crate) fn first_unknown(&self, first: FrameNo, pages: u64) -> Option<FrameNo> {
        self.zero_words_of(first, pages)
            .find_map(|(base, word, bits)| {
                let unknown = !word.load(Relaxed) & bits;
                (unknown != 0).then(|| base + u64::from(unknown.trailing_zeros()))
            })
    }

    /// Forgets what is known of these frames, since they go into use; returns how many
    /// held zeros.
    #[inline]
    pub(crate) fn forget_zeros(&self, first: FrameNo, pages: u64) -> u64 {
        let forget = |(_, word, bits): (FrameNo, &AtomicU64, u64)| {
            // Read first: usually there is nothing to clear, and a neighbour may have the line.
            match word.load(Relaxed) & bits {
                0 => 0,
                _ => u64::from((word.fetch_and(!bits, Relaxed) & bits).count_ones()),
            }
        };
        self.zero_words_of(first, pages).map(forget).sum()
    }

    /// Tells whether the frame is known to hold zeros, and forgets it.
    #[inline]
    pub(crate) fn take_zero(&self, frame: FrameNo) -> bool {
        let Some((word, bit)) = self.zero_bit(frame) else {
            return false;
        };
        word.load(Relaxed) & bit != 0 && word.fetch_and(!bit, Relaxed) & bit != 0
    }

    /// The known-zero bit of one frame, and the word that holds it.
    #[inline]
    fn zero_bit(&self, frame: FrameNo) -> Option<(&'static AtomicU64, u64)> {
        let section = self.section(frame)?;
        let index = frame / WORD_FRAMES - section.first / WORD_FRAMES;
        let word = section.zeros.get(index as usize)?;
        Some((word, 1 << (frame % WORD_FRAMES)))
    }
}

impl Default for FrameTable {
    fn default() -> Self {
        Self::new()
    }
}
