//! /proc/PID/fd and /proc/PID/fdinfo: what a process has open.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt::Write;

use super::task::{Subject, owned};
use super::{guard, list};
use sync::{Error, Result};
use task::current;
use vfs::file::{Fd, File, OpenFile};
use vfs::inode::Emit;
use vfs::pseudo::{Link, Target, Text, TextFile};
use vfs::{FileType, Inode, InodeRef, Metadata};

/// The inode of either directory.
pub struct Descriptors {
    metadata: Metadata,
    subject: Subject,
    links: bool,
}

impl Descriptors {
    /// With `links` it is `fd`, else `fdinfo`.
    pub fn new(metadata: Metadata, subject: Subject, links: bool) -> Self {
        Self {
            metadata,
            subject,
            links,
        }
    }

    fn link(&self, metadata: Metadata, fd: Fd) -> InodeRef {
        let subject = self.subject.clone();
        let find = move || {
            guard::check(&subject)?;
            let open = open_file(&subject, fd)?;
            Ok(match &open.path {
                Some(path) => Target::Place(path.clone()),
                None => {
                    let label = open.file.label().into_bytes();
                    Target::Open(open, label)
                }
            })
        };
        Link::new(metadata, Box::new(find))
    }

    fn info(&self, metadata: Metadata, fd: Fd) -> InodeRef {
        let subject = self.subject.clone();
        let generate = move |text: &mut Text| {
            let open = open_file(&subject, fd)?;
            describe(&open, text).map_err(|_| Error::Io)
        };
        TextFile::new(metadata, Box::new(generate), None)
    }
}

fn open_file(subject: &Subject, fd: Fd) -> Result<Arc<OpenFile>> {
    subject
        .thread()?
        .files
        .get()
        .get_any(fd)
        .map_err(|_| Error::NotFound)
}

fn describe(open: &OpenFile, text: &mut Text) -> core::fmt::Result {
    writeln!(text, "pos:\t{}", *open.position.lock())?;
    writeln!(text, "flags:\t0{:o}", open.flags().bits())?;
    let mount = open.path.as_ref().map_or(0, |path| path.mount.id);
    writeln!(text, "mnt_id:\t{mount}")?;
    writeln!(
        text,
        "ino:\t{}",
        open.metadata().map_or(0, |metadata| metadata.number)
    )?;
    open.file.describe(text);
    Ok(())
}

impl File for Descriptors {
    fn metadata(&self) -> Result<Metadata> {
        Ok(self.metadata)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Descriptors {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn is_open_to_caller(&self) -> bool {
        core::ptr::eq(&*current().process, &*self.subject.process)
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        let fd = list::parse(name).ok_or(Error::NotFound)?;
        open_file(&self.subject, fd)?;
        let number = self.metadata.number ^ u64::from(fd) << 1;
        let (kind, mode) = if self.links {
            (FileType::Symlink, 0o700)
        } else {
            (FileType::Regular, 0o400)
        };
        let metadata = owned(
            &self.subject,
            Metadata::new(self.metadata.device, number, kind, mode),
        );
        Ok(if self.links {
            self.link(metadata, fd)
        } else {
            self.info(metadata, fd)
        })
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        let files = self.subject.thread()?.files.get();
        let first = files.next_number(0);
        let numbers = core::iter::successors(first, |fd| files.next_number(fd + 1));
        let kind = if self.links {
            FileType::Symlink
        } else {
            FileType::Regular
        };
        list::list(cursor, emit, core::iter::empty(), numbers, kind)
    }
}
