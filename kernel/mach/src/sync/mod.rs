//! Locks and cells that never sleep.
//!
//! A spin lock protects a short section that cannot block. Interrupts are closed in the
//! kernel (see the crate's **Closed**), so no lock masks them; a waiting CPU serves its
//! peers by [`crate::cpu::relax`].

mod contention;
mod lazy;
mod once;
mod shared;
mod spin;

use core::sync::atomic::{AtomicBool, AtomicUsize};

pub use contention::{Contention, contention};
pub(crate) use contention::{add_cpu, init, nap_in_waits};
pub use lazy::Lazy;
pub use once::Once;
pub use shared::{ReadGuard, ReadMostly, RwSpin, Shared, WriteGuard};
pub use spin::{Spin, SpinGuard};

/// The locks and words of the machine, for the mechanisms of `core/`.
pub struct Native;

impl base::lock::Family for Native {
    type Lock<T> = Spin<T>;
    type Flag = AtomicBool;
    type Count = AtomicUsize;
}

impl base::lock::RwFamily for Native {
    type RwLock<T> = RwSpin<T>;
}
