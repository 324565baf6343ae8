//! The one directory of all queues.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use cred::Capability;
use mach::sync::Spin;
use sync::{Error, Result};
use task::current;

use super::Queue;
use super::limits::{QUEUES, Shape};
use fs_tmp::directory::Directory as Names;
use vfs::attributes::Attributes;
use vfs::file::File;
use vfs::inode::{DirEntry, Emit};
use vfs::{Change, FileType, Inode, InodeRef, Metadata, New, Timestamp, next_device};

/// Anybody may make queues, and only owners remove them.
const MODE: u32 = 0o1777;
/// The directory's own number; queues have the following ones.
const NUMBER: u64 = 1;

#[derive(Default)]
struct Queues {
    names: Names<Queue>,
    count: u64,
}

/// The top of the file system.
pub(super) struct Directory {
    device: u64,
    last_number: AtomicU64,
    attributes: Spin<Attributes>,
    queues: Spin<Queues>,
}

impl Directory {
    pub fn new() -> Arc<Self> {
        let new = New {
            kind: FileType::Directory,
            mode: MODE,
            uid: 0,
            gid: 0,
            device: 0,
            target: &[],
        };
        Arc::new(Self {
            device: next_device(),
            last_number: AtomicU64::new(NUMBER),
            attributes: Spin::new(Attributes::new(&new, Timestamp::now())),
            queues: Spin::default(),
        })
    }

    /// Makes a queue.
    ///
    /// Errors: `Exists`, `NoSpace`, and as [`Queue::new`].
    pub fn add(&self, name: &[u8], new: &New<'_>, shape: Option<Shape>) -> Result<Arc<Queue>> {
        if new.kind != FileType::Regular {
            return Err(Error::NotPermitted);
        }
        let is_above = current()
            .credentials
            .with(|who| who.has(Capability::SysResource));
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let most = QUEUES.load(Ordering::Relaxed);
        let check_room = |queues: &Queues| match queues.count < most || is_above {
            true => Ok(()),
            false => Err(Error::NoSpace),
        };
        check_room(&self.queues.lock())?;
        let queue = Queue::new(self.device, number, new, shape.unwrap_or_else(Shape::usual))?;
        let mut queues = self.queues.lock();
        check_room(&queues)?;
        // Through another mount somebody may have been faster.
        if queues.names.get(name).is_ok() {
            return Err(Error::Exists);
        }
        queues.names.insert(name, queue.clone())?;
        queues.count += 1;
        drop(queues);
        self.attributes.lock().touch(0);
        Ok(queue)
    }
}

impl File for Directory {
    fn is_seekable(&self) -> bool {
        true
    }

    fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::new(self.device, NUMBER, FileType::Directory, 0);
        self.attributes.lock().tell(&mut metadata);
        Ok(metadata)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Directory {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn change(&self, change: &Change) -> Result<()> {
        self.attributes.lock().change(change);
        Ok(())
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        let queue: InodeRef = self.queues.lock().names.get(name)?.clone();
        Ok(queue)
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        Ok(self.add(name, new, None)?)
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        let gone = {
            let mut queues = self.queues.lock();
            let gone = queues.names.remove(name).ok_or(Error::NotFound)?;
            queues.count -= 1;
            gone
        };
        gone.touch(|attributes| attributes.count_link(-1));
        self.attributes.lock().touch(0);
        Ok(())
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        for (serial, name, queue) in self.queues.lock().names.from(cursor) {
            let entry = DirEntry {
                name,
                number: queue.number(),
                kind: FileType::Regular,
                next: serial + 1,
            };
            if !emit(entry) {
                break;
            }
        }
        Ok(())
    }
}
