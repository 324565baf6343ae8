//! A file: its name, its length, and where its bytes are.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use planted::is;
use plog::Sequence;

/// The number of a file, never used again in its log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileNumber(pub(crate) u64);

impl FileNumber {
    /// As a number: of the first file 0.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Bytes of a file that lie together in an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// Which entry.
    pub sequence: Sequence,
    /// How far into its bytes.
    pub at: u32,
    /// How many.
    pub bytes: u32,
}

/// Bytes of an entry that are not alive any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dead {
    pub sequence: Sequence,
    pub count: u32,
}

#[derive(Debug, Default)]
pub(crate) struct File {
    /// None if it was removed, or before its name was read.
    pub name: Option<Box<[u8]>>,
    pub size: u64,
    /// By their offsets; they do not overlap.
    extents: BTreeMap<u64, Extent>,
    /// The entry that has its newest name.
    pub named_in: Option<Sequence>,
    /// The entry of its last change.
    pub changed_in: Sequence,
    /// Descriptors that name it: so long it is there without a name.
    pub holders: usize,
}

impl File {
    /// The extent that has the byte at `offset`, and where it begins; or where the next one does.
    pub fn extent_at(&self, offset: u64) -> Result<(u64, Extent), Option<u64>> {
        let before = self.extents.range(..=offset).next_back();
        match before.filter(|(start, extent)| offset - *start < u64::from(extent.bytes)) {
            Some((start, extent)) => Ok((*start, *extent)),
            None => Err(self.extents.range(offset..).next().map(|(start, _)| *start)),
        }
    }

    /// All of them, in order.
    pub fn extents(&self) -> impl Iterator<Item = (u64, Extent)> {
        self.extents.iter().map(|(start, extent)| (*start, *extent))
    }

    /// Has these bytes at `offset` from now on. What was there is told to `dead`.
    pub fn insert(&mut self, offset: u64, extent: Extent, dead: &mut impl FnMut(Dead)) {
        let end = offset + u64::from(extent.bytes);
        // As nearly all are: nothing is there.
        let last = self.extents.last_key_value();
        let is_behind = last.is_none_or(|(at, last)| at + u64::from(last.bytes) <= offset);
        if !is_behind && !is("what is overwritten stays") {
            self.remove(offset, end, dead);
        }
        self.size = self.size.max(end);
        if let Some((start, before)) = self.extents.range_mut(..offset).next_back()
            && *start + u64::from(before.bytes) == offset
            && before.sequence == extent.sequence
            && before.at + before.bytes == extent.at
        {
            before.bytes += extent.bytes;
            return;
        }
        self.extents.insert(offset, extent);
    }

    /// Has no bytes from `start` to `end` any more.
    pub fn remove(&mut self, start: u64, end: u64, dead: &mut impl FnMut(Dead)) {
        self.split(start);
        self.split(end);
        let gone: Vec<u64> = self.extents.range(start..end).map(|(at, _)| *at).collect();
        for at in gone {
            if let Some(extent) = self.extents.remove(&at) {
                dead(Dead {
                    sequence: extent.sequence,
                    count: extent.bytes,
                });
            }
        }
    }

    /// No extent passes `at`.
    fn split(&mut self, at: u64) {
        let Ok((start, extent)) = self.extent_at(at) else {
            return;
        };
        let front = (at - start) as u32;
        if front == 0 {
            return;
        }
        let back = Extent {
            at: extent.at + front,
            bytes: extent.bytes - front,
            ..extent
        };
        self.extents.insert(at, back);
        if let Some(extent) = self.extents.get_mut(&start) {
            extent.bytes = front;
        }
    }

    /// Is so long from now on.
    pub fn set_size(&mut self, size: u64, dead: &mut impl FnMut(Dead)) {
        self.remove(size, u64::MAX, dead);
        self.size = size;
    }

    /// All that it had in the log.
    pub fn forget(&mut self, dead: &mut impl FnMut(Dead)) {
        self.remove(0, u64::MAX, dead);
        if let Some(sequence) = self.named_in.take() {
            dead(Dead { sequence, count: 1 });
        }
    }
}
