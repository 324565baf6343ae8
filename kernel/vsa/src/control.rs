//! `/dev/vsa/control`: a line written is a request, and what is read tells of all catalogues (`core/vsa`, `control`).

use alloc::string::String;
use core::any::Any;

use mach::mem::fallible;
use mm::io::{Sink, Source};
use sync::{Error, Mutex, Result};
use vfs::file::{File, FileRef, OpenFile};
use vsa::control::Request;

use crate::catalogues;

/// Bytes of a line.
const LINE_BYTES: usize = 256;

/// What is read is from when the first byte of it was.
#[derive(Default)]
struct Control(Mutex<String>);

/// Opens it.
pub fn open() -> Result<FileRef> {
    Ok(fallible::arc(Control::default())?)
}

impl File for Control {
    fn is_seekable(&self) -> bool {
        true
    }

    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let mut text = self.0.lock();
        if offset == 0 {
            *text = catalogues::tell();
        }
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        to.put(text.as_bytes().get(from..).unwrap_or(&[]))
    }

    fn write_at(&self, _open: &OpenFile, _offset: u64, from: &mut Source<'_>) -> Result<usize> {
        let mut line = [0; LINE_BYTES];
        let len = from.remaining();
        let line = line.get_mut(..len).ok_or(Error::Invalid)?;
        from.take_whole(line)?;
        match Request::parse(line).ok_or(Error::Invalid)? {
            Request::Format { disk } => catalogues::format(disk),
            Request::Create {
                disk,
                owner,
                bytes,
                name,
            } => catalogues::create(disk, owner, bytes, name),
            Request::Resize { bytes, name } => catalogues::resize(bytes, name),
            Request::Delete { name } => catalogues::delete(name),
            Request::Revoke { name } => catalogues::revoke(name),
            Request::Quota { disk, owner, bytes } => catalogues::set_quota(disk, owner, bytes),
        }?;
        Ok(len)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
