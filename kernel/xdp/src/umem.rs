//! The program's memory, pinned.

use alloc::vec::Vec;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::Page;
use mbuf::{Chain, Mbuf};
use mm::pinned::{Budget, Held};
use mm::{garbage, user};
use net::packet_pool;
use sync::{Error, Result};
use xdp::{Descriptor, UmemRequest};

/// Bytes kept free in front of a frame, for a VLAN's tag and a device's header: without them each frame
/// would be a chain of buffers.
const HEADROOM: usize = 64;

/// The limit is on what all sockets pin together: memory is the machine's.
static PINNED: Budget = Budget::new(4);

/// See the module. Its pages live as long as it does, whatever the program unmaps.
pub struct Umem {
    /// Its shape.
    pub geometry: xdp::Umem,
    pages: Vec<Page>,
    _held: Held,
}

impl Drop for Umem {
    /// Whoever has it last may be at the end of a card's batch.
    fn drop(&mut self) {
        garbage::discard(core::mem::take(&mut self.pages));
    }
}

impl Umem {
    /// Pins what the running program asks for. May block.
    ///
    /// Errors: `Invalid` for a shape that cannot be, `NoBuffers` beyond a limit, those of
    /// `AddressSpace::pin`.
    pub fn new(request: &UmemRequest) -> Result<Self> {
        let geometry = xdp::Umem::check(request).map_err(|_| Error::Invalid)?;
        let bytes = geometry.bytes().next_multiple_of(PAGE_BYTES as u64);
        let held = PINNED.hold(bytes as usize / PAGE_BYTES, Error::NoBuffers)?;
        let pages = user::space().pin(VirtAddr(request.address), bytes)?;
        Ok(Self {
            geometry,
            pages,
            _held: held,
        })
    }

    /// The page that `at` lies in, and where.
    fn place(&self, at: u64) -> Option<(&Page, usize)> {
        let page = self.pages.get(at as usize / PAGE_BYTES)?;
        Some((page, at as usize % PAGE_BYTES))
    }

    /// Copies a frame to `at`, from where a chunk has room for it.
    pub fn store(&self, at: u64, frame: &Chain) {
        let Some((page, mut offset)) = self.place(at) else {
            return;
        };
        for bytes in frame.slices() {
            page.write(offset, bytes);
            offset += bytes.len();
        }
    }

    /// A copy of a frame in packet buffers; `None` if there are none.
    pub fn load(&self, frame: Descriptor) -> Option<Chain> {
        let (page, mut offset) = self.place(frame.address)?;
        let mut left = frame.len as usize;
        let mut chain = Chain::new();
        let mut headroom = HEADROOM;
        while left != 0 {
            let mut part = packet_pool().alloc()?;
            part.reserve(core::mem::take(&mut headroom));
            let count = fill(&mut part, page, offset, left)?;
            chain.push_back(part);
            offset += count;
            left -= count;
        }
        Some(chain)
    }
}

/// Copies as much of a page as `part` has room for.
fn fill(part: &mut Mbuf, page: &Page, offset: usize, bytes: usize) -> Option<usize> {
    let count = bytes.min(part.tailroom());
    page.read(offset, part.extend(count)?);
    Some(count)
}
