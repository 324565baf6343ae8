//! A ring to an area of a disk (`/dev/vsa/NAME`, `core/vsa`, `docs/vsa.md`).
//!
//! What was submitted is kept in a slot until its completion, whose cookie is the slot's number: a buffer that the device has is
//! nobody's (**Apart**). If the queue goes while requests are under way their buffers' pages stay taken for ever.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use vsa::control::{BELL, BELL_AND_WAIT, GEOMETRY, REGISTER, RENEW, SETUP};
use vsa::ring::{Operation, Outcome, Program, RingSize, Submission};

use crate::blocks::{BlockMemory, Buffer};
use crate::ring::RingMemory;

/// A request that is over: the caller's cookie, how it ended, its buffer.
#[derive(Debug)]
pub struct Ended {
    /// The request's.
    pub cookie: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The request's.
    pub buffer: Option<Buffer>,
}

/// What is under way.
#[derive(Debug, Default)]
struct Slot {
    cookie: u64,
    buffer: Option<Buffer>,
}

/// See the module.
#[derive(Debug)]
pub struct AreaQueue {
    file: Arc<OwnedFd>,
    ring: Program<RingMemory>,
    memory: BlockMemory,
    slots: Box<[Slot]>,
    free: Vec<u32>,
    /// Requests that cannot be, and were not submitted.
    refused: VecDeque<Ended>,
    geometry: [u64; 2],
    /// Whoever waits hands over what is submitted.
    is_put_off: bool,
}

impl AreaQueue {
    /// Opens an area and sets up its ring, with this many entries (a power of two) and bytes of memory.
    ///
    /// Errors: those of the system: `EACCES` to others' areas, `EBUSY` if it has a ring, `ENOBUFS` beyond RLIMIT_MEMLOCK,
    /// `EOPNOTSUPP` where an IOMMU translates.
    pub fn open(path: &Path, entries: u32, bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Self::over(file.into(), entries, bytes)
    }

    /// The same of a descriptor that somebody passed on.
    ///
    /// Errors: those of [`open`](Self::open).
    pub fn over(file: OwnedFd, entries: u32, bytes: usize) -> io::Result<Self> {
        let size = RingSize::new(entries).ok_or(io::ErrorKind::InvalidInput)?;
        ask(&file, SETUP, u64::from(entries))?;
        let memory = BlockMemory::new(bytes)?;
        let range = [memory.address() as u64, memory.bytes() as u64];
        ask(&file, REGISTER, range.as_ptr().addr() as u64)?;
        let ring = RingMemory::map(file.as_fd(), size.bytes(), 0)?;
        let geometry = tell(&file, GEOMETRY)?;
        Ok(Self {
            ring: Program::new(ring, size),
            memory,
            slots: (0..entries).map(|_| Slot::default()).collect(),
            free: (0..entries).rev().collect(),
            refused: VecDeque::new(),
            geometry,
            file: Arc::new(file),
            is_put_off: false,
        })
    }

    /// Blocks, as of when it was opened or renewed.
    pub fn blocks(&self) -> u64 {
        self.geometry[0]
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u32 {
        self.geometry[1] as u32
    }

    /// The memory that the device reaches.
    pub fn memory(&self) -> &BlockMemory {
        &self.memory
    }

    /// Submits a request; gives the buffer back if as many as possible are under way.
    #[inline]
    pub fn submit(
        &mut self,
        operation: Operation,
        blocks: (u64, u64),
        buffer: Option<Buffer>,
        cookie: u64,
    ) -> Result<(), Option<Buffer>> {
        let Some(slot) = self.free.pop() else {
            return Err(buffer);
        };
        let (first, count) = blocks;
        let Some(memory) = self.place(operation, count, buffer.as_ref()) else {
            self.free.push(slot);
            let outcome = Outcome::OutOfMemory;
            self.refused.push_back(Ended {
                cookie,
                outcome,
                buffer,
            });
            return Ok(());
        };
        self.slots[slot as usize] = Slot { cookie, buffer };
        self.ring.push(&Submission {
            operation,
            first,
            count,
            memory,
            cookie: slot.into(),
        });
        Ok(())
    }

    /// Where the request's memory begins, if it is ours and long enough.
    #[inline]
    fn place(&self, operation: Operation, count: u64, buffer: Option<&Buffer>) -> Option<u64> {
        if !matches!(operation, Operation::Read | Operation::Write { .. }) {
            return Some(0);
        }
        let buffer = buffer.filter(|buffer| self.memory.has(buffer))?;
        let bytes = count.checked_mul(self.geometry[1])?;
        (bytes <= buffer.len() as u64).then(|| buffer.offset())
    }

    /// Shows the kernel what was submitted, with a call only if it sleeps. What is wrong with the ring is said by
    /// [`wait`](Self::wait).
    #[inline]
    pub fn kick(&mut self) {
        if !self.is_put_off && self.ring.show() {
            let _ = ask(&self.file, BELL, 0);
        }
    }

    /// Takes a completion.
    #[inline]
    pub fn poll(&mut self) -> Option<Ended> {
        if let Some(refused) = self.refused.pop_front() {
            return Some(refused);
        }
        let (slot, outcome) = self.ring.pop()?;
        let Slot { cookie, buffer } = std::mem::take(self.slots.get_mut(slot as usize)?);
        self.free.push(slot as u32);
        Some(Ended {
            cookie,
            outcome,
            buffer,
        })
    }

    /// Asks for the descriptor to be readable with the next completion; false if one is there.
    pub fn arm(&mut self) -> bool {
        self.refused.is_empty() && self.ring.arm()
    }

    /// Shows the kernel what was submitted and waits until a completion is there, or for so long, all in one call; a signal
    /// ends the wait.
    ///
    /// Errors: the area was taken away, or the ring is not used any more.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.is_put_off = false;
        self.ring.show();
        if !self.refused.is_empty() || self.ring.has_completion() {
            return Ok(());
        }
        bell_and_wait(&self.file, timeout)
    }

    /// What is submitted from now on is handed over by the next [wait](Self::wait), or by who [goes out](Self::go_out).
    pub fn put_off(&mut self) {
        self.is_put_off = true;
    }

    /// What hands it over and waits without the queue, unless there is nothing to wait for.
    pub fn go_out(&mut self) -> Option<AreaWait> {
        self.is_put_off = false;
        self.ring.show();
        let is_due = self.ring.under_way() != 0 && !self.ring.has_completion();
        (is_due && self.refused.is_empty()).then(|| AreaWait(self.file.clone()))
    }

    /// Takes the area as it is now, after requests ended with [`Outcome::Revoked`].
    ///
    /// Errors: `ENODEV` if it was taken away for good.
    pub fn renew(&mut self) -> io::Result<()> {
        self.geometry = tell(&self.file, RENEW)?;
        Ok(())
    }
}

/// A wait for a completion that somebody does who does not have the queue.
#[derive(Debug)]
pub struct AreaWait(Arc<OwnedFd>);

impl AreaWait {
    /// Hands over what was submitted, and waits for so long at most. What is wrong with the ring is said by
    /// [`AreaQueue::wait`].
    pub fn carry_out(self, timeout: Duration) {
        let _ = bell_and_wait(&self.0, Some(timeout));
    }
}

/// Until a completion is there, a signal comes, or for so long.
fn bell_and_wait(file: &OwnedFd, timeout: Option<Duration>) -> io::Result<()> {
    let nanos = timeout.map_or(u64::MAX, |timeout| {
        timeout.as_nanos().min(u64::MAX.into()) as u64
    });
    match ask(file, BELL_AND_WAIT, nanos) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::Interrupted | io::ErrorKind::TimedOut
            ) =>
        {
            Ok(())
        }
        waited => waited,
    }
}

impl AsFd for AreaQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for AreaQueue {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            std::mem::forget(slot.buffer.take());
        }
    }
}

/// Two words that the kernel tells.
fn tell(file: &OwnedFd, request: u32) -> io::Result<[u64; 2]> {
    let mut words = [0; 2];
    ask(file, request, words.as_mut_ptr().addr() as u64)?;
    Ok(words)
}

fn ask(file: &OwnedFd, request: u32, argument: u64) -> io::Result<()> {
    // SAFETY: the argument is a number, or the address of two words that outlive the call, which is all that the request reads
    // or writes. REGISTER's range is block memory, which stays mapped (Mapped) or the program's no more.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), request as libc::Ioctl, argument) };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
