//! Contiguous memory for devices: the only place that turns frames into a
//! [`hal::DmaBuf`], and only an [`Extent`] of them.
//!
//! Write-back memory is used through the direct map. Memory of another type is mapped a
//! second time, and its lines are flushed from the cache before; nobody touches it
//! through the direct map while it has that type. The kernel's mappings are never
//! taken away, so such memory, freed, waits for the next request of its type instead
//! of going back to the allocator.

use alloc::vec::Vec;
use core::ptr::NonNull;

use base::{DeviceAddr, PAGE_BYTES, PhysAddr};
use frames::{Extent, PAGES_MAX, Reach};
use hal::caching::{Caching, MemoryType};
use hal::{DmaBuf, DmaError, DmaRelease, DmaRequest, DmaSource};

use super::kernel_map::{COMBINING, DEVICE};
use super::remapping::DmaMemory;
use super::{Page, device, direct, ram};
use crate::sync::Spin;

/// Extents that were out of a device's reach and are kept aside during one search.
const REJECTS_MAX: usize = 32;

impl DmaSource for DmaMemory {
    fn dma_alloc<M: MemoryType>(&self, request: &DmaRequest) -> Result<DmaBuf<M>, DmaError> {
        request.check()?;
        let memory = match M::CACHING {
            Caching::WriteBack => direct(*self, request)?,
            caching => remapped(*self, caching, request)?,
        };
        let bytes = request.bytes();
        let memory = memory.ok_or(DmaError::OutOfMemory { bytes })?;
        Ok(memory.honouring(request))
    }
}

/// Contiguous zeroed memory that meets `request`, for a program: page by page, each of
/// which goes back to the allocator with its last mapping. To be mapped as `caching` says;
/// the cache holds nothing of it.
pub fn contiguous_pages(request: &DmaRequest, caching: Caching) -> Result<Vec<Page>, DmaError> {
    request.check()?;
    let mut rest = Some(extent(request, |pages, _| ram::alloc_user_extent(pages))?);
    let mut pages = Vec::new();
    while let Some(extent) = rest.take() {
        let (first, others) = match extent.split(1) {
            Ok((first, others)) => (first, Some(others)),
            Err(last) => (last, None),
        };
        rest = others;
        let page = Page::from_frame(first.into_parts().0);
        page.zero(0..PAGE_BYTES);
        if caching != Caching::WriteBack {
            // SAFETY: **Direct**: the page's frame is mapped there.
            unsafe { arch::caching::flush(direct::pointer(page.phys()), PAGE_BYTES) };
        }
        pages.push(page);
    }
    Ok(pages)
}

/// Contiguous zeroed memory that meets `request`, and where it lies: a device behind an IOMMU sees it at `device`, by a table that
/// the caller rules. The caller retires it when the device sees it no more.
pub fn seen_at<M: MemoryType>(
    request: &DmaRequest,
    device: DeviceAddr,
) -> Result<(DmaBuf<M>, PhysAddr), DmaError> {
    request.check()?;
    let bytes = request.bytes();
    if M::CACHING != Caching::WriteBack {
        return Err(DmaError::OutOfMemory { bytes });
    }
    let extent = extent(&DmaRequest::new(bytes, PAGE_BYTES), kernel_frames)?;
    let (start, base) = (extent.base(), direct::frame_pointer(extent.first()));
    let memory = buffer(
        (DmaMemory::Untranslated, device),
        extent,
        base,
        release_direct,
        ram::free_extent,
    );
    let memory = memory.ok_or(DmaError::OutOfMemory { bytes })?;
    Ok((memory.honouring(request), start))
}

/// A way to the frames: that many, in this reach.
type Alloc = fn(u64, Reach) -> Option<Extent>;

/// Frames for the kernel; a single one comes from the CPU's cache, in whatever order that
/// has them.
fn kernel_frames(pages: u64, reach: Reach) -> Option<Extent> {
    if pages == 1 && reach == Reach::Any {
        let frame = ram::alloc_frame()?;
        return Some(Extent::from_parts(frame.into_number(), 1));
    }
    ram::alloc_extent(pages, reach)
}

/// Contiguous frames that meet `request`, by way of `alloc`.
fn extent(request: &DmaRequest, alloc: Alloc) -> Result<Extent, DmaError> {
    let bytes = request.bytes();
    let pages = bytes.div_ceil(PAGE_BYTES) as u64;
    // A block of the buddy is aligned to its size, so alignment is bought with size; what
    // is beyond the wanted pages goes back.
    let aligned = pages.max((request.natural_align() / PAGE_BYTES) as u64);
    if aligned > PAGES_MAX {
        return Err(DmaError::TooLarge { bytes });
    }
    let reach = match request.limit() {
        Some(limit) if limit.0 <= 1 << 32 => Reach::Low,
        _ => Reach::Any,
    };
    let mut rejects = Vec::new();
    let found = loop {
        let extent = match alloc(aligned, reach) {
            Some(extent) => extent,
            None if rejects.is_empty() => break Err(DmaError::OutOfMemory { bytes }),
            None => break Err(out_of_reach(request)),
        };
        if request.is_met_by(DeviceAddr(extent.base().0)) {
            break Ok(shortened(extent, pages));
        }
        rejects.push(extent);
        if rejects.len() == REJECTS_MAX {
            break Err(out_of_reach(request));
        }
    };
    rejects.into_iter().for_each(ram::free_extent);
    found
}

fn out_of_reach(request: &DmaRequest) -> DmaError {
    let limit = request.limit().unwrap_or(DeviceAddr(u64::MAX));
    DmaError::OutOfReach { limit }
}

/// The first `pages` pages; the tail goes back.
fn shortened(extent: Extent, pages: u64) -> Extent {
    match extent.split(pages) {
        Ok((wanted, tail)) => {
            ram::free_extent(tail);
            wanted
        }
        Err(whole) => whole,
    }
}

/// Memory through the direct map; `None` if its devices cannot be led there.
fn direct<M: MemoryType>(
    users: DmaMemory,
    request: &DmaRequest,
) -> Result<Option<DmaBuf<M>>, DmaError> {
    let extent = extent(request, kernel_frames)?;
    let base = direct::frame_pointer(extent.first());
    let users = (users, DeviceAddr(extent.base().0));
    Ok(buffer(
        users,
        extent,
        base,
        release_direct,
        ram::free_extent,
    ))
}

/// A buffer of `extent`, which is mapped at `base`, zeroed, and where its devices see it. Where they cannot be led to
/// it, `give_back` gets the extent.
fn buffer<M: MemoryType>(
    (users, device): (DmaMemory, DeviceAddr),
    extent: Extent,
    base: *mut u8,
    release: DmaRelease,
    give_back: impl FnOnce(Extent),
) -> Option<DmaBuf<M>> {
    let bytes = extent.bytes();
    let base = NonNull::new(base)?;
    // SAFETY: **Claim**: the extent is ours, and mapped at `base` by the caller. No device
    // sees what it held before.
    unsafe { base.write_bytes(0, bytes) };
    let (first, _) = users.map(extent, give_back)?.into_parts();
    let claim = users.claim(first);
    // SAFETY: as above, and `hal`'s OWNED: zeroed, page-aligned, given back once by `release`.
    // CONTIGUOUS: an extent's frames follow each other, so do both maps of them, and an IOMMU
    // shows memory in one piece: where it lies, or where the caller of `seen_at` says.
    Some(unsafe { DmaBuf::new(base, bytes, device, release, claim) })
}

fn release_direct(_base: NonNull<u8>, bytes: usize, claim: usize) {
    if let Some(extent) = DmaMemory::take_back(claim, bytes) {
        ram::free_extent(extent);
    }
}

/// Memory that has another type than write-back for good, and is free.
struct Parked {
    caching: Caching,
    extent: Extent,
    base: usize,
}

/// Owned by nobody: its drivers are gone, and the kernel's second mapping of it stays.
static PARKED: Spin<Vec<Parked>> = Spin::new(Vec::new());

/// Memory that is mapped a second time; `None` if it cannot be, or not for its devices.
fn remapped<M: MemoryType>(
    users: DmaMemory,
    caching: Caching,
    request: &DmaRequest,
) -> Result<Option<DmaBuf<M>>, DmaError> {
    let parked = match take_parked(caching, request) {
        Some(parked) => Some(parked),
        None => remap(caching, extent(request, kernel_frames)?),
    };
    let Some(Parked { extent, base, .. }) = parked else {
        return Ok(None);
    };
    let keep = |extent| {
        PARKED.lock().push(Parked {
            caching,
            extent,
            base,
        });
    };
    let release = match caching {
        Caching::WriteCombining => park_combining,
        _ => park_uncached,
    };
    let pointer = core::ptr::with_exposed_provenance_mut(base);
    let users = (users, DeviceAddr(extent.base().0));
    Ok(buffer(users, extent, pointer, release, keep))
}

fn take_parked(caching: Caching, request: &DmaRequest) -> Option<Parked> {
    let pages = request.bytes().div_ceil(PAGE_BYTES) as u64;
    let fits = |parked: &Parked| {
        parked.caching == caching
            && parked.extent.pages() == pages
            && request.is_met_by(DeviceAddr(parked.extent.base().0))
    };
    let mut parked = PARKED.lock();
    let at = parked.iter().position(fits)?;
    Some(parked.swap_remove(at))
}

fn remap(caching: Caching, extent: Extent) -> Option<Parked> {
    let rights = match caching {
        Caching::WriteCombining => COMBINING,
        _ => DEVICE,
    };
    let Some(base) = device::map_high(extent.base(), extent.bytes(), rights) else {
        ram::free_extent(extent);
        return None;
    };
    // SAFETY: **Direct**: the extent's frames are mapped there.
    unsafe { arch::caching::flush(direct::frame_pointer(extent.first()), extent.bytes()) };
    Some(Parked {
        caching,
        extent,
        base: base.expose_provenance(),
    })
}

fn park_combining(base: NonNull<u8>, bytes: usize, claim: usize) {
    park(Caching::WriteCombining, base, bytes, claim);
}

fn park_uncached(base: NonNull<u8>, bytes: usize, claim: usize) {
    park(Caching::Uncached, base, bytes, claim);
}

fn park(caching: Caching, base: NonNull<u8>, bytes: usize, claim: usize) {
    if let Some(extent) = DmaMemory::take_back(claim, bytes) {
        PARKED.lock().push(Parked {
            caching,
            extent,
            base: base.as_ptr().expose_provenance(),
        });
    }
}
