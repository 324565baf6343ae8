//! Vector registers of one thread, and which CPU holds them.
//!
//! Invariant **Owner**: a thread's registers are in CPU c exactly if c's area names the
//! thread's context as `fpu_owner` and the context names c in `cpu`; otherwise its memory
//! image is current. `live` says that it ran in user mode since they were last stored, so
//! the image is stale.
//! Only the CPU that runs the thread touches any of this.

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use core::cell::Cell;
use core::ptr::NonNull;

use arch::fpu::{self, ALIGN, LEGACY_BYTES};
use base::VirtAddr;

use super::context::LOAD_FPU;
use crate::mem::{self, Fault};

const CONTROL_WORD: [u8; 2] = 0x037f_u16.to_le_bytes();
const MXCSR: [u8; 4] = 0x1f80_u32.to_le_bytes();
const MXCSR_AT: usize = 24;
/// Where FXSAVE leaves room for software.
const SOFTWARE_AT: usize = 464;
/// x87 and SSE in the header's first byte.
const X87_SSE: u8 = 0b11;
const NO_CPU: u32 = u32::MAX;

/// Bytes of the register image (for `AT_MINSIGSTKSZ` and signal frames).
pub fn area_bytes() -> usize {
    fpu::area_bytes()
}

/// State components that an image may hold, as XCR0 names them (for signal frames).
pub fn features() -> u64 {
    fpu::features()
}

/// The registers' image and where they are.
pub(super) struct Fpu {
    area: NonNull<u8>,
    bytes: usize,
    cpu: Cell<u32>,
    live: Cell<bool>,
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGN).ok()
}

impl Fpu {
    /// Fresh registers, or `None` without memory.
    pub(super) fn new() -> Option<Self> {
        let bytes = fpu::area_bytes();
        // SAFETY: an area is never empty.
        let area = NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })?;
        let mut fresh = Self {
            area,
            bytes,
            cpu: Cell::new(NO_CPU),
            live: Cell::new(false),
        };
        initialise(fresh.image_mut());
        Some(fresh)
    }

    fn image_mut(&mut self) -> &mut [u8] {
        // SAFETY: the area is owned, zeroed at first, and `&mut self` excludes others.
        unsafe { core::slice::from_raw_parts_mut(self.area.as_ptr(), self.bytes) }
    }

    /// The thread leaves its CPU: brings the image up to date.
    #[inline]
    pub(super) fn leave(&self) {
        if self.live.replace(false) {
            self.store();
        }
    }

    fn store(&self) {
        // SAFETY: the area is owned, large enough and aligned; by **Owner** the registers
        // are this thread's.
        unsafe { fpu::save(self.area.as_ptr()) }
    }

    /// The thread arrives on this CPU: true if its registers must be loaded before it
    /// goes to user mode.
    #[inline]
    pub(super) fn arrive(&self, owner: usize, cpu: u32) -> bool {
        let here = arch::area::this().fpu_owner.get() == owner && self.cpu.get() == cpu;
        self.live.set(here);
        !here
    }

    /// Loads the registers of the running thread into its CPU.
    #[cold]
    pub(super) fn load(&self, owner: usize) {
        let area = arch::area::this();
        // SAFETY: the area holds an image that the processor wrote or that is initial.
        unsafe { fpu::restore(self.area.as_ptr()) };
        area.return_work.set(area.return_work.get() & !LOAD_FPU);
        area.fpu_owner.set(owner);
        self.cpu.set(area.id.get());
        self.live.set(true);
    }

    /// Brings the running thread's image up to date and forgets the CPU's copy.
    fn take_back(&self) {
        self.leave();
        self.cpu.set(NO_CPU);
        let area = arch::area::this();
        area.return_work.set(area.return_work.get() | LOAD_FPU);
    }

    /// A copy for a forked thread. The running thread's registers stay where they are.
    pub(super) fn duplicate(&self) -> Option<Self> {
        if self.live.get() {
            self.store();
        }
        let copy = Self::new()?;
        // SAFETY: both areas have `bytes` bytes and are owned by different contexts.
        unsafe { self.area.copy_to_nonoverlapping(copy.area, self.bytes) };
        Some(copy)
    }

    /// Brings the registers of the running thread into its CPU, if they are not there.
    fn bring(&self, owner: usize) {
        if !self.live.get() {
            self.load(owner);
        }
    }

    /// Stores the running thread's registers in the program's memory. The processor leaves
    /// the reserved bytes of the header as they are.
    pub(super) fn save_to_user(&self, owner: usize, to: VirtAddr) -> Result<(), Fault> {
        self.bring(owner);
        mem::save_vectors(to, self.bytes)
    }

    /// Loads the running thread's registers from the program's memory: all of them, or only
    /// x87 and SSE and the others as after reset. After a fault they are what they were,
    /// or after reset.
    pub(super) fn load_from_user(
        &self,
        owner: usize,
        from: VirtAddr,
        all: bool,
    ) -> Result<(), Fault> {
        let bytes = if all { self.bytes } else { LEGACY_BYTES };
        self.reset();
        self.load(owner);
        mem::load_vectors(from, bytes)
    }

    /// Copies the running thread's registers, as an image of [`area_bytes`] bytes, to the start
    /// of `to`. The features that are switched on follow FXSAVE's fields, where Linux tells them
    /// to debuggers.
    pub(super) fn read(&self, to: &mut [u8]) {
        if self.live.get() {
            self.store();
        }
        let len = to.len().min(self.bytes);
        // SAFETY: the area has `bytes` bytes and only the running thread uses it; `to` is
        // another, exclusive one of at least `len`.
        unsafe {
            self.area
                .as_ptr()
                .copy_to_nonoverlapping(to.as_mut_ptr(), len)
        };
        if let Some(place) = to.get_mut(SOFTWARE_AT..SOFTWARE_AT + 8) {
            place.copy_from_slice(&features().to_le_bytes());
        }
    }

    /// Gives the running thread the registers of `image`: all, or those of FXSAVE's format if it
    /// is no longer than that. False, and nothing is changed, if the processor would refuse it.
    pub(super) fn write(&self, image: &[u8]) -> bool {
        if !is_valid(image, self.bytes) {
            return false;
        }
        self.take_back();
        // SAFETY: the area has `bytes` bytes, which `is_valid` has compared, and only the
        // running thread uses it.
        let area = unsafe { core::slice::from_raw_parts_mut(self.area.as_ptr(), self.bytes) };
        area[..image.len()].copy_from_slice(image);
        if image.len() == LEGACY_BYTES && fpu::has_header() {
            area[LEGACY_BYTES] |= X87_SSE;
        }
        true
    }

    pub(super) fn reset(&self) {
        self.take_back();
        // SAFETY: the area has `bytes` bytes and only the running thread uses it.
        let image = unsafe { core::slice::from_raw_parts_mut(self.area.as_ptr(), self.bytes) };
        image.fill(0);
        initialise(image);
    }
}

impl Drop for Fpu {
    fn drop(&mut self) {
        if let Some(layout) = layout(self.bytes) {
            // SAFETY: the area came from the allocator with this layout.
            unsafe { dealloc(self.area.as_ptr(), layout) }
        }
    }
}

/// Whether XRSTOR and FXRSTOR take the image without a fault (Intel SDM volume 1, 13.8.1):
/// reserved bits of MXCSR are clear, no feature is named that is off, the form is the standard
/// one, and the rest of the header is zero.
fn is_valid(image: &[u8], bytes: usize) -> bool {
    let Some(mxcsr) = image.get(MXCSR_AT..).and_then(|rest| rest.first_chunk()) else {
        return false;
    };
    let is_short = image.len() == LEGACY_BYTES;
    if u32::from_le_bytes(*mxcsr) & !fpu::mxcsr_mask() != 0 || !(is_short || image.len() == bytes) {
        return false;
    }
    if is_short || !fpu::has_header() {
        return true;
    }
    let header = &image[LEGACY_BYTES..LEGACY_BYTES + fpu::HEADER_BYTES];
    let (state, rest) = header.split_at(8);
    let unknown = features().to_le_bytes().map(|byte| !byte);
    state.iter().zip(unknown).all(|(byte, off)| byte & off == 0)
        && rest.iter().all(|&byte| byte == 0)
}

/// Writes what the registers hold after reset into a zeroed image.
fn initialise(image: &mut [u8]) {
    image[..CONTROL_WORD.len()].copy_from_slice(&CONTROL_WORD);
    image[MXCSR_AT..MXCSR_AT + MXCSR.len()].copy_from_slice(&MXCSR);
}
