//! A bounded stack of pointers to free objects.
//!
//! An array and not a list through the objects: pops do not wait for each other's loads,
//! a push does not touch memory that has grown cold, and a batch moves by copying.

use core::ptr::{self, NonNull};
use core::slice;

/// A free object in a magazine.
pub type Round = NonNull<u8>;

/// The stack; see the crate's invariant **Lent**. Without storage it is empty and full at
/// once, so its first use takes the slow path on either side.
#[repr(C, align(32))]
pub struct Magazine {
    top: *mut Round,
    floor: *mut Round,
    ceiling: *mut Round,
    /// Fewest rounds since [`Magazine::start_interval`].
    low: usize,
}

// SAFETY: Lent: the storage, and Free: the objects, move with the magazine.
unsafe impl Send for Magazine {}

impl Magazine {
    /// A magazine without storage.
    pub const fn new() -> Self {
        Self {
            top: ptr::null_mut(),
            floor: ptr::null_mut(),
            ceiling: ptr::null_mut(),
            low: 0,
        }
    }

    /// Moves the rounds to other storage and returns what was lent before.
    ///
    /// # Safety
    /// `storage` has room for `capacity` rounds and for those that are loaded, and stays
    /// valid until it is taken back by another call.
    pub unsafe fn lend(&mut self, storage: NonNull<Round>, capacity: usize) -> *mut Round {
        let (before, len) = (self.floor, self.len());
        debug_assert!(len <= capacity, "the rounds fit the new storage");
        if len > 0 {
            // SAFETY: Lent: `len` rounds are initialised; the caller says that they fit.
            unsafe { ptr::copy(before, storage.as_ptr(), len) };
        }
        self.floor = storage.as_ptr();
        // SAFETY: both lie in the storage that the caller lends.
        unsafe {
            self.top = self.floor.add(len);
            self.ceiling = self.floor.add(capacity);
        }
        before
    }

    /// Loaded rounds.
    #[inline]
    pub fn len(&self) -> usize {
        (self.top.addr() - self.floor.addr()) / size_of::<Round>()
    }

    /// Whether no round is loaded.
    pub fn is_empty(&self) -> bool {
        self.top == self.floor
    }

    /// Rounds that fit.
    #[inline]
    pub fn capacity(&self) -> usize {
        (self.ceiling.addr() - self.floor.addr()) / size_of::<Round>()
    }

    /// Rounds that still fit.
    pub fn room(&self) -> usize {
        self.capacity() - self.len()
    }

    /// The round that was pushed last.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Round> {
        if self.top == self.floor {
            return None;
        }
        // SAFETY: Lent: there is an initialised round below `top`.
        unsafe {
            self.top = self.top.sub(1);
            Some(*self.top)
        }
    }

    /// Loads a round; `false` if none fits.
    #[inline(always)]
    pub fn push(&mut self, round: Round) -> bool {
        if self.top == self.ceiling {
            return false;
        }
        let top = self.top;
        // SAFETY: Lent: there is room for a round at `top`. It is written last: `top` need
        // not be read again after a store that might have changed it.
        unsafe {
            self.top = top.add(1);
            *top = round;
        }
        true
    }

    /// The loaded rounds, the oldest first.
    pub fn rounds(&self) -> &[Round] {
        match NonNull::new(self.floor) {
            // SAFETY: Lent: `len` rounds are initialised.
            Some(floor) => unsafe { slice::from_raw_parts(floor.as_ptr(), self.len()) },
            None => &[],
        }
    }

    /// Moves up to `count` of the newest rounds to `other`; returns how many fitted.
    pub fn move_newest(&mut self, count: usize, other: &mut Magazine) -> usize {
        let count = count.min(self.len()).min(other.room());
        if count > 0 {
            // SAFETY: Lent, twice: `count` rounds are loaded here and fit there; the
            // storages are distinct.
            unsafe {
                self.top = self.top.sub(count);
                ptr::copy_nonoverlapping(self.top, other.top, count);
                other.top = other.top.add(count);
            }
        }
        self.low = self.low.min(self.len());
        count
    }

    /// Moves up to `count` of the oldest rounds to `other`; returns how many fitted. The
    /// newest stay: their memory is still in the CPU's caches.
    pub fn move_oldest(&mut self, count: usize, other: &mut Magazine) -> usize {
        let count = count.min(self.len()).min(other.room());
        if count > 0 {
            // SAFETY: as in `move_newest`.
            unsafe {
                ptr::copy_nonoverlapping(self.floor, other.top, count);
                other.top = other.top.add(count);
            }
            self.drop_oldest(count);
        }
        count
    }

    /// Forgets the `count` oldest rounds, which the caller has put elsewhere.
    pub(crate) fn drop_oldest(&mut self, count: usize) {
        let left = self.len() - count;
        // SAFETY: Lent: `count + left` rounds are loaded.
        unsafe {
            ptr::copy(self.floor.add(count), self.floor, left);
            self.top = self.floor.add(left);
        }
        self.low = self.low.min(left);
    }

    /// Rounds that nobody needed since the last call, and the start of a new interval.
    pub fn start_interval(&mut self) -> usize {
        let len = self.len();
        core::mem::replace(&mut self.low, len)
    }
}

impl Default for Magazine {
    fn default() -> Self {
        Self::new()
    }
}
