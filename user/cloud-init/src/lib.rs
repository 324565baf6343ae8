//! What a cloud tells a new machine, in cloud-init's words: its name, addresses, keys and files.
//!
//! The problem: one disk is booted by a thousand machines, and each must learn who it is. The words are
//! cloud-init's; its program is written in Python, and the kernel reads neither ISO 9660 nor FAT.
//!
//! The idea: a small static program stands before the real one ([`start`]). A child of its reads the disk
//! labelled `cidata` (the NoCloud seed, [`seed`]) by itself, or asks the metadata service
//! ([`metadata_service`]), makes [`settings`] of the texts ([`reader`]), and applies them by the interfaces that Linux has for it
//! ([`apply`]). Then the first process becomes the real program, as if nothing had been.
//!
//! Invariants:
//! - **No hostages:** a seed is somebody's input. Whatever it holds, the program starts: the child that
//!   reads it may fail, crash or be ended after [`start::PATIENCE`]; the first process itself reads nothing.
//! - **Bounded:** a disk is read through [`disk::Bounded`]; texts have at most [`TEXT_BYTES_MAX`]; what is made of them
//!   has the child's bound of memory ([`apply`]).
//! - **Each time:** the root is in memory, so all is applied at each boot, whatever the instance's number is.
//!
//! Not here: packages, commands, users that the image has not, disks' set-up, gzip and MIME archives of user data;
//! what is asked for and not done is named on standard error.
#![forbid(unsafe_code)]

pub mod apply;
pub mod disk;
pub mod fat;
pub mod http;
pub mod iso9660;
pub mod meta_data;
pub mod metadata_service;
pub mod network_config;
pub mod reader;
pub mod route_socket;
pub mod seed;
pub mod settings;
pub mod start;
pub mod user_data;
pub mod yaml;

/// Bytes of each text, from a disk or a service.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
