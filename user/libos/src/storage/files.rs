//! Files on a log, as a program has them: `core/logfile` and the queue that carries it out.
//!
//! Writes are gathered; a [`sync`](LogFiles::sync) makes an entry of them and waits until it is durable. Names are durable
//! when the call that changes them is over, which is more than a file system says: a program that syncs the directory
//! afterwards has no directory here.
//!
//! Threads share a sync: one begins it ([`sync_out`](LogFiles::sync_out)) and waits for the device without the files, which the
//! others write to meanwhile; what has come by its [end](LogFiles::come_back) is one entry for all of them.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};

use logfile::{Compacted, Error, FileNumber, Files, Piece};
use plog::{AppendError, HEADER_BYTES, Place, Promise, Sequence, Shape};

use super::log::{open_or_format, said};
use super::{BlockQueue, Buffer, Completion, Pump, Work};

/// Bytes that are gathered, at most; less in a small log.
const GATHER_BYTES_MAX: usize = 256 * 1024;
/// So many buffers fit into a log.
const BUFFERS_OF_LOG: u64 = 32;

/// A buffer, as memory.
#[derive(Debug)]
struct Memory(Buffer);

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for Memory {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// What a thread waits for that has begun a sync. Until it is back nothing but [`LogFiles::write`] of what
/// [fits](LogFiles::fits), and what asks for names and sizes, may be called.
#[derive(Debug)]
pub enum Out {
    /// That the device has done it: to be [looked](LogFiles::look) for, and after a while [slept](LogFiles::sleep_out) for.
    Look,
    /// Calls to be made.
    Work(Work),
    /// That this can be read.
    Bell(RawFd),
    /// Nothing.
    Over,
}

/// See the module.
pub struct LogFiles {
    files: Files<Memory>,
    pump: Pump,
    gather_bytes: usize,
    /// What the sync that was begun last waits for: entries before it.
    wanted: Sequence,
    /// The entry that was read last, by its number.
    entry: Vec<u8>,
    read: Option<Sequence>,
}

/// Bytes of a buffer: whole pages, so that all are alike in memory.
fn gather_bytes_of(shape: Shape) -> usize {
    let share = shape.ring_blocks() / BUFFERS_OF_LOG;
    let bytes = share as usize * shape.block_bytes() as usize;
    let most = shape.window_blocks() as usize * shape.block_bytes() as usize;
    let bytes = bytes.min(GATHER_BYTES_MAX).min(most);
    bytes - bytes % shape.block_bytes() as usize
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl LogFiles {
    /// Opens the files on a queue's blocks; blocks that begin with zeroes become a log without files.
    ///
    /// Errors: something else is there, it lost what was durable, or the device fails.
    pub fn open(queue: Box<dyn BlockQueue + Send>) -> io::Result<Self> {
        let mut pump = Pump::new(queue);
        let mut log = open_or_format(&mut pump)?;
        log.force_lone_writes();
        let gather_bytes = gather_bytes_of(log.shape());
        let buffer = pump
            .buffer(gather_bytes)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let files = Files::open(log, &mut pump, Memory(buffer)).map_err(|why| said(&why))?;
        Ok(Self {
            files,
            pump,
            gather_bytes,
            wanted: 0,
            entry: Vec::new(),
            read: None,
        })
    }

    /// The file of a name.
    pub fn find(&self, name: &[u8]) -> Option<FileNumber> {
        self.files.find(name)
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = (&[u8], FileNumber)> {
        self.files.names()
    }

    /// Whether the file has a name: it may have none while it is [held](Self::hold).
    pub fn has_name(&self, number: FileNumber) -> bool {
        self.files.name(number).is_some()
    }

    /// Bytes of a file.
    pub fn size(&self, number: FileNumber) -> Option<u64> {
        self.files.size(number)
    }

    /// A descriptor names the file: it is there until [`release`](Self::release), also without a name.
    pub fn hold(&mut self, number: FileNumber) {
        self.files.hold(number);
    }

    /// One descriptor less.
    pub fn release(&mut self, number: FileNumber) {
        self.files.release(number);
    }

    /// A new file, durably; who had the name has none any more.
    ///
    /// Errors: `StorageFull`, `InvalidFilename`, the device's.
    pub fn create(&mut self, name: &[u8]) -> io::Result<FileNumber> {
        let number = self.change(|files| files.create(name))?;
        self.sync(number)?;
        Ok(number)
    }

    /// Gives a file another name, durably; who had it before has none any more.
    ///
    /// Errors: as [`create`](Self::create), `NotFound`.
    pub fn rename(&mut self, number: FileNumber, name: &[u8]) -> io::Result<()> {
        self.change(|files| files.rename(number, name))?;
        self.sync(number)
    }

    /// Takes a file's name away, durably.
    ///
    /// Errors: as above.
    pub fn remove(&mut self, number: FileNumber) -> io::Result<()> {
        self.files.hold(number);
        let removed = self.change(|files| files.remove(number));
        let synced = removed.and_then(|()| self.sync(number));
        self.files.release(number);
        self.files.trim();
        synced
    }

    /// Makes a file shorter or longer; it is durable with the next [`sync`](Self::sync).
    ///
    /// Errors: as above, `FileTooLarge`.
    pub fn set_size(&mut self, number: FileNumber, size: u64) -> io::Result<()> {
        self.change(|files| files.set_size(number, size))
    }

    /// Writes all of `bytes` at an offset, or nothing.
    ///
    /// Errors: as above.
    pub fn write(&mut self, number: FileNumber, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        end.and_then(|end| i64::try_from(end).ok())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        self.make_room(bytes.len())?;
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            done += self.change(|files| files.write(number, at, &bytes[done..]))?;
        }
        Ok(())
    }

    /// Until all that was done to the file is durable.
    ///
    /// Errors: the device's.
    pub fn sync(&mut self, number: FileNumber) -> io::Result<()> {
        let changed_in = self.files.changed_in(number).ok_or_else(not_found)?;
        if changed_in < self.files.log().durable().sequence() {
            return Ok(());
        }
        if self.files.is_gathered() && changed_in >= self.files.log().end().sequence() {
            self.seal(Promise::Durable)?;
        }
        self.wait_for(changed_in + 1)?;
        self.tidy()
    }

    /// Whether all that was done to the file is durable.
    pub fn is_synced(&mut self, number: FileNumber) -> io::Result<bool> {
        let changed_in = self.files.changed_in(number).ok_or_else(not_found)?;
        Ok(changed_in < self.files.log().durable().sequence())
    }

    /// Whether so many bytes, in so many pieces, are written without a look at the device.
    pub fn fits(&self, bytes: usize, pieces: usize) -> bool {
        self.files.gathers(bytes, pieces) && self.files.has_room(bytes)
    }

    /// Begins to bring out all that was done to all files, and says what is to be waited for: only who has no others beside it,
    /// which would run while it sleeps and share its next sync, should look.
    ///
    /// Errors: the device's.
    pub fn sync_out(&mut self, may_look: bool) -> io::Result<Out> {
        if may_look && self.pump.are_looks_due() {
            self.begin_sync()?;
            return Ok(Out::Look);
        }
        self.pump.put_off();
        let begun = self.begin_sync();
        let work = self.pump.take_work();
        if let Err(why) = begun {
            let done = work.map_or(Vec::new(), Work::carry_out);
            self.pump.take_back(done);
            return Err(why);
        }
        Ok(self.what_to_wait_for(work))
    }

    /// One look, after [`Out::Look`]; whether all is done that it was about.
    pub fn look(&mut self) -> bool {
        let log = self.files.log();
        self.pump.turn(log);
        let is_done = log.durable().sequence() >= self.wanted || !self.pump.is_busy();
        if is_done {
            self.pump.looks().note(true);
        }
        is_done
    }

    /// Looks were in vain for a while: what to wait for instead.
    pub fn sleep_out(&mut self) -> Out {
        self.pump.looks().note(false);
        self.pump.put_off();
        let work = self.pump.take_work();
        self.what_to_wait_for(work)
    }

    fn what_to_wait_for(&mut self, work: Option<Work>) -> Out {
        self.pump.note_sleep();
        match work {
            Some(work) => Out::Work(work),
            // What the device has done by now rings nobody.
            None if self.pump.is_busy() && self.pump.arm() => {
                Out::Bell(self.pump.doorbell().as_raw_fd())
            }
            None => Out::Over,
        }
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        self.seal(Promise::Durable)?;
        let log = self.files.log();
        let end = log.end();
        self.wanted = end.sequence();
        log.want_durable(end);
        self.pump.turn(log);
        match self.files.log().failure() {
            Some(failure) => Err(said(&failure)),
            None => Ok(()),
        }
    }

    /// Its end: what became of the work.
    ///
    /// Errors: the device's.
    pub fn come_back(&mut self, done: Vec<Completion>) -> io::Result<()> {
        self.pump.looks().wake();
        self.pump.take_back(done);
        self.tidy()
    }

    /// Until all that was done to all files is durable.
    ///
    /// Errors: the device's.
    pub fn sync_all(&mut self) -> io::Result<()> {
        self.seal(Promise::Durable)?;
        self.wait_for_all()
    }

    /// Reads bytes at an offset: how many, 0 at the end.
    ///
    /// Errors: the device's; what is read is not what was written.
    pub fn read(&mut self, number: FileNumber, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < to.len() {
            let count = self.read_piece(number, offset + done as u64, &mut to[done..])?;
            if count == 0 {
                break;
            }
            done += count;
        }
        Ok(done)
    }

    fn read_piece(&mut self, number: FileNumber, at: u64, to: &mut [u8]) -> io::Result<usize> {
        match self.files.piece(number, at) {
            None => Ok(0),
            Some(Piece::Hole(count)) => {
                let count = to.len().min(usize::try_from(count).unwrap_or(usize::MAX));
                to[..count].fill(0);
                Ok(count)
            }
            Some(Piece::Gathered(bytes)) => Ok(copy(bytes, to)),
            Some(Piece::UnderWay { sequence, .. }) => {
                self.wait_for(sequence + 1)?;
                self.read_piece(number, at, to)
            }
            Some(Piece::Stored { place, at, bytes }) => self.read_stored(place, at..at + bytes, to),
        }
    }

    fn read_stored(
        &mut self,
        place: Place,
        range: Range<usize>,
        to: &mut [u8],
    ) -> io::Result<usize> {
        if self.read != Some(place.sequence()) {
            self.read = None;
            let mut cursor = self.files.log().cursor_at(place);
            let item = cursor.next(&mut self.pump, &mut self.entry);
            item.map_err(|why| said(&why))?.ok_or_else(not_found)?;
            self.read = Some(place.sequence());
        }
        let bytes = self.entry.get(range).ok_or(io::ErrorKind::InvalidData)?;
        Ok(copy(bytes, to))
    }

    /// Tries, and seals what was gathered if that is in the way; makes room once.
    fn change<T>(
        &mut self,
        mut change: impl FnMut(&mut Files<Memory>) -> Result<T, Error>,
    ) -> io::Result<T> {
        let mut was_full = false;
        loop {
            match change(&mut self.files) {
                Ok(done) => return Ok(done),
                Err(Error::Gathered) => self.seal(Promise::Accepted)?,
                Err(Error::Full) if !was_full => {
                    was_full = true;
                    self.make_room(0)?;
                }
                Err(Error::Full) => return Err(full()),
                Err(Error::NotFound | Error::Removed) => return Err(not_found()),
                Err(Error::BadName) => return Err(io::ErrorKind::InvalidFilename.into()),
                Err(Error::TooLarge) => return Err(io::ErrorKind::FileTooLarge.into()),
            }
        }
    }

    /// Makes an entry of what was gathered, and tells the device.
    fn seal(&mut self, promise: Promise) -> io::Result<()> {
        while self.files.is_gathered() {
            let Some(next) = self.pump.buffer(self.gather_bytes) else {
                self.wait_for_all()?;
                continue;
            };
            match self.files.seal(Memory(next), promise) {
                Ok(sealed) => {
                    self.pump.keep(sealed.ticket, sealed.buffer.0);
                    self.pump.turn(self.files.log());
                    return Ok(());
                }
                Err((AppendError::Busy, _)) => {
                    let log = self.files.log();
                    let next = log.durable().sequence() + 1;
                    self.pump.turn(self.files.log());
                    self.wait_for(next)?;
                }
                // What was promised for it was used up by names.
                Err((AppendError::Full, _)) => return Err(full()),
                Err((why, _)) => return Err(said(&why)),
            }
        }
        Ok(())
    }

    /// Until all that was sealed is durable.
    fn wait_for_all(&mut self) -> io::Result<()> {
        let end = self.files.log().end().sequence();
        self.wait_for(end)
    }

    /// Until the entries before this one are durable.
    fn wait_for(&mut self, sequence: Sequence) -> io::Result<()> {
        let log = self.files.log();
        let end = log.end();
        log.want_durable(end);
        self.pump.turn(log);
        while self.files.log().durable().sequence() < sequence.min(end.sequence()) {
            self.pump.wait(self.files.log(), None)?;
        }
        Ok(())
    }

    /// Trims, and moves an old entry while the log is rather full: so that nobody waits for a whole lap.
    fn tidy(&mut self) -> io::Result<()> {
        self.files.trim();
        if self.files.wants_compaction() {
            self.compact()?;
        }
        self.pump.turn(self.files.log());
        Ok(())
    }

    fn compact(&mut self) -> io::Result<Compacted> {
        self.read = None;
        let compacted = self.files.compact(&mut self.pump, &mut self.entry);
        let compacted = compacted.map_err(|why| said(&why))?;
        if compacted == Compacted::Gathered {
            self.seal(Promise::Accepted)?;
        }
        Ok(compacted)
    }

    /// Compacts until there is room for so many bytes.
    ///
    /// Errors: `StorageFull` when a lap around the log has found none.
    fn make_room(&mut self, bytes: usize) -> io::Result<()> {
        let mut steps = 2 * self.files.entries() + 8;
        while !self.files.has_room(bytes) {
            steps = steps.checked_sub(1).ok_or_else(full)?;
            self.files.trim();
            if self.compact()? != Compacted::Moved {
                self.give_back()?;
            }
        }
        Ok(())
    }

    /// Until what is useless now is trimmed for good.
    fn give_back(&mut self) -> io::Result<()> {
        self.seal(Promise::Durable)?;
        self.wait_for_all()?;
        self.files.trim();
        let log = self.files.log();
        let head = log.head().sequence();
        log.anchor_soon();
        self.pump.turn(log);
        while self.files.log().trimmed().sequence() < head {
            self.pump.wait(self.files.log(), None)?;
        }
        Ok(())
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}

/// Bytes of buffers that a log's files need on a queue that makes them: what is gathered, and a window of what is under way.
pub const BUFFER_BYTES: usize = 8 << 20;
const _: () = assert!(BUFFER_BYTES > 2 * GATHER_BYTES_MAX && HEADER_BYTES < GATHER_BYTES_MAX);
