//! A counted claim on one frame.

use core::num::NonZeroU32;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::{PAGE_BYTES, PAGE_SHIFT, PhysAddr, VirtAddr};
use frames::{Frame, FrameNo};

use super::device::holds_ram;
use super::kernel_map::LOW_DEVICES_END;
use super::user::{self, Fault};
use super::{direct, ram};

/// One frame of memory, shared by its clones and given back with the last of them.
///
/// Its content may change at any time (another owner, a program that has it mapped), so
/// it is only copied in and out. Offsets and lengths that leave the page are
/// bugs of the caller and panic.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// Frame 0 is never handed out (`setup` leaves out the first MiB).
    frame: NonZeroU32,
}

impl Page {
    #[inline]
    fn of(frame: FrameNo) -> Option<Self> {
        Some(Self {
            frame: NonZeroU32::new(frame as u32)?,
        })
    }

    /// A page with any content: for callers that overwrite all of it.
    #[inline]
    pub fn alloc() -> Option<Self> {
        Self::of(ram::alloc_user_frame()?.into_number())
    }

    /// A page full of zeros.
    #[inline]
    pub fn zeroed() -> Option<Self> {
        Self::of(ram::alloc_user_frame_zeroed()?.into_number())
    }

    /// A new page with the content of `source`.
    pub fn copy_of(source: &Page) -> Option<Self> {
        let page = Self::alloc()?;
        // SAFETY: **Claim** and **Direct**: two different frames that both pages own.
        unsafe {
            page.pointer()
                .copy_from_nonoverlapping(source.pointer(), PAGE_BYTES)
        };
        Some(page)
    }

    /// A page of the boot image, where it lies: a program may map it, but it is only
    /// read. `None` for what does not start at a page or is not RAM kept since boot.
    pub fn of_boot_image(bytes: &'static [u8]) -> Option<Self> {
        let at = bytes.as_ptr().cast_mut();
        if bytes.len() < PAGE_BYTES || !at.addr().is_multiple_of(PAGE_BYTES) {
            return None;
        }
        let frame = direct::frame_of(at)?;
        // The frame is reserved, which counts as an owner: it is never given back.
        ram::table().share(frame).ok()?;
        Self::of(frame)
    }

    /// A page of a device's registers at `at`, which nobody counts. Below 4 GiB only, where
    /// the direct map has devices uncached; `None` for what is RAM, and above.
    pub fn of_device(at: PhysAddr) -> Option<Self> {
        let end = at.page_floor() + PAGE_BYTES as u64;
        let is_device = end.0 <= LOW_DEVICES_END && !holds_ram(at.page_floor(), end);
        Self::of(at.0 >> PAGE_SHIFT).filter(|_| is_device)
    }

    #[inline(always)]
    fn frame(&self) -> FrameNo {
        FrameNo::from(self.frame.get())
    }

    #[inline(always)]
    fn pointer(&self) -> *mut u8 {
        direct::frame_pointer(self.frame())
    }

    #[inline(always)]
    fn part(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= PAGE_BYTES && len <= PAGE_BYTES - offset,
            "outside of the page"
        );
        self.pointer().wrapping_add(offset)
    }

    /// The first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        // SAFETY: **Direct**: the map does not begin at 0.
        unsafe { NonNull::new_unchecked(self.pointer()) }
    }

    /// Whether it is RAM, and no device's registers.
    pub(super) fn is_memory(&self) -> bool {
        ram::table().info(self.frame()).is_some()
    }

    /// Physical address of the first byte.
    pub fn phys(&self) -> PhysAddr {
        PhysAddr(self.frame() << PAGE_SHIFT)
    }

    /// Whether this is the only owner.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.owners() == 1
    }

    /// How many owners the frame has.
    #[inline]
    pub fn owners(&self) -> u64 {
        ram::table().owners(self.frame())
    }

    /// Copies from `offset` into all of `to`.
    #[inline]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let from = self.part(offset, to.len());
        // SAFETY: `part` checked the range; **Claim**: no reference overlaps the frame.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
    }

    /// Copies all of `from` to `offset`.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let to = self.part(offset, from.len());
        // SAFETY: `part` checked the range; **Claim**: no reference overlaps the frame.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) }
    }

    /// Writes zeros over `range`.
    #[inline]
    pub fn zero(&self, range: Range<usize>) {
        let len = range.len();
        let to = self.part(range.start, len);
        // SAFETY: `part` checked the range; **Claim**: no reference overlaps the frame.
        unsafe { to.write_bytes(0, len) }
    }

    /// Writes the word at `offset` (a multiple of 8) at once: readers see all or nothing.
    pub fn store_u64(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Reads the word at `offset` (a multiple of 8) at once.
    pub fn load_u64(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Writes the half word at `offset` (a multiple of 4) at once, after all that was
    /// written before.
    pub fn store_u32(&self, offset: usize, value: u32) {
        self.half_word(offset).store(value, Ordering::Release);
    }

    /// Reads the half word at `offset` (a multiple of 4) at once, before anything that is
    /// read or written afterwards.
    pub fn load_u32(&self, offset: usize) -> u32 {
        self.half_word(offset).load(Ordering::Acquire)
    }

    fn half_word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "half words are aligned");
        let at = self.part(offset, 4).cast();
        // SAFETY: aligned and inside; atomics may be shared with whoever maps the page.
        unsafe { AtomicU32::from_ptr(at) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "words are aligned");
        let at = self.part(offset, 8).cast();
        // SAFETY: aligned and inside; atomics may be shared with whoever maps the page.
        unsafe { AtomicU64::from_ptr(at) }
    }

    /// Copies `len` bytes at `offset` straight to a program.
    #[inline]
    pub fn copy_to_user(&self, offset: usize, len: usize, to: VirtAddr) -> Result<(), Fault> {
        let from = self.part(offset, len);
        // SAFETY: `part` checked the kernel's side; **Claim**.
        unsafe { user::copy_out(from, to, len) }
    }

    /// Copies `len` bytes from a program straight to `offset`.
    #[inline]
    pub fn copy_from_user(&self, offset: usize, len: usize, from: VirtAddr) -> Result<(), Fault> {
        let to = self.part(offset, len);
        // SAFETY: `part` checked the kernel's side; **Claim**.
        unsafe { user::copy_in(to, from, len) }
    }

    /// Gives up the claim for an owner that keeps it as a number (a table's entry).
    #[inline]
    pub(super) fn into_frame(self) -> FrameNo {
        let frame = self.frame();
        core::mem::forget(self);
        frame
    }

    /// Takes up a claim that [`Page::into_frame`] gave up.
    #[inline]
    pub(super) fn from_frame(frame: FrameNo) -> Self {
        match Self::of(frame) {
            Some(page) => page,
            None => unreachable!("**Leaf**: entries hold frames that pages gave"),
        }
    }
}

/// Adds an owner to a frame in use; false if it has too many. A device's is not counted.
#[inline]
pub(super) fn share(frame: FrameNo) -> bool {
    let table = ram::table();
    table.share(frame).is_ok() || table.info(frame).is_none()
}

impl Clone for Page {
    /// One owner more of the same frame.
    #[inline]
    fn clone(&self) -> Self {
        assert!(
            share(self.frame()),
            "2^40 owners of a few bytes each exceed any RAM"
        );
        Self { frame: self.frame }
    }
}

impl Drop for Page {
    #[inline]
    fn drop(&mut self) {
        if ram::table().release(self.frame()) {
            ram::free_frame(Frame::from_number(self.frame()));
        }
    }
}
