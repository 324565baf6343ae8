//! A disk or a file of the kernel's as a queue of blocks: each request is a system call or two, made when it is submitted.
//!
//! It serves where a program has no area of its own, on Linux as well. Nothing is under way when `submit` comes back, so
//! the doorbell never has to ring. A program with threads may have the calls made without the queue ([`Calls`]), which others use
//! meanwhile. The disk is locked for the process that has it (`flock`, shared with nobody).

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, PipeReader, PipeWriter, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{
    BlockMemory, BlockQueue, Buffer, Completion, Geometry, Operation, Outcome, Request, Work,
};

/// As include/uapi/asm-generic/fcntl.h has them.
const O_DIRECT: i32 = 0o40000;
const O_DSYNC: i32 = 0o10000;
/// The block of a disk that takes no smaller ones.
const LARGE_BLOCK: u32 = 4096;
const SMALL_BLOCK: u32 = 512;

/// An open disk, or a file of a fixed length.
#[derive(Debug)]
pub struct DirectFile {
    disk: Arc<Disk>,
    memory: BlockMemory,
    done: VecDeque<Completion>,
    /// What was submitted since somebody asked to carry it out.
    put_off: Option<Vec<Request>>,
    /// Never readable: see [`arm`](BlockQueue::arm).
    doorbell: PipeReader,
    /// Without it the other end would say that nobody writes any more.
    silent: PipeWriter,
}

/// What calls need.
#[derive(Debug)]
struct Disk {
    file: File,
    /// The same, where each write survives before it returns: one call, and on a disk that can force writes no flush.
    forced: File,
    geometry: Geometry,
}

/// Requests whose calls are made by whoever has this.
#[derive(Debug)]
pub struct Calls {
    disk: Arc<Disk>,
    requests: Vec<Request>,
}

impl Calls {
    /// Makes the calls.
    pub(super) fn carry_out(self) -> Vec<Completion> {
        let Self { disk, requests } = self;
        requests.into_iter().map(|it| disk.complete(it)).collect()
    }
}

impl DirectFile {
    /// Opens it, past the kernel's cache if it can be, with so many bytes of buffers.
    ///
    /// Errors: of `open(2)`; `WouldBlock` if another process has it.
    pub fn open(path: &Path, buffer_bytes: usize) -> io::Result<Self> {
        let mut file = open_with(path, 0)?;
        let forced = open_with(path, O_DSYNC)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        let bytes = file.seek(SeekFrom::End(0))?;
        let memory = BlockMemory::new(buffer_bytes)?;
        let block_bytes = block_of(&file, &memory);
        let geometry = Geometry {
            blocks: bytes / u64::from(block_bytes),
            block_bytes,
        };
        let (doorbell, silent) = io::pipe()?;
        let disk = Disk {
            file,
            forced,
            geometry,
        };
        Ok(Self {
            disk: Arc::new(disk),
            memory,
            done: VecDeque::new(),
            put_off: None,
            doorbell,
            silent,
        })
    }

    /// The descriptors that it is made of.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        [
            self.disk.file.as_fd(),
            self.disk.forced.as_fd(),
            self.doorbell.as_fd(),
            self.silent.as_fd(),
        ]
    }
}

impl Disk {
    fn complete(&self, mut request: Request) -> Completion {
        let outcome = match self.carry_out(&mut request) {
            Ok(()) => Outcome::Done,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Outcome::OutOfArea,
            Err(_) => Outcome::Failed,
        };
        Completion {
            cookie: request.cookie,
            outcome,
            buffer: request.buffer,
        }
    }

    fn carry_out(&self, request: &mut Request) -> io::Result<()> {
        let block_bytes = u64::from(self.geometry.block_bytes);
        let end = request.first.checked_add(request.count);
        if end.is_none_or(|end| end > self.geometry.blocks) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let at = request.first * block_bytes;
        let bytes = (request.count * block_bytes) as usize;
        let buffer = request.buffer.as_deref_mut();
        let memory = buffer.and_then(|buffer| buffer.get_mut(..bytes));
        let memory = memory.ok_or(io::ErrorKind::InvalidInput);
        match request.operation {
            Operation::Read => self.file.read_exact_at(memory?, at),
            Operation::Write { is_forced: true } => self.forced.write_all_at(memory?, at),
            Operation::Write { is_forced: false } => self.file.write_all_at(memory?, at),
            Operation::Flush => self.file.sync_data(),
            // What is of no use any more may stay.
            Operation::Discard => Ok(()),
        }
    }
}

/// Past the kernel's cache, where that can be.
fn open_with(path: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let direct = options.clone().custom_flags(O_DIRECT | flags).open(path);
    match direct {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            options.custom_flags(flags).open(path)
        }
        opened => opened,
    }
}

/// The smallest block that it reads.
fn block_of(file: &File, memory: &BlockMemory) -> u32 {
    let buffer = memory.buffer(SMALL_BLOCK as usize);
    let reads = buffer.is_some_and(|mut buffer| file.read_exact_at(&mut buffer, 512).is_ok());
    if reads { SMALL_BLOCK } else { LARGE_BLOCK }
}

impl BlockQueue for DirectFile {
    fn geometry(&self) -> Geometry {
        self.disk.geometry
    }

    fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        self.memory.buffer(bytes)
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        match &mut self.put_off {
            Some(requests) => requests.push(request),
            None => self.done.push_back(self.disk.complete(request)),
        }
        Ok(())
    }

    fn put_off(&mut self) {
        self.put_off.get_or_insert_default();
    }

    fn take_work(&mut self) -> Option<Work> {
        let requests = self.put_off.take()?;
        let disk = self.disk.clone();
        Some(Work::Calls(Calls { disk, requests }))
    }

    fn take_back(&mut self, done: Vec<Completion>) {
        self.done.extend(done);
    }

    fn kick(&mut self) {}

    fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    fn wait(&mut self, _: Option<Duration>) -> io::Result<()> {
        // Who waits with the queue in hand does what was put off.
        let requests = self.put_off.as_mut().map(std::mem::take);
        for request in requests.unwrap_or_default() {
            self.done.push_back(self.disk.complete(request));
        }
        Ok(())
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn arm(&mut self) -> bool {
        self.done.is_empty()
    }
}
