//! Folders of the host (`sietch run -v`), by the 9P protocol.
//!
//! ```text
//! fs_host::Node   an inode as the kernel has it, with its pages
//!     └── inode.rs   its fid, and the open one: names, bytes     make.rs   new ones     attributes.rs
//!             └── volume.rs   fids, nodes by identity
//!                     └── link.rs   the protocol, on fs_host's link: a request under way, its thread asleep
//!                             └── ninep::Channel   the device's driver
//! ```
//!
//! With the option `immutable` the folder stays as it is as long as it is mounted, and is only read.
//!
//! Lock order: an inode's `open`, then spin locks; requests are never made under a spin lock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod attributes;
mod inode;
mod link;
mod make;
mod volume;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::sync::Spin;
use ninep::Channel;
use sync::{Error, Result};

use link::{Carried, Link};
use vfs::FileSystem;
use vfs::kinds::{self, Kind};
use volume::Volume;

/// The channels of all volumes. They are the machine's devices; a mount picks one by its tag.
static LINKS: Spin<Vec<Arc<Link>>> = Spin::new(Vec::new());

/// Takes a volume's channel, whose interrupt raises `Softirq::Volume`; at boot.
pub fn attach(channel: Box<dyn Channel + Send>) {
    let link = Arc::new(Link::new(Carried(channel)));
    LINKS.lock().push(link.clone());
    fs_host::attach(link);
}

fn links() -> Vec<Arc<Link>> {
    LINKS.lock().clone()
}

/// The options of mount(2); the volume decides all of it but the last.
const OPTIONS: &[&str] = &[
    "trans", "version", "msize", "access", "cache", "uname", "aname", "debug", "dfltuid",
    "dfltgid", "nodevmap", "posixacl", "noxattr", IMMUTABLE,
];
/// This one is ours.
const IMMUTABLE: &str = "immutable";

/// Makes the kind known to mount(2). Once, before the root is filled.
pub fn init() {
    kinds::register(Kind {
        name: "9p",
        nodev: true,
        options: OPTIONS,
        make,
    });
}

/// The file system of the volume called `tag`.
fn make(tag: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let link = links().into_iter().find(|link| link.is_called(tag));
    let mut options = options.split(|byte| *byte == b',');
    let is_immutable = options.any(|option| option == IMMUTABLE.as_bytes());
    Ok(Volume::open(link.ok_or(Error::WrongDevice)?, is_immutable)?)
}
