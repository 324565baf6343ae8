//! What a program registers with a ring: files, buffers, groups of buffers that it lends.
//!
//! Registered buffers are remembered as ranges: a transfer checks that it lies within one and
//! goes through the program's memory as any other. Anonymous ones are pinned beside that (`mm::space`): a file
//! that begins transfers is told their pages, without a look into the program's memory.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use base::VirtAddr;
use mach::mem::fallible::TryGrow;
use mm::io::UserRange;
use mm::{Page, user};
use sync::{Error, Result};
use task::Thread;
use uring::{BufferRing, RingBuffer};
use vfs::file::OpenFile;

/// Files that a ring may have (IORING_MAX_FIXED_FILES is more; RLIMIT_NOFILE limits it first).
const FILES_MAX: usize = 1 << 16;
/// Buffers that a ring may have (IORING_MAX_REG_BUFFERS).
const BUFFERS_MAX: usize = 1 << 14;
/// Bytes of the largest one.
const BUFFER_BYTES_MAX: usize = 1 << 30;
/// Groups of buffers that a ring may have.
const GROUPS_MAX: usize = 1 << 10;
/// IORING_REGISTER_FILES_SKIP.
const SKIP: i32 = -2;

/// A registered buffer; an empty one stands for none.
struct Buffer {
    range: UserRange,
    /// Its pages, if they are pinned.
    pages: Vec<Page>,
}

struct Group {
    number: u16,
    address: u64,
    ring: BufferRing,
}

/// What a ring's program registered.
pub struct Registered {
    files: Option<Vec<Option<Arc<OpenFile>>>>,
    buffers: Option<Vec<Buffer>>,
    groups: Vec<Group>,
    /// The ring takes no entries yet.
    pub is_disabled: bool,
}

impl Registered {
    /// Nothing.
    pub fn new(is_disabled: bool) -> Self {
        Self {
            files: None,
            buffers: None,
            groups: Vec::new(),
            is_disabled,
        }
    }

    /// Takes files for good; -1 leaves a place free.
    ///
    /// Errors: `Busy` if there are some; `Invalid`, `TooManyFiles`, `BadFile`.
    pub fn set_files(&mut self, thread: &Thread, at: Option<u64>, count: u32) -> Result<()> {
        if self.files.is_some() {
            return Err(Error::Busy);
        }
        let limit = thread.process.limits.soft(cred::Resource::Files);
        if count == 0 {
            return Err(Error::Invalid);
        }
        if count as usize > FILES_MAX || u64::from(count) > limit {
            return Err(Error::TooManyFiles);
        }
        let mut files = Vec::new();
        files.make_room(count as usize)?;
        for index in 0..u64::from(count) {
            let fd = match at {
                Some(at) => user::read::<i32>(VirtAddr(at) + index * 4)?,
                None => -1,
            };
            files.push(file_of(thread, fd)?);
        }
        self.files = Some(files);
        Ok(())
    }

    /// Gives them back; the caller drops them.
    ///
    /// Errors: `NoSuchDevice` if there are none.
    pub fn clear_files(&mut self) -> Result<Vec<Option<Arc<OpenFile>>>> {
        self.files.take().ok_or(Error::NoSuchDevice)
    }

    /// Exchanges `count` files from `first` on; returns how many before one failed.
    pub fn update_files(
        &mut self,
        thread: &Thread,
        first: u32,
        at: u64,
        count: u32,
    ) -> Result<usize> {
        let files = self.files.as_mut().ok_or(Error::NoSuchDevice)?;
        let end = first.checked_add(count).ok_or(Error::Overflow)?;
        let places = files
            .get_mut(first as usize..end as usize)
            .ok_or(Error::Invalid)?;
        let mut done = 0;
        for (index, place) in (0u64..).zip(places) {
            let new = user::read::<i32>(VirtAddr(at) + index * 4).and_then(|fd| match fd {
                SKIP => Ok(place.clone()),
                fd => file_of(thread, fd),
            });
            match new {
                Ok(new) => *place = new,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            done += 1;
        }
        Ok(done)
    }

    /// Frees a place.
    ///
    /// Errors: `NoSuchDevice` without files, `Invalid`, `BadFile`.
    pub fn close(&mut self, index: u32) -> Result<()> {
        let files = self.files.as_mut().ok_or(Error::NoSuchDevice)?;
        let place = files.get_mut(index as usize).ok_or(Error::Invalid)?;
        place.take().map(|_| ()).ok_or(Error::BadFile)
    }

    /// Takes buffers.
    ///
    /// Errors: `Busy` if there are some; `Invalid`, `BadAddress`.
    pub fn set_buffers(&mut self, at: Option<u64>, count: u32) -> Result<()> {
        if self.buffers.is_some() {
            return Err(Error::Busy);
        }
        if count == 0 || count as usize > BUFFERS_MAX {
            return Err(Error::Invalid);
        }
        let mut buffers = Vec::new();
        buffers.make_room(count as usize)?;
        let mut bytes = 0;
        for index in 0..u64::from(count) {
            let [start, len] = match at {
                Some(at) => user::read::<[u64; 2]>(VirtAddr(at) + index * 16)?,
                None => [0, 0],
            };
            let range = checked_range(start, len)?;
            bytes += range.len as u64;
            buffers.push(Buffer {
                range,
                pages: Vec::new(),
            });
        }
        check_lock(bytes)?;
        buffers.iter_mut().try_for_each(Buffer::pin)?;
        self.buffers = Some(buffers);
        Ok(())
    }

    /// Gives them back.
    ///
    /// Errors: `NoSuchDevice` if there are none.
    pub fn clear_buffers(&mut self) -> Result<()> {
        self.buffers.take().map(|_| ()).ok_or(Error::NoSuchDevice)
    }

    /// `range`, if it lies within the buffer `index`.
    ///
    /// Errors: `BadAddress`.
    pub fn within(&self, index: u16, range: UserRange) -> Result<UserRange> {
        let buffers = self.buffers.as_ref().ok_or(Error::BadAddress)?;
        let buffer = buffers.get(index as usize).ok_or(Error::BadAddress)?.range;
        let from = range.start.0.checked_sub(buffer.start.0);
        let end = from.and_then(|from| from.checked_add(range.len as u64));
        match end {
            Some(end) if end <= buffer.len as u64 && buffer.len != 0 => Ok(range),
            _ => Err(Error::BadAddress),
        }
    }

    /// The pages of the buffer `index`, and which of their bytes are `range`; `None` if it does not lie within
    /// it, or is not pinned.
    pub fn pinned(&self, index: u16, range: UserRange) -> Option<(&[Page], Range<usize>)> {
        self.within(index, range).ok()?;
        let buffer = self.buffers.as_ref()?.get(index as usize)?;
        let start = buffer.range.start;
        let first = start.page_offset() + (range.start.0 - start.0) as usize;
        (!buffer.pages.is_empty()).then_some((&buffer.pages, first..first + range.len))
    }

    /// Takes a ring of buffers at `address`.
    ///
    /// Errors: `Exists`, `Invalid`, `OutOfMemory`, `BadAddress`.
    pub fn add_group(&mut self, number: u16, address: u64, entries: u32) -> Result<()> {
        let ring = BufferRing::new(entries).ok_or(Error::Invalid)?;
        if !address.is_multiple_of(base::PAGE_BYTES as u64) {
            return Err(Error::Invalid);
        }
        UserRange::new(VirtAddr(address), ring.bytes() as usize)?;
        if self.group(number).is_ok() {
            return Err(Error::Exists);
        }
        if self.groups.len() >= GROUPS_MAX {
            return Err(Error::OutOfMemory);
        }
        self.groups.make_room(1)?;
        self.groups.push(Group {
            number,
            address,
            ring,
        });
        Ok(())
    }

    /// The file at an index.
    ///
    /// Errors: `BadFile`.
    pub fn file(&self, index: i32) -> Result<Arc<OpenFile>> {
        let files = self.files.as_ref().ok_or(Error::BadFile)?;
        let index = usize::try_from(index).map_err(|_| Error::BadFile)?;
        files.get(index).cloned().flatten().ok_or(Error::BadFile)
    }

    /// Forgets one.
    ///
    /// Errors: `NotFound`.
    pub fn remove_group(&mut self, number: u16) -> Result<()> {
        let at = self.groups.iter().position(|one| one.number == number);
        self.groups.swap_remove(at.ok_or(Error::NotFound)?);
        Ok(())
    }

    fn group(&mut self, number: u16) -> Result<&mut Group> {
        let mut groups = self.groups.iter_mut();
        groups
            .find(|one| one.number == number)
            .ok_or(Error::NoBuffers)
    }

    /// The next buffer of a group, at most `len` bytes of it if that is not 0, and its number.
    ///
    /// Errors: `NoBuffers`, `BadAddress`.
    pub fn next_buffer(&mut self, number: u16, len: u32) -> Result<(UserRange, u16)> {
        let group = self.group(number)?;
        let start = VirtAddr(group.address);
        let tail = user::read::<u16>(start + group.ring.tail_offset())?;
        let lent = group.ring.next(tail).ok_or(Error::NoBuffers)?;
        let words = user::read::<[u64; 2]>(start + lent.offset)?;
        let buffer = RingBuffer::from_words(words);
        let bytes = match len {
            0 => buffer.len,
            len => len.min(buffer.len),
        };
        let range = UserRange::new(VirtAddr(buffer.address), bytes as usize)?;
        Ok((range, buffer.number))
    }

    /// That one is used.
    pub fn use_buffer(&mut self, number: u16) {
        if let Ok(group) = self.group(number) {
            group.ring.advance();
        }
    }
}

/// The file that is registered for a descriptor; -1 for none. A ring would keep itself.
fn file_of(thread: &Thread, fd: i32) -> Result<Option<Arc<OpenFile>>> {
    if fd == -1 {
        return Ok(None);
    }
    let open = thread.files.with(|files| files.get(fd as u32))?;
    match open.file.may_travel() {
        true => Ok(Some(open)),
        false => Err(Error::BadFile),
    }
}

impl Buffer {
    /// Pins it, if it is memory of that kind.
    ///
    /// Errors: `OutOfMemory`.
    fn pin(&mut self) -> Result<()> {
        if self.range.len == 0 {
            return Ok(());
        }
        match user::space().pin(self.range.start, self.range.len as u64) {
            Ok(pages) => self.pages = pages,
            Err(Error::OutOfMemory) => return Err(Error::OutOfMemory),
            Err(_) => {}
        }
        Ok(())
    }
}

fn checked_range(start: u64, len: u64) -> Result<UserRange> {
    if start == 0 && len != 0 {
        return Err(Error::BadAddress);
    }
    let len = usize::try_from(len).map_err(|_| Error::BadAddress)?;
    if len > BUFFER_BYTES_MAX || (start != 0 && len == 0) {
        return Err(Error::BadAddress);
    }
    UserRange::new(VirtAddr(start), len)
}

/// Whether the program may keep so many bytes in memory (RLIMIT_MEMLOCK).
///
/// Errors: `OutOfMemory`.
fn check_lock(bytes: u64) -> Result<()> {
    let limit = cred::limit(cred::Resource::LockedBytes);
    let is_free = || cred::credentials().with(|who| who.has(cred::Capability::IpcLock));
    match bytes <= limit || is_free() {
        true => Ok(()),
        false => Err(Error::OutOfMemory),
    }
}
