//! Blocks, and the free lists that they return to.
//!
//! A block's header lies in front of its data in the same memory, so that a fixed
//! stride cuts a page into blocks and the header shares a TLB entry with the data.
//! The list is last-in first-out: the block freed last is warm in the cache. Its lock
//! is held for a few instructions and its holder never waits, so waiters just spin. Where
//! several CPUs share a list each has a [`Magazine`] in front of it.

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use base::DeviceAddr;

use crate::magazine::{LOAD_BLOCKS, Magazine};
use crate::mbuf::Mbuf;

/// Bytes of memory that one block takes, header included.
pub const BLOCK_BYTES: usize = 2048;
/// Bytes of data that one block holds: an Ethernet frame with room for a device's header.
pub const BLOCK_CAPACITY: usize = BLOCK_BYTES - HEADER_BYTES;
pub(crate) const HEADER_BYTES: usize = 64;

/// In a count: the block is lent, so that no `Mbuf` ever counts as its only one.
pub(crate) const LENT: u32 = 1 << 31;

const _: () = assert!(size_of::<Block>() == HEADER_BYTES);
const _: () = assert!(BLOCK_CAPACITY >= 1514 + 128, "a frame and its headroom fit");

/// Where packet buffers come from.
pub trait Pool {
    /// An empty buffer that nobody shares, or `None` at the pool's limit. Its data
    /// starts at the front of the block; see [`Mbuf::reserve`]. It may be one of the reserve,
    /// so it is for what passes through: a receive queue's next frame, an acknowledgement.
    fn alloc(&self) -> Option<Mbuf>;
}

#[repr(C, align(64))]
pub(crate) struct Block {
    /// Live `Mbuf`s; zero at home. [`LENT`] besides, if the block is.
    pub(crate) refs: AtomicU32,
    pub(crate) capacity: u32,
    pub(crate) data: NonNull<u8>,
    /// What a device calls `data`.
    pub(crate) device: DeviceAddr,
    pub(crate) home: Home,
    /// The next free block; meaningful only at home, under the list's lock or in a magazine.
    pub(crate) next: UnsafeCell<Option<NonNull<Block>>>,
}

/// Where a block goes when its last `Mbuf` has gone.
#[derive(Clone, Copy)]
pub(crate) enum Home {
    /// To its pool.
    Pool(&'static FreeList),
    /// The loan ends: what this does with the block, which it may be called for once, when no
    /// `Mbuf` is left.
    Loan(unsafe fn(NonNull<Block>)),
}

/// A pool of equal blocks; grows by regions, never shrinks.
///
/// Some of its blocks are a *reserve* for what passes through. What may stay as long as a
/// program or a peer likes ([`alloc_to_queue`](Self::alloc_to_queue)) gets none of it, nor is
/// received data kept while only the reserve is left ([`is_scarce`](Self::is_scarce)). So a
/// frame always finds a buffer to be received in, and what it acknowledges can be freed.
pub struct FreeList {
    locked: AtomicBool,
    first: UnsafeCell<Option<NonNull<Block>>>,
    free: AtomicUsize,
    total: AtomicUsize,
    reserve: AtomicUsize,
    magazines: &'static [Magazine],
    /// Which magazine is the caller's.
    own: fn() -> usize,
}

// SAFETY: `first` and the blocks' `next` are touched only with `locked` held.
unsafe impl Sync for FreeList {}
// SAFETY: the list refers to blocks by pointers that are valid on every thread (Live).
unsafe impl Send for FreeList {}

impl FreeList {
    /// An empty list.
    pub const fn new() -> Self {
        // SAFETY: there is no magazine that anybody could reach.
        unsafe { Self::with_magazines(&[], || 0) }
    }

    /// An empty list with a magazine for each CPU; who has none goes to the list.
    ///
    /// # Safety
    /// `own` never gives two flows of control the same number at the same time, and they use
    /// no other list with these magazines (Own).
    pub const unsafe fn with_magazines(magazines: &'static [Magazine], own: fn() -> usize) -> Self {
        Self {
            magazines,
            own,
            locked: AtomicBool::new(false),
            first: UnsafeCell::new(None),
            free: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            reserve: AtomicUsize::new(0),
        }
    }

    /// From now on so many blocks are the reserve.
    pub fn set_reserve(&self, blocks: usize) {
        self.reserve.store(blocks, Ordering::Relaxed);
    }

    /// Blocks of the reserve.
    pub fn reserve(&self) -> usize {
        self.reserve.load(Ordering::Relaxed)
    }

    /// Whether no more than the reserve is there for every CPU.
    #[inline]
    pub fn is_scarce(&self) -> bool {
        self.free.load(Ordering::Relaxed) <= self.reserve()
    }

    /// A buffer for what waits: `None` while only the reserve is left. (Two CPUs that ask at
    /// once may both take the last one before it.)
    #[inline]
    pub fn alloc_to_queue(&self) -> Option<Mbuf> {
        match self.is_scarce() {
            true => None,
            false => self.alloc(),
        }
    }

    /// Cuts a region of contiguous memory into blocks and adds them; returns how many.
    /// `device` is what a device calls the region's first byte.
    ///
    /// # Safety
    /// `region` is aligned to 64 bytes, initialised, used by nobody else, contiguous
    /// for the device, and stays so forever (Live).
    pub unsafe fn add_region(
        &'static self,
        region: NonNull<u8>,
        bytes: usize,
        device: DeviceAddr,
    ) -> usize {
        assert!(
            region.addr().get().is_multiple_of(HEADER_BYTES),
            "blocks are aligned"
        );
        let count = bytes / BLOCK_BYTES;
        for index in 0..count {
            let offset = index * BLOCK_BYTES;
            // SAFETY: `offset + BLOCK_BYTES <= bytes`, so both pointers lie in the region
            // that the caller gave us, and the header is written where nothing lives.
            unsafe {
                let block = region.add(offset).cast::<Block>();
                block.write(Block {
                    refs: AtomicU32::new(0),
                    capacity: BLOCK_CAPACITY as u32,
                    data: region.add(offset + HEADER_BYTES),
                    device: device + (offset + HEADER_BYTES) as u64,
                    home: Home::Pool(self),
                    next: UnsafeCell::new(None),
                });
                self.push_shared(block);
            }
        }
        self.total.fetch_add(count, Ordering::Relaxed);
        count
    }

    /// Blocks at home, those in magazines included.
    pub fn free(&self) -> usize {
        let in_magazines: usize = self.magazines.iter().map(Magazine::count).sum();
        self.free.load(Ordering::Relaxed) + in_magazines
    }

    /// Blocks that belong to this list, at home or not.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    fn with_first<R>(&self, change: impl FnOnce(&mut Option<NonNull<Block>>) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: `locked` is ours, so this is the only reference to `first`.
        let result = change(unsafe { &mut *self.first.get() });
        self.locked.store(false, Ordering::Release);
        result
    }

    #[inline]
    fn magazine(&self) -> Option<&Magazine> {
        match self.magazines {
            [] => None,
            magazines => magazines.get((self.own)()),
        }
    }

    /// # Safety
    /// `block` belongs to this list and has no `Mbuf` (Counted).
    #[inline]
    unsafe fn push(&self, block: NonNull<Block>) {
        // SAFETY: the caller vouches for the block; the magazine is ours (Own).
        unsafe {
            match self.magazine() {
                Some(magazine) if !magazine.is_full() => magazine.push(block),
                Some(magazine) => self.unload(magazine, block),
                None => self.push_shared(block),
            }
        }
    }

    #[inline]
    fn pop(&self) -> Option<NonNull<Block>> {
        let Some(magazine) = self.magazine() else {
            return self.pop_shared();
        };
        // SAFETY: the magazine is ours (Own).
        unsafe { magazine.pop() }.or_else(|| self.load(magazine))
    }

    /// Fills half of an empty magazine and takes a block of it; `None` if there is none.
    #[cold]
    fn load(&self, magazine: &Magazine) -> Option<NonNull<Block>> {
        self.with_first(|first| {
            let mut moved = 0;
            while moved < LOAD_BLOCKS
                && let Some(block) = *first
            {
                // SAFETY: the block is live (Live) and `next` is ours under the lock, and so is
                // the magazine (Own).
                unsafe {
                    *first = *block.as_ref().next.get();
                    magazine.push(block);
                }
                moved += 1;
            }
            self.count_free(|free| free - moved);
        });
        // SAFETY: the magazine is ours (Own).
        unsafe { magazine.pop() }
    }

    /// Gives half of a full magazine back, and keeps `block` in it.
    ///
    /// # Safety
    /// As for [`push`](Self::push), and the magazine is the caller's.
    #[cold]
    unsafe fn unload(&self, magazine: &Magazine, block: NonNull<Block>) {
        self.with_first(|first| {
            let mut moved = 0;
            // SAFETY: the magazine is the caller's; what it held has no `Mbuf`, is live (Live),
            // and its `next` is ours under the lock.
            unsafe {
                while moved < LOAD_BLOCKS
                    && let Some(old) = magazine.pop()
                {
                    *old.as_ref().next.get() = *first;
                    *first = Some(old);
                    moved += 1;
                }
            }
            self.count_free(|free| free + moved);
        });
        // SAFETY: the caller vouches for both.
        unsafe { magazine.push(block) };
    }

    /// Changes the count of free blocks; under the lock.
    fn count_free(&self, change: impl FnOnce(usize) -> usize) {
        let free = change(self.free.load(Ordering::Relaxed));
        self.free.store(free, Ordering::Relaxed);
    }

    /// # Safety
    /// `block` belongs to this list and has no `Mbuf` (Counted).
    unsafe fn push_shared(&self, block: NonNull<Block>) {
        self.with_first(|first| {
            // SAFETY: the block is live (Live) and `next` is ours under the lock.
            unsafe { *block.as_ref().next.get() = *first };
            *first = Some(block);
            self.count_free(|free| free + 1);
        });
    }

    fn pop_shared(&self) -> Option<NonNull<Block>> {
        self.with_first(|first| {
            let block = (*first)?;
            // SAFETY: the block is live (Live) and `next` is ours under the lock.
            *first = unsafe { *block.as_ref().next.get() };
            self.free
                .store(self.free.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
            Some(block)
        })
    }
}

impl Default for FreeList {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool for FreeList {
    #[inline]
    fn alloc(&self) -> Option<Mbuf> {
        let block = self.pop()?;
        // SAFETY: a popped block is live, at home without an `Mbuf`, and now only ours.
        Some(unsafe { Mbuf::first_of(block) })
    }
}

impl<P: Pool + ?Sized> Pool for &P {
    fn alloc(&self) -> Option<Mbuf> {
        (**self).alloc()
    }
}

/// Sends a block home after its last `Mbuf` has gone.
///
/// # Safety
/// `block` is live and has no `Mbuf` left (Counted).
pub(crate) unsafe fn release(block: NonNull<Block>) {
    // SAFETY: the caller vouches for the block; `home` is where it was made.
    unsafe {
        match block.as_ref().home {
            Home::Pool(list) => list.push(block),
            Home::Loan(end) => end(block),
        }
    }
}
