//! Parts of a file without data, which are those of the host's file.

use core::ops::Range;

use fs_host::Holes;
use fuse::Request;
use sync::{Error, Result};

use crate::answer::Answer;
use crate::inode::Inode;

/// Linux's numbers, as the protocol wants them.
const FALLOC_KEEP_SIZE: u32 = 1;
const FALLOC_PUNCH_HOLE: u32 = 2;
const SEEK_DATA: u32 = 3;
const SEEK_HOLE: u32 = 4;

impl Holes for Inode {
    fn allocate(&self, range: Range<u64>, keep_size: bool, punch: bool) -> Result<()> {
        let handle = self.opened_to_write()?;
        let keep_size = if keep_size || punch {
            FALLOC_KEEP_SIZE
        } else {
            0
        };
        let punch_hole = if punch { FALLOC_PUNCH_HOLE } else { 0 };
        let request = Request::Fallocate {
            handle: handle.number,
            offset: range.start,
            len: range.end.saturating_sub(range.start),
            mode: keep_size | punch_hole,
        };
        self.call(request).map(drop)
    }

    fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        let handle = self.opened()?;
        let request = Request::Lseek {
            handle: handle.number,
            offset,
            whence: if hole { SEEK_HOLE } else { SEEK_DATA },
        };
        match self.call(request)? {
            Answer::Offset(found) if found >= offset => Ok(found),
            _ => Err(Error::Io),
        }
    }
}
