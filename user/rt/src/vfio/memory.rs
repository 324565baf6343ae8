//! Memory that a device and the program share.
//!
//! One area, mapped for the device once: packet buffers are its front, and from the rest rings are cut as drivers
//! ask for them. To the device it is one piece ([`FIRST`] and on), whatever pages it lies in. A device that moves blocks has
//! rings there, and behind them memory for blocks.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::{DeviceAddr, PAGE_BYTES};
use hal::caching::MemoryType;
use hal::{DmaBuf, DmaError, DmaRequest, DmaSource, HasDeviceAddr, Span};
use mbuf::{BLOCK_BYTES, FreeList};

use super::abi;
use crate::blocks::{BlockMemory, Buffer};
use crate::mapping::Mapping;

/// The device's address of the first byte; below the range of interrupts, whatever there is.
const FIRST: u64 = 256 << 20;

/// Bytes for rings: more than any driver asks for.
const RINGS_BYTES: usize = 512 << 10;

/// Memory that rings are cut from; see the module.
pub struct DeviceMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// Where the rest begins.
    taken: AtomicUsize,
}

// SAFETY: pages of the program's that only their buffers reach (Mapped).
unsafe impl Send for DeviceMemory {}

/// The memory of a device with so many packet buffers, of which `reserve` are for what passes through.
pub(super) fn share(
    container: BorrowedFd<'_>,
    buffers: usize,
    reserve: usize,
) -> io::Result<(DeviceMemory, &'static FreeList)> {
    let packets = (buffers * BLOCK_BYTES).next_multiple_of(PAGE_BYTES);
    let bytes = packets + RINGS_BYTES;
    let start = map(container, bytes, FIRST)?;
    let list: &'static FreeList = Box::leak(Box::new(FreeList::new()));
    list.set_reserve(reserve);
    // SAFETY: zeroed pages that stay mapped and that nobody else was given (Mapped); the device sees
    // them in one piece.
    unsafe { list.add_region(start, packets, DeviceAddr(FIRST)) };
    let memory = DeviceMemory {
        start,
        bytes,
        taken: AtomicUsize::new(packets),
    };
    Ok((memory, list))
}

/// Memory for rings, and so many bytes for blocks, in whole pages.
pub(super) fn share_blocks(
    container: BorrowedFd<'_>,
    bytes: usize,
) -> io::Result<(DeviceMemory, BlocksForDevice)> {
    let rings = DeviceMemory {
        start: map(container, RINGS_BYTES, FIRST)?,
        bytes: RINGS_BYTES,
        taken: AtomicUsize::new(0),
    };
    let memory = BlockMemory::new(bytes)?;
    let device = FIRST + RINGS_BYTES as u64;
    reach(container, memory.address(), memory.bytes(), device)?;
    let start = NonNull::new(ptr::without_provenance_mut(memory.address()));
    let start = start.ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: hal's OWNED and CONTIGUOUS: pages that stay mapped for as long as `memory` is there, one piece for the
    // device. It is asked where they are and touches none of them.
    let place: DmaBuf = unsafe { DmaBuf::new(start, memory.bytes(), DeviceAddr(device), keep, 0) };
    let all = place.share().dev_addr(0, memory.bytes());
    let all = all.ok_or(io::ErrorKind::InvalidInput)?;
    Ok((rings, BlocksForDevice { memory, all }))
}

/// Memory for blocks, as a device sees it.
pub struct BlocksForDevice {
    memory: BlockMemory,
    all: Span,
}

impl BlocksForDevice {
    /// The memory.
    pub fn memory(&self) -> &BlockMemory {
        &self.memory
    }

    /// So many bytes of a buffer, from its beginning on; `None` if it has fewer, or is of other memory.
    #[inline]
    pub fn span(&self, buffer: &Buffer, bytes: usize) -> Option<Span> {
        let fits = bytes <= buffer.len() && self.memory.has(buffer);
        let part = || self.all.part(buffer.offset() as u32, bytes as u32);
        fits.then(part).flatten()
    }
}

/// Lets the device reach pages of the program's.
fn reach(container: BorrowedFd<'_>, at: usize, bytes: usize, device: u64) -> io::Result<()> {
    let map = abi::MapDma {
        bytes: abi::bytes_of::<abi::MapDma>(),
        flags: abi::MAP_READ_WRITE,
        address: at as u64,
        device_address: device,
        mapped_bytes: bytes as u64,
    };
    // SAFETY: it takes such a block.
    unsafe { abi::set::<{ abi::IOMMU_MAP_DMA }, _>(container, map) }
}

/// Fresh pages that the device reaches at an address.
fn map(container: BorrowedFd<'_>, bytes: usize, device: u64) -> io::Result<NonNull<u8>> {
    let memory = Mapping::anonymous(bytes)?;
    reach(container, memory.start().addr().get(), bytes, device)?;
    let start = memory.start();
    // The device may write to it until the program ends, and its buffers are everywhere.
    std::mem::forget(memory);
    Ok(start)
}

impl DeviceMemory {
    /// Cuts so many bytes from the front of the rest, as the request has it.
    fn take(&self, request: &DmaRequest) -> Option<usize> {
        let align = request.natural_align();
        let place = |taken: usize| {
            let at = taken.checked_next_multiple_of(align)?;
            let end = at.checked_add(request.bytes())?;
            (end <= self.bytes).then_some((at, end))
        };
        let end = |taken| place(taken).map(|(_, end)| end);
        let before = self.taken.fetch_update(Relaxed, Relaxed, end).ok()?;
        place(before).map(|(at, _)| at)
    }
}

impl DmaSource for DeviceMemory {
    fn dma_alloc<M: MemoryType>(&self, request: &DmaRequest) -> Result<DmaBuf<M>, DmaError> {
        request.check()?;
        let bytes = request.bytes();
        let at = self.take(request).ok_or(DmaError::OutOfMemory { bytes })?;
        let device = DeviceAddr(FIRST + at as u64);
        // SAFETY: hal's OWNED and CONTIGUOUS: a part of the area that nobody else was given and that stays
        // mapped; the area is one piece for the device.
        let memory = unsafe { DmaBuf::new(self.start.add(at), bytes, device, keep, 0) };
        Ok(memory.honouring(request))
    }
}

/// Rings are made once: what a driver gives back stays in the area.
fn keep(_: NonNull<u8>, _: usize, _: usize) {}
