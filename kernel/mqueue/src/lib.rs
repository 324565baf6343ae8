//! POSIX message queues (mq_overview(7)).
//!
//! A queue is a file of a file system of its own, `mqueue`: names, owners, permissions, open files
//! and mounts are those of all files. There is one such system; mq_open(2) looks into it through
//! a mount that is nowhere in the tree, mount(2) shows the same.
//!
//! A message goes behind all of its priority and of higher ones ([`messages`]). A thread that
//! waits for one and a message that comes are paired at once ([`transfer`]): nobody else sees that
//! message, and nobody is notified of it ([`notification`]).
//!
//! # Bounds
//! A queue holds as many messages, each as large, as its maker asked for. What that takes
//! counts for the maker's user as long as the queue lives (RLIMIT_MSGQUEUE), and both have limits of
//! their own ([`limits`]).
//!
//! Lock order: the directory's names, then a queue's attributes or its state; waiters, observers
//! and signals are told without them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod directory;
pub mod limits;
mod messages;
mod notification;
mod queue;
mod transfer;

use alloc::sync::Arc;

use mach::sync::Once;
use sync::{Error, Result};

pub use messages::{Message, PRIORITIES};
pub use notification::{COOKIE_BYTES, NotifyMethod};
pub use queue::{Queue, Status};

use self::directory::Directory;
use self::limits::Shape;
use vfs::file::OpenFile;
use vfs::kinds::{self, Kind};
use vfs::names::{self, Wanted, add_while_locked};
use vfs::{
    CreationFlags, FileSystem, FileType, InodeRef, LastComponent, Mount, OpenHow, Path, Usage,
    open_path,
};

/// Linux's number of the system (statfs(2)).
const MAGIC: u64 = 0x1980_0202;

/// The file system of all queues.
struct Mqueue {
    top: Arc<Directory>,
}

impl FileSystem for Mqueue {
    fn kind(&self) -> &'static str {
        "mqueue"
    }

    fn root(&self) -> InodeRef {
        self.top.clone()
    }

    fn usage(&self) -> Usage {
        Usage {
            magic: MAGIC,
            block_bytes: base::PAGE_BYTES as u64,
            ..Usage::default()
        }
    }

    /// Names change through each of its mounts.
    fn keeps_names(&self) -> bool {
        false
    }
}

struct Home {
    system: Arc<Mqueue>,
    mount: Arc<Mount>,
}

fn home() -> &'static Home {
    /// POSIX's names of queues are the machine's: who knows one has the queue.
    static HOME: Once<Home> = Once::new();
    HOME.call_once(|| {
        let system = Arc::new(Mqueue {
            top: Directory::new(),
        });
        Home {
            mount: Mount::hidden(system.clone()),
            system,
        }
    })
}

/// Makes the kind known to mount(2). Once, before the root is filled.
pub fn init() {
    kinds::register(Kind {
        name: "mqueue",
        nodev: true,
        options: &[],
        make,
    });
}

/// The system for mount(2).
fn make(_source: &[u8], _options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    Ok(home().system.clone())
}

fn component(name: &[u8]) -> Result<LastComponent> {
    if name.is_empty() {
        return Err(Error::NotFound);
    }
    if name.contains(&b'/') || name == b"." || name == b".." {
        return Err(Error::AccessDenied);
    }
    Ok(LastComponent {
        directory: Path::top_of(&home().mount),
        name: name.into(),
        wants_directory: false,
    })
}

/// Opens the queue `name`; a new one gets `shape`, or the usual one.
///
/// Errors: as open(2)'s; `Invalid` for a shape beyond the limits, `TooManyFiles` beyond the user's,
/// `NoSpace` if there are too many queues.
pub fn open(name: &[u8], how: &OpenHow, shape: Option<Shape>) -> Result<Arc<OpenFile>> {
    let LastComponent {
        directory, name, ..
    } = component(name)?;
    let still = directory.dentry.lock_names()?;
    if let Some(dentry) = directory.dentry.child_while_locked(&name)? {
        drop(still);
        if how.creation.contains(CreationFlags::EXCLUSIVE) {
            return Err(Error::Exists);
        }
        let mount = directory.mount;
        return open_path(Path { mount, dentry }, how);
    }
    if !how.creation.contains(CreationFlags::CREATE) {
        return Err(Error::NotFound);
    }
    let wanted = Wanted::new(FileType::Regular, how.mode & 0o7777);
    let place = add_while_locked(&directory, &name, || {
        let new = wanted.as_new(directory.inode())?;
        let queue: InodeRef = home().system.top.add(&name, &new, shape)?;
        Ok(queue)
    })?;
    Ok(OpenFile::at(place.inode().clone(), how.status, place))
}

/// Removes the name of a queue, which lives on while it is open.
pub fn unlink(name: &[u8]) -> Result<()> {
    names::unlink(&component(name)?)
}
