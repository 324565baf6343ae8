//! Bugs that a test plants, one at a time, to see whether the tests find it.
//!
//! # Problem
//! A harness that looks for lost writes and finds none has proven something only if it would have
//! found one. So somebody has to make the mistakes that it is there for: a flush that is skipped, a
//! checksum that is not looked at.
//!
//! # Idea
//! A place that could be wrong asks [`is`] by a sentence that says how:
//! ```
//! # fn flush() {}
//! if !planted::is("a commit block does not wait for its log") {
//!     flush();
//! }
//! ```
//! Without the feature `switch`, which only harnesses ask for, the answer is the constant `false`
//! and the compiler leaves nothing of it; the kernel is built so. With it a thread plants a bug for
//! itself, so that tests may run beside each other.
//!
//! A sentence that no place asks for is found by [`Planted::reached`]: a bug that nothing came by
//! was not tested.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "switch")]
extern crate std;

#[cfg(feature = "switch")]
mod switch;
#[cfg(feature = "switch")]
pub use switch::{Planted, is};

/// Whether this bug is planted: never, in what runs.
#[cfg(not(feature = "switch"))]
#[inline(always)]
pub const fn is(_bug: &str) -> bool {
    false
}
