//! An area of a disk by the kernel's ring (`docs/vsa.md`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rt::AreaQueue;

use super::{BlockQueue, Buffer, Completion, Geometry, Request, Work};

/// How large its ring and memory are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AreaConfig {
    /// Requests under way at most, a power of two up to 4096.
    pub entries: u32,
    /// Bytes of memory for buffers, which counts with RLIMIT_MEMLOCK.
    pub memory_bytes: usize,
}

impl Default for AreaConfig {
    fn default() -> Self {
        Self {
            entries: 128,
            memory_bytes: 4 << 20,
        }
    }
}

/// See the module. After it was made smaller requests end as [`Revoked`](super::Outcome::Revoked) until it is
/// [renewed](Self::renew).
#[derive(Debug)]
pub struct Area(AreaQueue);

impl Area {
    /// Opens `/dev/vsa/NAME` and sets up its only ring.
    ///
    /// Errors: those of the system: no such area, another's, one that has a ring, too much pinned memory, a machine with an IOMMU.
    pub fn open(path: &Path, config: AreaConfig) -> io::Result<Self> {
        AreaQueue::open(path, config.entries, config.memory_bytes).map(Self)
    }

    /// The same of a descriptor that was passed on.
    ///
    /// Errors: those of [`open`](Self::open).
    pub fn over(file: OwnedFd, config: AreaConfig) -> io::Result<Self> {
        AreaQueue::over(file, config.entries, config.memory_bytes).map(Self)
    }

    /// Takes it as it is now, after it was resized: its geometry may be another.
    ///
    /// Errors: it was taken away for good.
    pub fn renew(&mut self) -> io::Result<()> {
        self.0.renew()
    }
}

impl BlockQueue for Area {
    fn geometry(&self) -> Geometry {
        Geometry {
            blocks: self.0.blocks(),
            block_bytes: self.0.block_bytes(),
        }
    }

    fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        let whole = bytes.checked_next_multiple_of(self.0.block_bytes() as usize)?;
        self.0.memory().buffer(whole)
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), Request> {
        let Request {
            operation,
            first,
            count,
            buffer,
            cookie,
        } = request;
        let submitted = self.0.submit(operation, (first, count), buffer, cookie);
        submitted.map_err(|buffer| Request {
            operation,
            first,
            count,
            buffer,
            cookie,
        })
    }

    #[inline]
    fn kick(&mut self) {
        self.0.kick();
    }

    #[inline]
    fn poll(&mut self) -> Option<Completion> {
        let ended = self.0.poll()?;
        Some(Completion {
            cookie: ended.cookie,
            outcome: ended.outcome,
            buffer: ended.buffer,
        })
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.wait(timeout)
    }

    fn put_off(&mut self) {
        self.0.put_off();
    }

    fn take_work(&mut self) -> Option<Work> {
        self.0.go_out().map(Work::Wait)
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn arm(&mut self) -> bool {
        self.0.arm()
    }
}
