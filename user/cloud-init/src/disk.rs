//! Disks, read within bounds: file systems on them are somebody's input, and their lists may be rings.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Disks and partitions.
const DISKS: &str = "/sys/class/block";
/// Of which so many are looked at.
const DISKS_MAX: usize = 64;
/// What is read of one in all.
const READ_BYTES_MAX: u64 = 16 << 20;
/// What a read costs besides its bytes.
const READ_COST: u64 = 64;

/// The machine's disks and their partitions, by name.
pub fn all() -> Vec<PathBuf> {
    let listing = fs::read_dir(DISKS).into_iter().flatten().flatten();
    let mut names: Vec<_> = listing.map(|entry| entry.file_name()).collect();
    names.sort();
    names.truncate(DISKS_MAX);
    names
        .iter()
        .map(|name| Path::new("/dev").join(name))
        .collect()
}

/// Opens a disk to read it.
pub fn open(path: &Path) -> io::Result<Bounded<File>> {
    Ok(Bounded::new(File::open(path)?))
}

/// What can be read so far and no further, and never be written.
#[derive(Debug)]
pub struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R> Bounded<R> {
    /// Reads `inner` up to a bound that no seed comes near.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            left: READ_BYTES_MAX,
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let refusal = || io::Error::other("its lists have no end");
        self.left = self.left.checked_sub(READ_COST).ok_or_else(refusal)?;
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(to.len());
        let read = self.inner.read(to.get_mut(..most).unwrap_or_default())?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

impl<R: Seek> Seek for Bounded<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// For `fatfs`, which writes when it is told to.
impl<R> Write for Bounded<R> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_without_end_ends_with_an_error() {
        let mut disk = Bounded::new(io::repeat(1));
        let read = io::copy(&mut disk, &mut io::sink());
        assert!(read.is_err());
        assert!(disk.left < READ_COST);
        assert!(disk.write(b"x").is_err());
    }
}
