//! Files to records: a walk that holds one open folder, and a batch of its names, for each step down.

use alloc::sync::Arc;
use alloc::vec::Vec;

use agent::Depth;
use agent::tree::{Header, Kind, NAME_BYTES_MAX, file_id};
use mach::mem::fallible::{self, TryGrow, TryPush};
use mm::io::Sink;
use sync::{Error, Result};
use vfs::file::OpenFile;
use vfs::{CreationFlags, FileType, Metadata, OpenHow, Path, Walk, directory};

use super::stream::Output;
use super::trouble_of;

/// Bytes of names that are taken from a folder at once.
const BATCH_BYTES: usize = 4096;

/// How paths are sent.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// How much of each.
    pub(crate) depth: Depth,
    /// Whether a symbolic link at the end of a path is followed.
    pub(crate) follows: bool,
}

/// Sends what `paths` name; whether all of it could be read.
///
/// Errors: nobody reads it.
pub(super) fn send(how: How, paths: &[Vec<u8>], output: &mut Output) -> Result<bool> {
    let mut is_whole = true;
    for path in paths {
        let mut walk = Sending {
            output,
            name: Vec::new(),
            levels: Vec::new(),
            is_whole: true,
        };
        walk.root(how, path)?;
        is_whole &= walk.is_whole;
    }
    output.end()?;
    Ok(is_whole)
}

/// A folder whose files are being sent.
struct Level {
    open: Arc<OpenFile>,
    place: Path,
    /// Names that wait, each with a zero behind it, and how many of their bytes are done.
    batch: Vec<u8>,
    done: usize,
    /// Bytes of the folder's own name in the tree.
    name_len: usize,
}

struct Sending<'a> {
    output: &'a mut Output,
    /// Of the file that is being sent, in the tree.
    name: Vec<u8>,
    levels: Vec<Level>,
    is_whole: bool,
}

impl Sending<'_> {
    fn root(&mut self, how: How, path: &[u8]) -> Result<()> {
        let mut walk = Walk::empty();
        walk.set(Walk::FOLLOW, how.follows);
        let place = match vfs::look(None, path, walk) {
            Ok(place) => place,
            Err(error) => return self.fail(error),
        };
        let has_data = how.depth == Depth::All;
        self.file(&place, has_data)?;
        if how.depth != Depth::Look && place.dentry.is_directory() {
            self.enter(place)?;
        }
        while let Some(level) = self.levels.last_mut() {
            self.name.truncate(level.name_len);
            match level.next() {
                Ok(true) => {}
                Ok(false) => {
                    self.levels.pop();
                    continue;
                }
                Err(error) => {
                    self.levels.pop();
                    self.fail(error)?;
                    continue;
                }
            }
            let found = level.child(&mut self.name);
            match found {
                Ok(place) => {
                    self.file(&place, has_data)?;
                    if has_data && place.dentry.is_directory() {
                        self.enter(place)?;
                    }
                }
                // It was there a moment ago.
                Err(Error::NotFound) => {}
                Err(error) => self.fail(error)?,
            }
            sched::resched_point();
        }
        Ok(())
    }

    /// Says that the file of this name cannot be read.
    fn fail(&mut self, error: Error) -> Result<()> {
        self.is_whole = false;
        self.output.trouble(trouble_of(error), &self.name)
    }

    fn enter(&mut self, place: Path) -> Result<()> {
        let how = OpenHow {
            creation: CreationFlags::DIRECTORY,
            ..OpenHow::READ
        };
        let level = vfs::open_path(place.clone(), &how).map(|open| Level {
            open,
            place,
            batch: Vec::new(),
            done: 0,
            name_len: self.name.len(),
        });
        match level.and_then(|level| Ok(self.levels.try_push(level)?)) {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    /// Sends one file, with its bytes if they are wanted.
    fn file(&mut self, place: &Path, has_data: bool) -> Result<()> {
        let inode = place.inode();
        let metadata = match inode.metadata() {
            Ok(metadata) => metadata,
            Err(error) => return self.fail(error),
        };
        let target = match inode.kind() {
            FileType::Symlink => inode.read_link(),
            FileType::Regular if metadata.links > 1 => {
                let id = file_id(metadata.device, metadata.number);
                fallible::copied(&id).map_err(Error::from)
            }
            _ => Ok(Vec::new()),
        };
        let target = match target {
            Ok(target) if target.len() <= NAME_BYTES_MAX => target,
            Ok(_) => return self.fail(Error::NameTooLong),
            Err(error) => return self.fail(error),
        };
        let opened = match (inode.kind(), has_data) {
            (FileType::Regular, true) => vfs::open_path(place.clone(), &OpenHow::READ).map(Some),
            _ => Ok(None),
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return self.fail(error),
        };
        let header = Header {
            name_len: self.name.len(),
            target_len: target.len(),
            ..header_of(&metadata)
        };
        self.output.header(&header, &self.name, &target)?;
        match opened {
            Some(open) => self.bytes(&open),
            None if header.kind == Kind::File => self.output.no_chunk(),
            None => Ok(()),
        }
    }

    fn bytes(&mut self, open: &Arc<OpenFile>) -> Result<()> {
        loop {
            match self
                .output
                .chunk(|room| open.read(&mut Sink::kernel(room)))?
            {
                Ok(true) => sched::resched_point(),
                Ok(false) => return Ok(()),
                Err(error) => {
                    self.output.break_off()?;
                    return self.fail(error);
                }
            }
        }
    }
}

impl Level {
    /// Makes the next name the first of those that wait; whether there is one.
    fn next(&mut self) -> Result<bool> {
        if self.done < self.batch.len() {
            return Ok(true);
        }
        self.batch.clear();
        self.done = 0;
        // Names have at most 255 bytes, so at least one finds room.
        self.batch.make_room(BATCH_BYTES)?;
        let batch = &mut self.batch;
        directory::list(&self.open, &mut |entry| {
            let is_dots = entry.name == b"." || entry.name == b"..";
            let has_room = batch.len() + entry.name.len() < BATCH_BYTES;
            if has_room && !is_dots {
                batch.extend_from_slice(entry.name);
                batch.push(0);
            }
            has_room
        })?;
        Ok(!self.batch.is_empty())
    }

    /// Takes the next name, adds it to `name`, and finds its file.
    fn child(&mut self, name: &mut Vec<u8>) -> Result<Path> {
        let rest = self.batch.get(self.done..).unwrap_or_default();
        let own = rest.split(|&byte| byte == 0).next().unwrap_or_default();
        self.done += own.len() + 1;
        let slash: &[u8] = if name.is_empty() { b"" } else { b"/" };
        if name.len() + slash.len() + own.len() > NAME_BYTES_MAX {
            return Err(Error::NameTooLong);
        }
        name.make_room(slash.len() + own.len())?;
        name.extend_from_slice(slash);
        name.extend_from_slice(own);
        vfs::look(Some(&self.place), own, Walk::empty())
    }
}

fn header_of(file: &Metadata) -> Header {
    Header {
        // The bits below the kind's.
        mode: (file.mode & 0o7777) as u16,
        uid: file.uid,
        gid: file.gid,
        modified: (file.modified.seconds, file.modified.nanos),
        size: file.size,
        ..Header::of(match file.kind {
            FileType::Directory => Kind::Folder,
            FileType::Regular => Kind::File,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Special,
        })
    }
}
