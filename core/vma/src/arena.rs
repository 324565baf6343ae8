//! Where the nodes of the tree lie: slots with numbers, in chunks.
//!
//! A node is named by the number of its slot, so that the tree needs neither `unsafe` nor
//! an allocation for each area. Chunks never move and are small enough for a heap that
//! has no large contiguous memory left.
//!
//! Invariants:
//! - Slot 0 is in no tree and stands for "none". Its area is empty, its height and
//!   bound are 0, so that a missing child needs no special case. It may be linked
//!   from anywhere, and what its own links say is never read.
//! - Free slots hold empty areas: a stale number finds no address there.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::Area;

/// Nodes of one chunk.
const CHUNK: usize = 16;

/// The number of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u32);

impl Slot {
    /// No slot.
    pub const NONE: Self = Self(0);

    #[inline(always)]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    #[inline(always)]
    pub fn some(self) -> Option<Self> {
        (!self.is_none()).then_some(self)
    }

    #[inline(always)]
    fn place(self) -> (usize, usize) {
        (self.0 as usize / CHUNK, self.0 as usize % CHUNK)
    }
}

/// One area and its place in the tree and in the order of addresses.
#[derive(Clone, Debug)]
pub(crate) struct Node<O> {
    pub area: Area<O>,
    pub up: Slot,
    pub left: Slot,
    pub right: Slot,
    /// The neighbours by address.
    pub before: Slot,
    pub after: Slot,
    /// Nodes on the longest way down, this one included.
    pub height: u32,
    /// Bytes right below the area that others may use.
    pub gap: u64,
    /// No gap in this subtree is wider.
    pub bound: u64,
}

impl<O> Node<O> {
    fn new(area: Area<O>) -> Self {
        Self {
            area,
            up: Slot::NONE,
            left: Slot::NONE,
            right: Slot::NONE,
            before: Slot::NONE,
            after: Slot::NONE,
            height: 0,
            gap: 0,
            bound: 0,
        }
    }
}

/// No memory for more areas; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoMemory;

#[derive(Clone, Debug)]
pub(crate) struct Arena<O> {
    chunks: Vec<Box<[Node<O>; CHUNK]>>,
    /// Free slots, linked by `up`.
    free: Slot,
    spare: usize,
}

impl<O> Arena<O> {
    pub const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: Slot::NONE,
            spare: 0,
        }
    }

    /// Makes sure that `more` calls of [`Arena::put`] find room.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        while self.spare < more {
            self.grow().ok_or(NoMemory)?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let first = self.chunks.len() * CHUNK;
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(CHUNK).ok()?;
        chunk.extend((0..CHUNK).map(|_| Node::new(Area::EMPTY)));
        self.chunks.try_reserve(1).ok()?;
        self.chunks.push(chunk.into_boxed_slice().try_into().ok()?);
        // Slot 0 stays out.
        for slot in (first.max(1)..first + CHUNK).rev() {
            self.set_free(Slot(u32::try_from(slot).ok()?));
        }
        Some(())
    }

    fn set_free(&mut self, slot: Slot) {
        self.get_mut(slot).up = self.free;
        self.free = slot;
        self.spare += 1;
    }

    /// Gives back a part of the memory of an arena that holds no area; false if it has none.
    pub fn shed(&mut self) -> bool {
        (self.free, self.spare) = (Slot::NONE, 0);
        self.chunks.pop().is_some()
    }

    /// Stores an area in a node that is linked to nothing. Room for it was reserved.
    #[inline]
    pub fn put(&mut self, area: Area<O>) -> Slot {
        let slot = self.free;
        let node = self.get_mut(slot);
        let next = core::mem::replace(node, Node::new(area)).up;
        self.free = next;
        self.spare -= 1;
        slot
    }

    /// Frees the slot of a node that nothing links to; its area comes back.
    #[inline]
    pub fn take(&mut self, slot: Slot) -> Area<O> {
        let area = core::mem::replace(&mut self.get_mut(slot).area, Area::EMPTY);
        self.set_free(slot);
        area
    }

    #[inline(always)]
    pub fn get(&self, slot: Slot) -> &Node<O> {
        let (chunk, place) = slot.place();
        &self.chunks[chunk][place]
    }

    #[inline(always)]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Node<O> {
        let (chunk, place) = slot.place();
        &mut self.chunks[chunk][place]
    }
}
