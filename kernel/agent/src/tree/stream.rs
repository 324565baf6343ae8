//! Whole records from and to pipes, which wait.

use alloc::sync::Arc;
use alloc::vec::Vec;

use agent::tree::{BROKEN_OFF, CHUNK_BYTES_MAX, Header, Kind, Trouble};
use mach::mem::fallible;
use mm::io::{Sink, Source};
use sync::{Error, Result};
use vfs::file::OpenFile;

/// Bytes of a chunk's length.
const LENGTH_BYTES: usize = 2;

/// Where records come from.
pub(super) struct Input {
    open: Arc<OpenFile>,
    chunk: Vec<u8>,
}

impl Input {
    pub(super) fn new(open: Arc<OpenFile>) -> Result<Self> {
        Ok(Self {
            open,
            chunk: fallible::zeroed(CHUNK_BYTES_MAX)?,
        })
    }

    /// The next record's header.
    ///
    /// Errors: `Invalid` for what is none, `BrokenPipe` at the end.
    pub(super) fn header(&mut self) -> Result<Header> {
        let mut bytes = [0; Header::BYTES];
        read_exact(&self.open, &mut bytes)?;
        Header::decode(&bytes).ok_or(Error::Invalid)
    }

    /// The next `len` bytes, of a name.
    pub(super) fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = fallible::zeroed(len)?;
        read_exact(&self.open, &mut bytes)?;
        Ok(bytes)
    }

    /// The next chunk; empty behind the last one.
    pub(super) fn chunk(&mut self) -> Result<&[u8]> {
        let mut len = [0; LENGTH_BYTES];
        read_exact(&self.open, &mut len)?;
        let len = usize::from(u16::from_le_bytes(len));
        let chunk = self.chunk.get_mut(..len).ok_or(Error::Invalid)?;
        read_exact(&self.open, chunk)?;
        Ok(chunk)
    }
}

fn read_exact(open: &OpenFile, mut to: &mut [u8]) -> Result<()> {
    while !to.is_empty() {
        let count = open.read(&mut Sink::kernel(to))?;
        if count == 0 {
            return Err(Error::BrokenPipe);
        }
        to = to.get_mut(count..).unwrap_or_default();
    }
    Ok(())
}

pub(super) fn write_all(open: &OpenFile, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let count = open.write(&mut Source::kernel(bytes))?;
        bytes = bytes.get(count..).unwrap_or_default();
    }
    Ok(())
}

/// Where records go.
pub(super) struct Output {
    open: Arc<OpenFile>,
    chunk: Vec<u8>,
}

impl Output {
    pub(super) fn new(open: Arc<OpenFile>) -> Result<Self> {
        Ok(Self {
            open,
            chunk: fallible::zeroed(LENGTH_BYTES + CHUNK_BYTES_MAX)?,
        })
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        write_all(&self.open, bytes)
    }

    /// A header with its name and target, whose lengths it has.
    pub(super) fn header(&self, header: &Header, name: &[u8], target: &[u8]) -> Result<()> {
        self.write(&header.encode())?;
        self.write(name)?;
        self.write(target)
    }

    /// That something failed.
    pub(super) fn trouble(&self, trouble: Trouble, name: &[u8]) -> Result<()> {
        self.header(&Header::of_trouble(trouble, name.len()), name, &[])
    }

    /// That nothing follows.
    pub(super) fn end(&self) -> Result<()> {
        self.header(&Header::of(Kind::End), &[], &[])
    }

    /// One chunk of what `read` gives, which is empty at the end of the file; whether there is more. What `read` fails
    /// with is `Ok(Err)`: then nothing is written.
    pub(super) fn chunk(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<Result<bool>> {
        let Some((len, room)) = self.chunk.split_first_chunk_mut() else {
            return Err(Error::Invalid);
        };
        let count = match read(room) {
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        // At most 32 KiB.
        *len = (count as u16).to_le_bytes();
        let whole = self.chunk.get(..LENGTH_BYTES + count).unwrap_or_default();
        self.write(whole)?;
        Ok(Ok(count != 0))
    }

    /// In the place of the next chunk: there is none, but not because the file ends.
    pub(super) fn break_off(&self) -> Result<()> {
        self.write(&BROKEN_OFF.to_le_bytes())
    }

    /// The chunk behind the last one.
    pub(super) fn no_chunk(&self) -> Result<()> {
        self.write(&[0; LENGTH_BYTES])
    }
}
