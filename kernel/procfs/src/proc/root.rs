//! The top of /proc: the system's files, `self`, and a directory for each process.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use super::task::{Place, TaskDirectory};
use super::{TABLE, list};
use sync::{Error, Result};
use task::{current, family, find_thread};
use vfs::file::File;
use vfs::inode::Emit;
use vfs::pseudo::{Link, Target};
use vfs::{FileType, Inode, InodeRef, Metadata};

/// The inode's number, as in Linux.
const NUMBER: u64 = 1;
/// Links that depend on who asks.
const LINKS: [&str; 3] = ["self", "thread-self", "mounts"];

/// The inode.
pub struct Root {
    device: u64,
}

impl Root {
    /// The top of the file system with this device number.
    pub fn new(device: u64) -> Self {
        Self { device }
    }

    /// That of a process, or of a program's thread by its own number.
    fn directory_of(&self, id: u32) -> Result<TaskDirectory> {
        if let Some(process) = family::find(id) {
            return Ok(TaskDirectory::of_process(self.device, process));
        }
        let thread = find_thread(id).filter(|thread| family::find(thread.process.id()).is_some());
        let thread = thread.ok_or(Error::NotFound)?;
        let place = Place::ProcessByThread;
        Ok(TaskDirectory::of_thread(self.device, thread, place))
    }

    fn link(&self, name: &'static str) -> InodeRef {
        let number = vfs::pseudo::number_of(name.as_bytes());
        let metadata = Metadata::new(self.device, number, FileType::Symlink, 0o777);
        Link::new(
            metadata,
            Box::new(move || {
                let (process, thread) = (current().process.id(), current().id());
                let text = match name {
                    "self" => process.to_string(),
                    "mounts" => String::from("self/mounts"),
                    _ => format!("{process}/task/{thread}"),
                };
                Ok(Target::Text(text.into_bytes()))
            }),
        )
    }
}

impl File for Root {
    fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::new(self.device, NUMBER, FileType::Directory, 0o555);
        metadata.links = 2 + family::count() as u32;
        Ok(metadata)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Root {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        if let Some(link) = LINKS.iter().find(|link| link.as_bytes() == name) {
            return Ok(self.link(link));
        }
        if let Some(id) = list::parse(name) {
            return Ok(Arc::new(self.directory_of(id)?));
        }
        let name = core::str::from_utf8(name).map_err(|_| Error::NotFound)?;
        TABLE.find(self.device, name)
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        let links = LINKS.iter().map(|name| (*name, FileType::Symlink));
        let names = links.chain(TABLE.names(""));
        let numbers = family::processes().map(|process| process.id());
        list::list(cursor, emit, names, numbers, FileType::Directory)
    }
}
