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

mod alone;
pub mod counter;
pub mod echo;
mod guest;
mod linux;
pub mod names;
mod one_cpu;
pub mod page;
mod program;
mod table;

pub use alone::run_alone;
pub use guest::{Guest, System};
pub use linux::Kernel;
pub use one_cpu::OneCpu;
pub use program::{build, dynamic, dynamic_server, example, library, server, tool};
pub use table::{Better, Table, median, shown};

use qemu::namespace;

/// Where built programs and the machine's files go.
pub const OUTPUT: &str = "build/bench";

/// Prepares Linux as a guest, while packages can still be had, then starts this program again in
/// a namespace of its own, if it is not in one yet, and makes the namespace's interfaces.
pub fn set_up(kernels: &[Kernel]) -> Result<(), String> {
    kernels.iter().try_for_each(|kernel| kernel.prepare())?;
    namespace::enter();
    match namespace::set_up() {
        true => Ok(()),
        false => Err("a network namespace with a tap interface needs root: run as root.".into()),
    }
}
