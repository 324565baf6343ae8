//! Profiles of a machine: what its CPUs do, or what its threads wait for.
//!
//! The kernel writes records into rings in its memory and says on its log where they are
//! ([`announcement`]). QEMU copies that memory out while the machine runs ([`remote`]); the
//! program is not asked and the kernel does nothing for it. Each record is kept for a moment,
//! until the mappings that explain it have come, and is then turned into names
//! ([`collector`]): addresses of the kernel by its debug lines ([`kernel`]), those of programs by
//! their files on this host ([`module`]), whose unwind tables ([`cfi`]) also tell how to get from
//! one frame to the next in the copy of the stack ([`unwind`]). What has the same names is
//! counted together and drawn, or written as text ([`output`]).
//!
//! Not here: the format of rings and records (`core/profile`), when the kernel writes them
//! (`kernel/mach/src/profile`).

mod announcement;
mod cfi;
mod collector;
mod elf;
mod frame;
mod kernel;
mod module;
mod output;
mod recorder;
mod recording;
mod remote;
mod space;
mod symbols;
mod unwind;
mod wakers;
mod wakeup;

pub use output::Format;
pub use recorder::Recorder;
pub use recording::{Recording, Wish};
