//! One slice of a shared block.

use core::fmt;
use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{Ordering, fence};

use base::DeviceAddr;

use crate::pool::{self, Block, HEADER_BYTES, LENT};

/// More handles than this on one block are a bug; the count must not wrap.
const REFS_MAX: u32 = 1 << 30;

/// In [`Mbuf::place`]: the slice has the right to what is in front of it.
const OWNS_HEAD: u32 = 1;
/// It has the right to what is behind it.
const OWNS_TAIL: u32 = 2;
/// The offset stands above the rights.
const OFFSET_SHIFT: u32 = 2;

/// A slice of a block of contiguous memory; `Clone` shares the bytes.
///
/// Two words, for it is moved often: from ring to chain, from chain to queue.
pub struct Mbuf {
    block: NonNull<Block>,
    pub(crate) len: u32,
    /// Where in the block's data it starts, and its rights.
    place: u32,
}

const _: () = assert!(size_of::<Option<Mbuf>>() == 16);

// SAFETY: the count is atomic; shared bytes are only read, and written bytes are reached
// only through `&mut self` under the invariants Head, Tail or sole ownership.
unsafe impl Send for Mbuf {}
// SAFETY: as above; `&Mbuf` gives shared reads and atomic counting only.
unsafe impl Sync for Mbuf {}

impl Mbuf {
    /// # Safety
    /// `block` is live, has no other `Mbuf`, and is no longer on a free list.
    pub(crate) unsafe fn first_of(block: NonNull<Block>) -> Self {
        // SAFETY: the caller vouches that the block is live.
        unsafe { block.as_ref() }.refs.store(1, Ordering::Relaxed);
        Self {
            block,
            len: 0,
            place: OWNS_HEAD | OWNS_TAIL,
        }
    }

    /// # Safety
    /// `block` is live, lent, and counts the `Mbuf` that this makes; `len` is its capacity.
    pub(crate) unsafe fn of_loan(block: NonNull<Block>, len: u32) -> Self {
        Self {
            block,
            len,
            place: 0,
        }
    }

    #[inline]
    fn header(&self) -> &Block {
        // SAFETY: Live: the block exists as long as this `Mbuf` counts in it.
        unsafe { self.block.as_ref() }
    }

    #[inline]
    fn offset(&self) -> usize {
        (self.place >> OFFSET_SHIFT) as usize
    }

    #[inline]
    fn start(&self) -> NonNull<u8> {
        // SAFETY: Inside: the offset lies within the block's data, or at its end.
        unsafe { self.header().data.add(self.offset()) }
    }

    #[inline]
    fn owns(&self, right: u32) -> bool {
        self.place & right != 0 || self.is_unique()
    }

    /// Has, or loses, a right.
    #[inline]
    fn set_right(&mut self, right: u32, has: bool) {
        self.place = self.place & !right | if has { right } else { 0 };
    }

    /// Bytes in this slice.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the slice is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: Inside and Live; who may write these bytes holds `&mut` to a sole owner, and
        // lent ones are Unsteady.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.len as usize) }
    }

    /// The bytes, writable, if nobody shares the block.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: Inside and Live; the only handle of this block is borrowed mutably, and it is
        // not lent.
        Some(unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.len as usize) })
    }

    /// Whether this is the only handle of its block, and the block not lent: then all of it
    /// may be written.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.header().refs.load(Ordering::Acquire) == 1
    }

    /// What a device calls the first byte.
    #[inline]
    pub fn device_addr(&self) -> DeviceAddr {
        self.header().device + self.offset() as u64
    }

    /// Memory that the slice keeps busy, in bytes, however little of it is its own.
    pub fn footprint(&self) -> usize {
        HEADER_BYTES + self.capacity()
    }

    /// Bytes that the whole block holds.
    pub fn capacity(&self) -> usize {
        self.header().capacity as usize
    }

    /// Bytes in front of the slice that [`prepend`](Self::prepend) may take now.
    #[inline]
    pub fn headroom(&self) -> usize {
        if self.owns(OWNS_HEAD) {
            self.offset()
        } else {
            0
        }
    }

    /// Bytes behind the slice that [`extend`](Self::extend) may take now.
    #[inline]
    pub fn tailroom(&self) -> usize {
        if self.owns(OWNS_TAIL) {
            self.capacity() - self.offset() - self.len()
        } else {
            0
        }
    }

    /// Moves the start of an empty buffer forward, to leave room for headers.
    /// Does nothing if bytes are present or the block is smaller.
    #[inline]
    pub fn reserve(&mut self, headroom: usize) {
        if self.len == 0 && headroom <= self.tailroom() {
            // Inside: `tailroom` bytes follow the start within the block.
            self.place += (headroom as u32) << OFFSET_SHIFT;
            self.set_right(OWNS_HEAD, self.is_unique());
        }
    }

    /// Grows the slice forwards by `bytes` and returns them to be written, even if the
    /// bytes behind are shared; `None` if there is no such headroom. The bytes hold old
    /// contents of the block.
    #[inline]
    pub fn prepend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.headroom() {
            return None;
        }
        // Inside: `headroom` bytes precede the start.
        self.place -= (bytes as u32) << OFFSET_SHIFT;
        self.len += bytes as u32;
        // SAFETY: Inside, as above. Head (or sole ownership): no other handle covers them.
        Some(unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), bytes) })
    }

    /// Grows the slice backwards by `bytes` and returns them to be written, even if the
    /// bytes in front are shared; `None` if there is no such tailroom. The bytes hold
    /// old contents of the block.
    #[inline]
    pub fn extend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.tailroom() {
            return None;
        }
        // SAFETY: Inside: `tailroom` bytes follow the end. Tail (or sole ownership): no
        // other handle covers them.
        unsafe {
            let end = self.start().add(self.len as usize);
            self.len += bytes as u32;
            Some(slice::from_raw_parts_mut(end.as_ptr(), bytes))
        }
    }

    /// Copies as much of `bytes` behind the slice as fits; returns how many.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let fits = bytes.len().min(self.tailroom());
        if let Some(room) = self.extend(fits) {
            room.copy_from_slice(&bytes[..fits]);
        }
        fits
    }

    /// Drops up to `bytes` from the front.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        let bytes = bytes.min(self.len as usize);
        // Inside: `bytes <= len`.
        self.place += (bytes as u32) << OFFSET_SHIFT;
        self.len -= bytes as u32;
        if bytes != 0 {
            self.set_right(OWNS_HEAD, false);
        }
    }

    /// Keeps the first `len` bytes; does nothing if there are fewer.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len as usize {
            self.len = len as u32;
            self.set_right(OWNS_TAIL, false);
        }
    }

    /// Takes back the end of what [`extend`](Self::extend) just gave: unlike
    /// [`truncate`](Self::truncate) the right to the tail stays, for nobody shares it yet.
    #[inline]
    pub fn shrink_to(&mut self, len: usize) {
        let may_extend = self.owns(OWNS_TAIL);
        self.truncate(len);
        self.set_right(OWNS_TAIL, may_extend);
    }

    /// Cuts the first `bytes` off into a slice of their own (all, if there are fewer).
    pub fn split_to(&mut self, bytes: usize) -> Self {
        let mut front = self.clone();
        front.set_right(OWNS_HEAD, self.place & OWNS_HEAD != 0);
        front.truncate(bytes);
        self.advance(bytes);
        front
    }

    /// Shares the bytes and hands over the headroom: the clone may be prepended to while
    /// this handle lives. This is how a queued slice becomes a frame without a copy.
    #[inline]
    pub fn share_with_headroom(&mut self) -> Self {
        let may_prepend = self.owns(OWNS_HEAD);
        let mut shared = self.clone();
        shared.set_right(OWNS_HEAD, may_prepend);
        self.set_right(OWNS_HEAD, false);
        shared
    }
}

impl Clone for Mbuf {
    #[inline]
    fn clone(&self) -> Self {
        let before = self.header().refs.fetch_add(1, Ordering::Relaxed);
        assert!(before & !LENT < REFS_MAX, "mbuf block shared too often");
        Self {
            block: self.block,
            len: self.len,
            place: self.place & !(OWNS_HEAD | OWNS_TAIL),
        }
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Mbuf {
    /// What dropping does. Out of line: chains are dropped at many places, and are mostly empty
    /// there, which is then a matter of a few instructions.
    #[inline(never)]
    fn let_go(&self) {
        let refs = &self.header().refs;
        // The only handle needs no atomic decrement: nobody is left to race with.
        if refs.load(Ordering::Acquire) != 1 {
            if refs.fetch_sub(1, Ordering::Release) & !LENT != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        // SAFETY: Counted: this was the last handle of a live block, and it is being dropped.
        unsafe { pool::release(self.block) };
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mbuf({} bytes at {})", self.len, self.device_addr())
    }
}
