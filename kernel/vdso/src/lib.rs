//! The vDSO: a small shared object that the kernel maps into every program, so that
//! reading the clock is a function call.
//!
//! Two programs share one layout. `user` is the code that programs run; it is compiled
//! on its own by the build script. This crate gives the kernel the linked [`IMAGE`] and the
//! [`field`]s of the data page, which lies in the page before the image.
//!
//! The kernel makes `SEQUENCE` odd, changes the rest, and makes it even again; a reader
//! that saw an odd or a changed number starts anew.
#![no_std]
#![forbid(unsafe_code)]

#[path = "user/field.rs"]
pub mod field;

/// The shared object, to be mapped as it is, right after the data page.
pub const IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));
