//! Locks and cells that never sleep.
//!
//! A spin lock protects a short section that cannot block. Interrupts are closed in the
//! kernel (see the crate's **Closed**), so no lock masks them; a waiting CPU serves its
//! peers by [`crate::cpu::relax`].

mod lazy;
mod once;
mod spin;

pub use lazy::Lazy;
pub use once::Once;
pub use spin::{Spin, SpinGuard};
