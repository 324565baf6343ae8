//! What programs pass, and what they are told.

use alloc::sync::Arc;

use base::VirtAddr;
use cred::Resource;
use mm::user;
use sync::{Error, Result};
use task::current;
use vfio::Argument;
use vfs::file::{FileRef, OpenFile, StatusFlags};

/// The structure at `at`.
///
/// Errors: `Invalid` if the program says that it has too few bytes, `BadAddress`.
pub fn read<T: Argument>(at: u64) -> Result<T> {
    let mut value = T::new_zeroed();
    let bytes = value.as_mut_bytes();
    // tidy: a structure has the bytes that it needs.
    user::copy_in(VirtAddr(at), &mut bytes[..T::BYTES_MIN])?;
    match value.argsz() as usize >= T::BYTES_MIN {
        true => Ok(value),
        false => Err(Error::Invalid),
    }
}

/// Tells the program, as far as it has the bytes.
pub fn write<T: Argument>(at: u64, value: &T, argsz: u32) -> Result<()> {
    let bytes = value.as_bytes();
    let len = bytes.len().min((argsz as usize).max(T::BYTES_MIN));
    // tidy: `len` is no more than there are.
    user::copy_out(&bytes[..len], VirtAddr(at))
}

/// The open file of a descriptor.
pub fn open_file(fd: i32) -> Result<Arc<OpenFile>> {
    let fd = u32::try_from(fd).map_err(|_| Error::BadFile)?;
    current().files.get().get(fd)
}

/// A descriptor for a file, closed by execve.
pub fn give_descriptor(file: FileRef) -> Result<usize> {
    let open = OpenFile::new(file, StatusFlags::RDWR);
    let me = current();
    let limit = me.process.limits.soft(Resource::Files);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    Ok(me.files.get().insert(open, true, 0, limit)? as usize)
}
