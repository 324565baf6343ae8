//! What benchmarks need that set Sietch beside Debian's Linux.
//!
//! Both systems boot on the same machine with the same QEMU flags and the same image, and
//! serve the same client: [`System::boot`] sees to it. The machine's card leads to a tap
//! interface in a network namespace, which [`set_up`] makes. A [`Table`] collects the
//! figures of alternating rounds, so that a busy host disturbs both, and a [`page`] says
//! under what conditions they came about.
//!
//! Not here: what is measured, and with which client.

#![forbid(unsafe_code)]

pub mod echo;
mod guest;
mod linux;
pub mod page;
mod program;
mod table;

pub use guest::{Guest, System};
pub use linux::Kernel;
pub use program::{build, server};
pub use table::{Better, Table};

use qemu::namespace;

/// Where built programs and the machine's files go.
pub const OUTPUT: &str = "build/bench";

/// Starts this program again in a namespace of its own, if it is not in one yet.
pub fn enter_namespace() {
    namespace::enter();
}

/// Makes the namespace's interfaces and prepares Linux as a guest.
pub fn set_up() -> Result<(), String> {
    if !namespace::set_up() {
        return Err("a network namespace with a tap interface needs root: run as root.".into());
    }
    Kernel::Cloud.prepare()
}
