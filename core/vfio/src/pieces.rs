//! Pages that lie one behind the other, joined as far as a table of an IOMMU takes them at once.

use crate::Iova;

const PAGE_BYTES: u64 = 4096;
/// What a table maps, and what a large page has.
const LARGE_BYTES: u64 = 2 << 20;

/// Addresses of a device, and where they lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The device's first address.
    pub device: u64,
    /// The physical one.
    pub physical: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// Cuts `iova`, whose pages lie at `frames` one by one, into as few pieces as there can be of which
/// none crosses a border of 2 MiB. Frames beyond its end are left out.
pub fn pieces(iova: Iova, frames: impl Iterator<Item = u64>) -> impl Iterator<Item = Piece> {
    let devices = (iova.start()..).step_by(PAGE_BYTES as usize);
    let count = usize::try_from(iova.bytes() / PAGE_BYTES).unwrap_or(usize::MAX);
    let mut pages = devices.zip(frames).take(count).peekable();
    core::iter::from_fn(move || {
        let (device, physical) = pages.next()?;
        let mut bytes = PAGE_BYTES;
        let mut goes_on = |bytes: u64| {
            let next = |page: &(u64, u64)| {
                !page.0.is_multiple_of(LARGE_BYTES) && page.1 == physical + bytes
            };
            pages.next_if(next).is_some()
        };
        while goes_on(bytes) {
            bytes += PAGE_BYTES;
        }
        Some(Piece {
            device,
            physical,
            bytes,
        })
    })
}
