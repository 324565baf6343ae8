//! Who a thread acts for, and how much it may use.
//!
//! The problem: files, memory and the network ask on each call whether the caller may, and how
//! much it has left. They lie below the threads that hold the answers.
//!
//! The idea: the answers are values of their own. A thread holds [`Credentials`] and a process
//! [`Limits`]; what all processes of a user take together is counted in its [`Account`] and by
//! [`UserShare`]s. Where the running thread has its credentials and limits, whoever makes threads
//! says once, at boot ([`find_by`]); to ask is a call and a load.
//!
//! Not here: how a thread comes by other credentials (`task`), and the numbers of Linux's calls.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod credentials;
mod limits;
mod user_share;

use mach::task::{Current, CurrentPart};
use sync::Slot;

pub use account::{Account, Charge, Counted, LimitReached};
pub use credentials::{
    CAPABILITIES_ALL, CAPABILITY_MAX, Capabilities, Capability, Credentials, IdSet, SECURE_ALL,
    SECURE_KEEP_CAPS, SECURE_LOCKS, SECURE_NO_AMBIENT_RAISE, SECURE_NO_SETUID_FIXUP,
};
pub use limits::{Limit, Limits, Resource, UNLIMITED};
pub use user_share::UserShare;

/// Where the running thread has its credentials, said once at boot by who keeps threads.
static CREDENTIALS: CurrentPart<Slot<Credentials>> = CurrentPart::new();
/// Where it has its limits, likewise.
static LIMITS: CurrentPart<Limits> = CurrentPart::new();

/// Says where the running thread has its credentials and its limits; once at boot.
pub fn find_by(credentials: fn() -> Current<Slot<Credentials>>, limits: fn() -> Current<Limits>) {
    CREDENTIALS.find_by(credentials);
    LIMITS.find_by(limits);
}

/// Who the running thread acts for.
pub fn credentials() -> Current<Slot<Credentials>> {
    CREDENTIALS.get()
}

/// How much of a resource the running thread's process may use.
#[inline]
pub fn limit(resource: Resource) -> u64 {
    match limits::is_limited(resource) {
        true => LIMITS.get().soft(resource),
        false => UNLIMITED,
    }
}
