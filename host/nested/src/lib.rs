//! A Linux with KVM inside an emulated machine, so that KVM can be tried where the processor
//! does not virtualise.
//!
//! # Idea
//! QEMU's translator emulates a processor that virtualises (`-cpu max` has SVM with nested
//! paging). Debian's Linux runs on it as the *host*, with KVM, Debian's own QEMU and a shell at
//! its console; in that QEMU the *guests* run, each of them an image that `sietch run` would
//! boot. Counts of exits are those of a real machine. Times are not: each switch
//! between host and guest costs the translator its cache of translated addresses.
//!
//! ```text
//! this program ── COM1 ──▶ shell of the host ──▶ QEMU ──▶ guest (Sietch or Linux)
//!                             │ nested0, 10.0.2.2        10.0.2.15
//! ```
//!
//! The host is built once for several guests, because its start takes most of a minute.
//!
//! Not here: what is measured or tested, and how KVM counts (`benches/kvm`).
#![forbid(unsafe_code)]

mod guest;
mod host;

pub use guest::{Guest, System};
pub use host::{Host, prepare};
