//! Memory that is not a pool's, on loan to packets: a page of a file on its way to a peer.
//!
//! A loan is a block whose header lies on the heap, beside whoever keeps the memory. It is
//! full from the start and is never written through its slices, so headers go in front of it
//! in a buffer of their own. The storage is dropped with the last slice.

use alloc::alloc::{Layout, alloc};
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use base::DeviceAddr;

use crate::mbuf::Mbuf;
use crate::pool::{Block, Home, LENT};

/// Keeps memory for packets to read; what it keeps is given back when it is dropped.
///
/// # Safety
/// What [`memory`](Self::memory) says never changes, and that memory stays readable,
/// initialised and contiguous for a device at [`device`](Self::device) until the storage is
/// dropped. It has fewer than 1 GiB. Nobody holds a `&mut` to it; see the crate's **Unsteady**.
pub unsafe trait ExternalStorage: Send + Sync + 'static {
    /// The memory.
    fn memory(&self) -> NonNull<[u8]>;

    /// What a device calls its first byte.
    fn device(&self) -> DeviceAddr;
}

/// The header comes first, so that a pointer to it is one to the loan.
#[repr(C)]
struct Loan<K> {
    block: Block,
    storage: K,
}

impl Mbuf {
    /// All the memory of `storage`; `None` if the heap is exhausted.
    pub fn lent<K: ExternalStorage>(storage: K) -> Option<Self> {
        let memory = storage.memory();
        let len = memory.len() as u32;
        let block = Block {
            refs: AtomicU32::new(LENT | 1),
            capacity: len,
            data: memory.cast(),
            device: storage.device(),
            home: Home::Loan(end::<K>),
            next: UnsafeCell::new(None),
        };
        // SAFETY: a loan is not empty: it has a header.
        let place = unsafe { alloc(Layout::new::<Loan<K>>()) };
        let loan = NonNull::new(place.cast::<Loan<K>>())?;
        // SAFETY: fresh memory of the right layout. Live: the storage is in it, and `end` alone
        // drops both.
        unsafe {
            loan.write(Loan { block, storage });
            Some(Self::of_loan(loan.cast(), len))
        }
    }
}

/// Ends a loan of a `K`.
///
/// # Safety
/// `block` is the header of a `Loan<K>` and has no `Mbuf` left (Counted).
unsafe fn end<K: ExternalStorage>(block: NonNull<Block>) {
    // SAFETY: made in `lent` by the allocator and with the layout of a box.
    drop(unsafe { Box::from_raw(block.cast::<Loan<K>>().as_ptr()) });
}
