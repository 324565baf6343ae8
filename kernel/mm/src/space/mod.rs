//! Memory of programs: address spaces and what they map.
//!
//! The problem: a program maps gigabytes and touches kilobytes; it shares memory with
//! children, files and other programs; any access may be the first.
//!
//! The idea: an [`AddressSpace`] is a map of areas (`vma`: what should be where) and a page
//! table (`mach`: what is there). Calls change the map and only take pages away; pages
//! come in one by one through [`AddressSpace::fault`]. A private page with several owners
//! is mapped read-only and copied at the first store; its last owner stores to it as it is.
//! Files and shared memory are [`MemoryObject`]s that hand out pages.
//!
//! Locking: one spin lock guards the map and every change of the table, so neither waits.
//! A change of much lets the lock go between its pieces ([`change`]).
//! An object may have to wait for a disk: the fault lets the lock go, gets the page, and
//! looks again whether it is still wanted. Whatever a change takes out of the map
//! (it may close a file) is dropped after the lock.
//!
//! Running out of memory is an error of the call or the fault, never a panic.

mod address_space;
mod advice;
mod change;
pub mod commit;
mod fault;
mod file_pages;
mod fork;
mod gone;
mod heap;
mod large;
mod layout;
mod left;
pub mod limits;
mod lock;
mod map;
mod object;
mod pin;
mod populate;
mod relocate;
mod remap;
mod remote;
mod report;
mod run;
mod shared;
mod truncate;
mod window;

pub use address_space::{AddressSpace, leave, release};
pub use advice::Advice;
pub use fault::{Access, FaultError, Reach};
pub use large::LargePolicy;
pub use layout::Layout;
pub use left::close_left;
pub use lock::Locking;
pub use map::{Mapping, Place};
pub use object::{FixedPages, MappedFile, MemoryObject, Object, Page, Sharing, Synced};
pub use populate::Touch;
pub use remap::{Remap, Target};
pub use report::{AreaReport, AreaUsage, Label};
pub use shared::{SharedMemory, count_pages, page_count, uncount_pages};
pub use truncate::{find_spaces_by, forget_beyond, forget_pages, may_be_stored_to, protect_pages};
pub use vma::{Access as Rights, Traits};
pub use window::Window;
