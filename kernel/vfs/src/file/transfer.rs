//! Transfers that are begun and not waited for, as io_submit(2) and io_uring ask for them.
//!
//! A file that can begins one ([`File::begin`](super::File::begin)) and returns at once; whoever takes what
//! the device has ended tells the [`TransferEnd`]. Several that are begun one after the other are shown to the
//! device together ([`Begun`]).

use alloc::sync::Arc;
use core::ops::Range;

use mm::Page;
use mm::io::UserRange;
use sync::{Error, Result};

use super::{FileRef, OpenFile};

/// What its beginner calls a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tag(pub [u64; 3]);

/// Who hears of the ends of transfers.
pub trait TransferEnd: Send + Sync {
    /// The transfer has ended, having moved so many bytes. It must not block, nor begin another.
    fn ended(&self, tag: Tag, result: Result<usize>);
}

/// The memory of a transfer.
#[derive(Clone)]
pub enum Memory<'a> {
    /// Of the running program.
    Ranges(&'a [UserRange]),
    /// These bytes of pages that are pinned and lie one behind the other.
    Pages(&'a [Page], Range<usize>),
}

impl Memory<'_> {
    /// Bytes of all of it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Ranges(ranges) => ranges.iter().map(|range| range.len).sum(),
            Self::Pages(_, bytes) => bytes.len(),
        }
    }
}

/// A transfer that is to begin.
pub struct Transfer<'a> {
    /// From memory to the file.
    pub is_write: bool,
    /// Where in the file.
    pub offset: u64,
    /// The memory.
    pub memory: Memory<'a>,
    /// What is written is to be on the medium at its end.
    pub is_synced: bool,
    /// Who hears of its end.
    pub end: Arc<dyn TransferEnd>,
    /// See `end`.
    pub tag: Tag,
}

impl OpenFile {
    /// Begins a transfer, if the file was opened for such; see [`File::begin`](super::File::begin).
    pub fn begin(&self, transfer: Transfer<'_>) -> Option<Result<()>> {
        let may = match transfer.is_write {
            true => self.is_writable(),
            false => self.is_readable(),
        };
        match may {
            true => self.file.begin(self, transfer),
            false => Some(Err(Error::BadFile)),
        }
    }
}

/// Files whose transfers were begun, and are still to be shown to their devices.
#[derive(Default)]
pub struct Begun(Option<FileRef>);

impl Begun {
    /// A transfer of `file` was begun.
    pub fn note(&mut self, file: &FileRef) {
        if self
            .0
            .as_ref()
            .is_none_or(|known| !Arc::ptr_eq(known, file))
        {
            self.send();
            self.0 = Some(file.clone());
        }
    }

    /// Shows them.
    pub fn send(&mut self) {
        if let Some(file) = self.0.take() {
            file.send_begun();
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.send();
    }
}
