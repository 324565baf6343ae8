//! What `dladm` and `flowadm` kept, made again before the first program runs.
//!
//! The file lies where a volume or the image has it. Nothing about it may keep the machine
//! from starting: whatever is wrong with it is said, and the start goes on.

use mach::klog;
use mach::mem::fallible;
use mm::io::Sink;
use sync::{Error, Result};
use vfs::file::StatusFlags;
use vfs::{self, FileType, OpenHow, Walk};

/// Makes the links and flows that the file asks for, if there is one.
pub fn restore() {
    match read() {
        Ok(file) => {
            net::restore_links(&file, &mut |why| klog!("links refused: {why}"));
        }
        Err(Error::NotFound | Error::NotDirectory) => {}
        Err(error) => klog!("links refused: the file is not read: {error:?}"),
    }
}

/// Errors: `Invalid` for what is no regular file, `FileTooLarge`.
fn read() -> Result<alloc::vec::Vec<u8>> {
    let path = alloc::format!("/{}", net::LINKS_FILE);
    let place = vfs::resolve(None, path.as_bytes(), Walk::FOLLOW)?;
    // A pipe or a device would be waited for.
    if place.inode().kind() != FileType::Regular {
        return Err(Error::Invalid);
    }
    let how = OpenHow {
        status: StatusFlags::NONBLOCK,
        ..OpenHow::READ
    };
    let open = vfs::open(None, path.as_bytes(), &how)?;
    let size = open.metadata()?.size;
    if size > net::LINKS_FILE_BYTES_MAX as u64 {
        return Err(Error::FileTooLarge);
    }
    let mut bytes = fallible::zeroed(size as usize)?;
    let mut done = 0;
    while done < bytes.len() {
        let rest = bytes.get_mut(done..).unwrap_or_default();
        let mut sink = Sink::kernel(rest);
        match open.file.read_at(&open, done as u64, &mut sink)? {
            0 => break,
            count => done += count,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
