//! The command `sietch`: packs programs, starts machines, shows what they do.
//!
//! `pack` turns a program of this host into an image; `machine_plan` turns flags and
//! the image into a [`qemu::Machine`]; `session` runs it in the foreground and passes
//! on signals and status, and by `streams` what `stdio` found for the program's input and
//! output; `agent` lets others run commands in it; `volumes` are disks that outlive machines; `oci` brings
//! programs that come as container images; `bootable` makes images that a PC boots by itself; `networks` are
//! what machines reach each other by; `state` keeps what
//! `ps`, `logs` and `stop` need; `snapshots` are machines that others go on from.
//! `absent` says after a failure which files the program lacked.
//! `vmm` says how other monitors start a machine.
//! The parts are a library so that tests and benchmarks pack in the same way.

#![forbid(unsafe_code)]

mod absent;
mod agent;
pub mod attach;
pub mod bootable;
pub mod commands;
mod compose;
mod copy;
mod copy_error;
pub mod defaults;
pub mod events;
pub mod failure;
pub mod flags;
pub mod format;
pub mod health;
mod host_programs;
pub mod kernel_file;
mod leftovers;
mod line;
pub mod log;
pub mod machine_plan;
mod memory;
mod networks;
pub mod oci;
pub mod output;
pub mod pack;
mod preload;
mod processes;
pub mod profile;
mod refused;
mod room;
pub mod session;
mod signals;
pub mod snapshots;
pub mod state;
pub mod stdio;
pub mod streams;
pub mod terminal;
mod turn;
mod vmm;
pub mod volumes;
mod wish;
