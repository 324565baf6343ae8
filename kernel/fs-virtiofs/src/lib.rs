//! Folders of the host by virtiofs: FUSE, which a daemon of the host's answers.
//!
//! ```text
//! fs_host::Node   an inode as the kernel has it, with its pages
//!     └── inode.rs   names, bytes, what is open     make.rs   new ones     holes.rs     extended.rs     attributes.rs
//!             └── volume.rs   nodes by identity, what the daemon may forget
//!                     └── link.rs   the protocol, on fs_host's link: a request under way, its thread asleep
//!                             └── fuse::Channel   the device's driver
//! ```
//!
//! The daemon is asked each time, whatever it says of how long its words are valid.
//!
//! Owners, modes and devices are those of the host's inodes. Who may do what is decided here, as on any file system;
//! a request says for whom it is, so that what is made belongs to them, where the daemon may do that.
//!
//! The daemon counts how often it has named a node, and keeps it until it hears that many times of its end. An inode here
//! knows its count, and gives it back when it is dropped; so a file without a name lives as long as it is used.
//!
//! Lock order: an inode's `open`, then spin locks; requests are never made under a spin lock.
//!
//! Not here: locks at the host, O_TMPFILE, DAX.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod attributes;
mod extended;
mod holes;
mod inode;
mod link;
mod make;
mod volume;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use fuse::Channel;
use mach::sync::Spin;
use sync::{Error, Mutex, Result};

use link::{Carried, Link};
use vfs::FileSystem;
use vfs::kinds::{self, Kind};
use volume::{Tree, Volume};

/// A device, and what is mounted of it.
struct Folder {
    link: Arc<Link>,
    /// A second mount has the same file system: INIT would end the first one's nodes.
    tree: Mutex<Weak<Tree>>,
}

/// The machine's devices; a mount picks one by its tag.
static FOLDERS: Spin<Vec<Arc<Folder>>> = Spin::new(Vec::new());

/// Takes a folder's channel, whose interrupt raises `Softirq::Volume`; at boot.
pub fn attach(channel: Box<dyn Channel + Send>) {
    let link = Arc::new(Link::new(Carried(channel)));
    FOLDERS.lock().push(Arc::new(Folder {
        link: link.clone(),
        tree: Mutex::new(Weak::new()),
    }));
    fs_host::attach(link);
}

/// Makes the kind known to mount(2). Once, before the root is filled.
pub fn init() {
    kinds::register(Kind {
        name: "virtiofs",
        nodev: true,
        options: &[],
        make,
    });
}

/// The file system of the folder called `tag`.
fn make(tag: &[u8], _options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let folders = FOLDERS.lock().clone();
    let folder = folders.iter().find(|folder| folder.link.is_called(tag));
    let folder = folder.ok_or(Error::Invalid)?;
    let mut known = folder.tree.lock();
    if let Some(tree) = known.upgrade() {
        return Ok(tree);
    }
    let tree = Volume::open(folder.link.clone())?;
    *known = Arc::downgrade(&tree);
    Ok(tree)
}
