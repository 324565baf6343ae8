//! Blocks that a program owns: a queue to them, whoever drives the disk.
//!
//! # Problem
//! A log or a tree on blocks wants many requests under way, no call for each, and no copy. Where the blocks are (an area of a
//! disk that the kernel translates, a function of the disk itself, a file of another system) is not its business.
//!
//! # Idea
//! A [`BlockQueue`] takes requests and gives completions, in any order. A [`Buffer`] moves into a request and comes
//! back with its completion: what a device may write is never seen by safe code.
//!
//! ```no_run
//! use sietch_io::storage::{BlockQueue, Operation, Outcome, Request};
//! fn read_first(queue: &mut dyn BlockQueue) -> std::io::Result<Vec<u8>> {
//!     let block = queue.geometry().block_bytes as usize;
//!     let buffer = queue.buffer(block).ok_or(std::io::ErrorKind::OutOfMemory)?;
//!     let request = Request { operation: Operation::Read, first: 0, count: 1, buffer: Some(buffer), cookie: 7 };
//!     queue.submit(request).map_err(|_| std::io::ErrorKind::WouldBlock)?;
//!     queue.kick();
//!     loop {
//!         match queue.poll() {
//!             Some(done) if done.outcome == Outcome::Done => return Ok(done.buffer.unwrap().to_vec()),
//!             Some(_) => return Err(std::io::ErrorKind::Other.into()),
//!             None => queue.wait(None)?,
//!         }
//!     }
//! }
//! ```
//!
//! # Order
//! Requests under way are in no order. A [`Operation::Flush`] covers the writes whose completions were *taken*
//! before it was submitted, and no others (`core/block`, `order`).

mod area;
mod file;
mod files;
mod log;
mod looks;
mod numbered;
mod nvme;
mod pump;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::time::Duration;

pub use area::{Area, AreaConfig};
pub use file::{Calls, DirectFile};
pub use files::{BUFFER_BYTES, LogFiles, Out};
pub use log::{Log, open_or_format};
pub use logfile::FileNumber;
pub use looks::{Look, Looks};
pub use nvme::NvmeQueue;
pub use plog::{AppendError, Item, Place, Ticket};
pub use pump::Pump;
pub use rt::{AreaWait, BlockMemory, Buffer};
pub use vsa::ring::{Operation, Outcome};

/// How many blocks, and how long each is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Blocks in all.
    pub blocks: u64,
    /// Bytes of a block: a power of two from 512 to 4096.
    pub block_bytes: u32,
}

/// What is to be done.
#[derive(Debug)]
pub struct Request {
    /// What.
    pub operation: Operation,
    /// The first block; 0 for a flush.
    pub first: u64,
    /// How many blocks; 0 for a flush.
    pub count: u64,
    /// Memory of the queue's for at least as many blocks; `None` for what moves nothing.
    pub buffer: Option<Buffer>,
    /// Comes back with the completion.
    pub cookie: u64,
}

/// A request that is over.
#[derive(Debug)]
pub struct Completion {
    /// The request's.
    pub cookie: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The request's.
    pub buffer: Option<Buffer>,
}

/// A queue to blocks that only its holder reaches.
pub trait BlockQueue {
    /// How many blocks there are, as of now.
    fn geometry(&self) -> Geometry;

    /// Memory that the device reaches, whole blocks; `None` if there is no more of it. It holds what was there before.
    fn buffer(&mut self, bytes: usize) -> Option<Buffer>;

    /// Takes a request; it comes back if as many as possible are under way. A request that cannot be (blocks that are not
    /// there, a buffer that is too short or another queue's) is taken, and its completion says so.
    fn submit(&mut self, request: Request) -> Result<(), Request>;

    /// What was submitted becomes known to who drives the device. No call while that is awake.
    fn kick(&mut self);

    /// Takes a completion, if one is there.
    fn poll(&mut self) -> Option<Completion>;

    /// Hands over what was submitted, as [`kick`](Self::kick) does, and waits until a completion is there, or for so long; a
    /// signal ends the wait. It may come back without. Who has nothing to do meanwhile saves the call that a kick may be.
    ///
    /// Errors: the blocks were taken away for good, and nothing is under way.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// What can be read when completions are there, for epoll: after [`arm`](Self::arm) said that none is.
    fn doorbell(&self) -> BorrowedFd<'_>;

    /// Asks for the doorbell with the next completion; false if one is there already, to be taken first.
    fn arm(&mut self) -> bool;

    /// Whether requests that the device was told of end without the kernel: who waits for one may look for it, by
    /// [`poll`](Self::poll).
    fn ends_without_kernel(&self) -> bool {
        false
    }

    /// Where calls of this process's make requests, or hand them over: those that come are put off until they are
    /// [taken](Self::take_work).
    fn put_off(&mut self) {}

    /// What was put off, to be carried out by a thread that does not have the queue. `None` where the device works by itself, or all
    /// is done.
    fn take_work(&mut self) -> Option<Work> {
        None
    }

    /// What became of that.
    fn take_back(&mut self, _done: Vec<Completion>) {}
}

/// What a thread does for a queue that it does not have.
#[derive(Debug)]
pub enum Work {
    /// Requests that are calls.
    Calls(Calls),
    /// A call that hands requests over and waits for an end of one.
    Wait(AreaWait),
}

impl Work {
    /// Does it; what became of it is the queue's ([`BlockQueue::take_back`]).
    pub fn carry_out(self) -> Vec<Completion> {
        match self {
            Self::Calls(calls) => calls.carry_out(),
            Self::Wait(wait) => {
                wait.carry_out(PATIENCE);
                Vec::new()
            }
        }
    }
}

/// So long a wait lasts before somebody sees whether the device is there still.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where areas have their names.
const AREAS: &str = "/dev/vsa";

/// Where PCI functions have theirs.
const FUNCTIONS: &str = "/sys/bus/pci/devices";

/// A queue to the blocks at a path, with about so many bytes of buffers, and the descriptors that it is made of: an area has a
/// ring, the folder of an NVMe function in `/sys/bus/pci/devices` one that the program drives, anything else is asked by system
/// calls.
///
/// Errors: those of opening it; `WouldBlock` or `ResourceBusy` if another process has them.
pub fn open(
    path: &Path,
    buffer_bytes: usize,
) -> io::Result<(Box<dyn BlockQueue + Send>, Vec<RawFd>)> {
    if path.starts_with(AREAS) {
        let config = AreaConfig::default();
        let memory_bytes = buffer_bytes.min(config.memory_bytes);
        let area = Area::open(
            path,
            AreaConfig {
                memory_bytes,
                ..config
            },
        )?;
        let own = vec![area.doorbell().as_raw_fd()];
        return Ok((Box::new(area), own));
    }
    if let Some(function) = path.strip_prefix(FUNCTIONS).ok().and_then(Path::to_str) {
        let queue = NvmeQueue::open(function, buffer_bytes)?;
        let own = vec![queue.doorbell().as_raw_fd()];
        return Ok((Box::new(queue), own));
    }
    let disk = DirectFile::open(path, buffer_bytes)?;
    let own = disk.descriptors().iter().map(AsRawFd::as_raw_fd).collect();
    Ok((Box::new(disk), own))
}
