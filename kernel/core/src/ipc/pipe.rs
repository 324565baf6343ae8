//! Pipes: a ring of bytes between those who write and those who read.
//!
//! The ring is guarded by a sleeping lock. Its fill, and how many openings read and
//! write, are copied into atomics under that lock: who polls or decides whether to wait
//! looks only at those. A waiter looks after it has entered the queue, a worker changes
//! the atomics before it wakes (`sync::wait`), so no wake-up is lost.
//!
//! Threads are woken at the edges only: readers when the ring was empty, writers when it
//! was too full for an atomic write. Observers hear of each write, because programs with
//! edge-triggered epoll rely on that.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use base::PAGE_BYTES;
use bitflags::bitflags;

use super::next_number;
use super::ring::ByteRing;
use crate::error::{Error, Result};
use crate::file::{File, OpenFile, StatusFlags};
use crate::fs::{FileType, Metadata};
use crate::io::{Sink, Source};
use crate::poll::{Events, Pollee};
use crate::socket::Blocking;
use crate::sync::{Mutex, Wait};
use crate::user;

/// Writes up to this size are not mixed with others' (POSIX' PIPE_BUF).
pub const ATOMIC_BYTES: usize = 4096;
/// Linux' capacity of a new pipe, in pages.
const PAGES_DEFAULT: usize = 16;
/// Linux' default for /proc/sys/fs/pipe-max-size, in bytes.
const CAPACITY_MAX: usize = 1 << 20;
/// Bytes that could be read, stored as a C `int` (ioctl_fionread).
const FIONREAD: u32 = 0x541b;

bitflags! {
    /// What an opening of a pipe may do.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Access: u8 {
        /// Take bytes out.
        const READ = 1;
        /// Put bytes in.
        const WRITE = 2;
    }
}

/// A write of its own in the ring (`O_DIRECT`), by position.
struct Packet {
    start: u64,
    end: u64,
}

struct Contents {
    ring: ByteRing,
    packets: VecDeque<Packet>,
}

/// The pipe itself.
pub struct Pipe {
    number: u64,
    contents: Mutex<Contents>,
    len: AtomicUsize,
    capacity: AtomicUsize,
    readers: AtomicU32,
    writers: AtomicU32,
    pub(super) reader_openings: AtomicU64,
    pub(super) writer_openings: AtomicU64,
    pub(super) pollee: Pollee,
}

impl Default for Pipe {
    fn default() -> Self {
        let contents = Contents {
            ring: ByteRing::new(PAGES_DEFAULT),
            packets: VecDeque::new(),
        };
        Self {
            number: next_number(),
            contents: Mutex::new(contents),
            len: AtomicUsize::new(0),
            capacity: AtomicUsize::new(PAGES_DEFAULT * PAGE_BYTES),
            readers: AtomicU32::new(0),
            writers: AtomicU32::new(0),
            reader_openings: AtomicU64::new(0),
            writer_openings: AtomicU64::new(0),
            pollee: Pollee::new(),
        }
    }
}

/// A new pipe: its reading and its writing end.
pub fn create() -> (Arc<PipeEnd>, Arc<PipeEnd>) {
    let pipe = Arc::new(Pipe::default());
    (
        PipeEnd::new(pipe.clone(), Access::READ),
        PipeEnd::new(pipe, Access::WRITE),
    )
}

impl Pipe {
    pub(super) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::SeqCst) != 0
    }

    pub(super) fn has_writers(&self) -> bool {
        self.writers.load(Ordering::SeqCst) != 0
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    fn room(&self) -> usize {
        self.capacity
            .load(Ordering::SeqCst)
            .saturating_sub(self.len())
    }

    /// Bytes that could be read at once.
    pub fn readable_bytes(&self) -> usize {
        self.len()
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::SeqCst)
    }

    /// Makes at least `bytes` fit (F_SETPIPE_SZ); returns how many do.
    ///
    /// Errors: `NotPermitted` beyond the system's limit, `Busy` if more is in it.
    pub fn set_capacity(&self, bytes: usize) -> Result<usize> {
        if bytes > CAPACITY_MAX {
            return Err(Error::NotPermitted);
        }
        let pages = bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two();
        let mut contents = self.contents.lock();
        if !contents.packets.is_empty() {
            return Err(Error::Busy);
        }
        contents.ring.resize(pages)?;
        self.capacity
            .store(contents.ring.capacity(), Ordering::SeqCst);
        drop(contents);
        self.pollee.notify(Events::WRITABLE);
        Ok(self.capacity())
    }

    /// Reads what is there, up to the end of a packet; `None` if nothing is.
    fn try_read(&self, to: &mut Sink<'_>) -> Result<Option<usize>> {
        let mut contents = self.contents.lock();
        if contents.ring.is_empty() {
            return Ok(None);
        }
        let count = contents.take(to)?;
        let room_before = self.room();
        self.len.store(contents.ring.len(), Ordering::SeqCst);
        drop(contents);
        self.tell_writers(room_before);
        Ok(Some(count))
    }

    /// Bytes were taken out: writers go on once an atomic write fits again.
    fn tell_writers(&self, room_before: usize) {
        if room_before < ATOMIC_BYTES && self.room() >= ATOMIC_BYTES {
            self.pollee.notify(Events::WRITABLE);
        }
    }

    /// Writes what fits; 0 if that is less than an atomic write needs.
    fn try_write(&self, from: &mut Source<'_>, as_packet: bool) -> Result<usize> {
        let mut contents = self.contents.lock();
        if !self.has_readers() {
            drop(contents);
            return Err(super::broken_pipe());
        }
        if contents.ring.room() < from.remaining().min(ATOMIC_BYTES) {
            return Ok(0);
        }
        let was_empty = contents.ring.is_empty();
        let count = contents.put(from, as_packet)?;
        self.len.store(contents.ring.len(), Ordering::SeqCst);
        drop(contents);
        if was_empty {
            self.pollee.notify(Events::READABLE);
        } else {
            self.pollee.notify_observers(Events::READABLE);
        }
        Ok(count)
    }

    pub(super) fn read(&self, to: &mut Sink<'_>, nonblocking: bool) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        loop {
            let at_end = !self.has_writers();
            match self.try_read(to)? {
                Some(count) => return Ok(count),
                None if at_end => return Ok(0),
                None if nonblocking => return Err(Error::WouldBlock),
                None => {}
            }
            let changed = || (self.len() != 0 || !self.has_writers()).then_some(());
            self.pollee.queue.wait(Wait::INTERRUPTIBLE, changed)?;
        }
    }

    pub(super) fn write(&self, from: &mut Source<'_>, how: StatusFlags) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            match self.write_some(from, how) {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes something, waiting for room if need be.
    fn write_some(&self, from: &mut Source<'_>, how: StatusFlags) -> Result<usize> {
        let count = self.try_write(from, how.contains(StatusFlags::DIRECT))?;
        if count != 0 {
            return Ok(count);
        }
        if how.contains(StatusFlags::NONBLOCK) {
            return Err(Error::WouldBlock);
        }
        let needed = from.remaining().min(ATOMIC_BYTES);
        let changed = || (self.room() >= needed || !self.has_readers()).then_some(());
        self.pollee.queue.wait(Wait::INTERRUPTIBLE, changed)?;
        Ok(0)
    }

    /// Counts an opening that is gone; bytes that nobody can read any more are dropped.
    fn leave(&self, access: Access) {
        if access.contains(Access::READ) {
            self.readers.fetch_sub(1, Ordering::SeqCst);
        }
        if access.contains(Access::WRITE) {
            self.writers.fetch_sub(1, Ordering::SeqCst);
        }
        if !self.has_readers() && !self.has_writers() {
            self.contents.lock().clear();
            self.len.store(0, Ordering::SeqCst);
        }
        self.pollee
            .notify(Events::HUP | Events::ERR | Events::READABLE | Events::WRITABLE);
    }

    fn enter(&self, access: Access) {
        if access.contains(Access::READ) {
            self.readers.fetch_add(1, Ordering::SeqCst);
            self.reader_openings.fetch_add(1, Ordering::SeqCst);
        }
        if access.contains(Access::WRITE) {
            self.writers.fetch_add(1, Ordering::SeqCst);
            self.writer_openings.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// What splice and tee need: looking before taking, and knowing the room.
impl PipeEnd {
    /// Copies bytes from the `skip`-th on to `to` and leaves them; 0 at the end.
    pub(super) fn look(&self, skip: usize, to: &mut [u8], blocking: Blocking) -> Result<usize> {
        let pipe = &*self.pipe;
        let has_come = || (pipe.len() > skip || !pipe.has_writers()).then_some(());
        match blocking {
            Blocking::Never => has_come().ok_or(Error::WouldBlock)?,
            Blocking::MayWait => pipe.pollee.queue.wait(Wait::INTERRUPTIBLE, has_come)?,
        }
        pipe.contents
            .lock()
            .ring
            .peek(skip, &mut Sink::kernel(to), usize::MAX)
    }

    /// Drops the next `count` bytes.
    pub(super) fn skip(&self, count: usize) {
        let pipe = &*self.pipe;
        let mut contents = pipe.contents.lock();
        let room_before = pipe.room();
        contents.ring.skip(count);
        let head = contents.ring.head();
        contents.packets.retain(|packet| packet.end > head);
        pipe.len.store(contents.ring.len(), Ordering::SeqCst);
        drop(contents);
        pipe.tell_writers(room_before);
    }

    /// Bytes that go in now; at least one.
    pub(super) fn room(&self, blocking: Blocking) -> Result<usize> {
        let pipe = &*self.pipe;
        let has_room = || (pipe.room() != 0 || !pipe.has_readers()).then_some(());
        match blocking {
            Blocking::Never => has_room().ok_or(Error::WouldBlock)?,
            Blocking::MayWait => pipe.pollee.queue.wait(Wait::INTERRUPTIBLE, has_room)?,
        }
        match pipe.room() {
            0 if !pipe.has_readers() => Err(super::broken_pipe()),
            room => Ok(room),
        }
    }

    /// Puts all of `bytes` in, waiting if another writer was faster.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<usize> {
        self.pipe
            .write(&mut Source::kernel(bytes), StatusFlags::empty())
    }
}

impl Contents {
    fn put(&mut self, from: &mut Source<'_>, as_packet: bool) -> Result<usize> {
        if !as_packet {
            return self.ring.put(from, usize::MAX);
        }
        let count = self.ring.put(from, ATOMIC_BYTES)?;
        let end = self.ring.tail();
        self.packets.push_back(Packet {
            start: end - count as u64,
            end,
        });
        Ok(count)
    }

    fn take(&mut self, to: &mut Sink<'_>) -> Result<usize> {
        let head = self.ring.head();
        match self.packets.front() {
            None => self.ring.take(to, usize::MAX),
            Some(packet) if packet.start > head => {
                self.ring.take(to, (packet.start - head) as usize)
            }
            Some(packet) => {
                let whole = (packet.end - head) as usize;
                let count = self.ring.peek(0, to, whole)?;
                self.ring.skip(whole);
                self.packets.pop_front();
                Ok(count)
            }
        }
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.ring.skip(usize::MAX);
    }
}

/// One opening of a pipe.
pub struct PipeEnd {
    /// The pipe that it opens.
    pub pipe: Arc<Pipe>,
    access: Access,
    /// Writers there had been at the opening: a reader sees a hang-up only after another.
    writers_before: u64,
}

impl PipeEnd {
    /// Opens `pipe`; closed when dropped.
    pub fn new(pipe: Arc<Pipe>, access: Access) -> Arc<Self> {
        let writers_before = pipe.writer_openings.load(Ordering::SeqCst);
        let had_writers = pipe.has_writers();
        pipe.enter(access);
        // One may have come between the two looks: then the difference wraps, and is one.
        let writers_before = writers_before.wrapping_sub(u64::from(had_writers));
        Arc::new(Self {
            pipe,
            access,
            writers_before,
        })
    }

    /// What it may do.
    pub fn access(&self) -> Access {
        self.access
    }

    fn poll_reader(&self) -> Events {
        let mut events = Events::empty();
        if self.pipe.len() != 0 {
            events |= Events::READABLE;
        }
        let openings = self.pipe.writer_openings.load(Ordering::SeqCst);
        if !self.pipe.has_writers() && openings != self.writers_before {
            events |= Events::HUP;
        }
        events
    }

    fn poll_writer(&self) -> Events {
        let mut events = Events::empty();
        if self.pipe.room() >= ATOMIC_BYTES {
            events |= Events::WRITABLE;
        }
        if !self.pipe.has_readers() {
            events |= Events::ERR;
        }
        events
    }
}

impl File for PipeEnd {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        if !self.access.contains(Access::READ) {
            return Err(Error::BadFile);
        }
        self.pipe.read(to, open.is_nonblocking())
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        if !self.access.contains(Access::WRITE) {
            return Err(Error::BadFile);
        }
        self.pipe.write(from, open.flags())
    }

    fn poll(&self) -> Events {
        let mut events = Events::empty();
        if self.access.contains(Access::READ) {
            events |= self.poll_reader();
        }
        if self.access.contains(Access::WRITE) {
            events |= self.poll_writer();
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pipe.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            FIONREAD => {
                user::write(base::VirtAddr(argument), self.pipe.len() as u32)?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        let number = self.pipe.number;
        Ok(Metadata {
            number,
            ..Metadata::anonymous(FileType::Fifo)
        })
    }

    fn pipe_capacity(&self, wanted: Option<usize>) -> Option<Result<usize>> {
        Some(wanted.map_or_else(
            || Ok(self.pipe.capacity()),
            |bytes| self.pipe.set_capacity(bytes),
        ))
    }

    fn label(&self) -> String {
        format!("pipe:[{}]", self.pipe.number)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.pipe.leave(self.access);
    }
}
