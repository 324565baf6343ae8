//! splice and tee: bytes through a pipe without the program's memory between.
//!
//! They pass through a buffer of one page. Bytes leave the source pipe only once the
//! target has taken them: the buffer is filled by looking, then as much is skipped.

use base::PAGE_BYTES;

use super::pipe::{Access, PipeEnd};
use crate::error::{Error, Result};
use crate::file::OpenFile;
use crate::io::{Sink, Source};

/// Whether a call may wait for a pipe.
pub use crate::socket::Blocking;

/// From a pipe to whatever `to` is, at `offset` if it has positions and one is given.
pub fn from_pipe(
    from: &PipeEnd,
    to: &OpenFile,
    offset: Option<u64>,
    count: usize,
    blocking: Blocking,
) -> Result<usize> {
    let mut buffer = alloc::vec![0; PAGE_BYTES.min(count)];
    let mut done = 0;
    while done < count {
        let wanted = buffer.len().min(count - done);
        // Only the first bytes are waited for.
        let may_wait = if done == 0 { blocking } else { Blocking::Never };
        let step = from
            .look(0, &mut buffer[..wanted], may_wait)
            .and_then(|len| {
                let source = &mut Source::kernel(&buffer[..len]);
                match offset {
                    Some(offset) => to.write_at(offset + done as u64, source),
                    None => to.write(source),
                }
            });
        match step {
            Ok(0) => break,
            Ok(moved) => {
                from.skip(moved);
                done += moved;
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// From whatever `from` is to a pipe, one buffer at a time: what was read must go in.
pub fn to_pipe(
    from: &OpenFile,
    offset: Option<u64>,
    to: &PipeEnd,
    count: usize,
    blocking: Blocking,
) -> Result<usize> {
    let mut buffer = alloc::vec![0; PAGE_BYTES.min(count)];
    let mut done = 0;
    while done < count {
        let may_wait = if done == 0 { blocking } else { Blocking::Never };
        let step = to.room(may_wait).and_then(|room| {
            let wanted = buffer.len().min(count - done).min(room);
            let sink = &mut Sink::kernel(&mut buffer[..wanted]);
            match offset {
                Some(offset) => from.read_at(offset + done as u64, sink),
                None if done != 0 && !from.file.is_seekable() => Ok(0),
                None => from.read(sink),
            }
        });
        match step {
            Ok(0) => break,
            Ok(len) => done += to.put(&buffer[..len])?,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// From a pipe to another; with `keep` the bytes also stay (tee).
pub fn between(
    from: &PipeEnd,
    to: &PipeEnd,
    count: usize,
    keep: Keep,
    blocking: Blocking,
) -> Result<usize> {
    if alloc::sync::Arc::ptr_eq(&from.pipe, &to.pipe) {
        return Err(Error::Invalid);
    }
    let mut buffer = alloc::vec![0; PAGE_BYTES.min(count)];
    let mut done = 0;
    while done < count {
        let may_wait = if done == 0 { blocking } else { Blocking::Never };
        let kept = if keep == Keep::Yes { done } else { 0 };
        let step = to.room(may_wait).and_then(|room| {
            let wanted = buffer.len().min(count - done).min(room);
            let len = from.look(kept, &mut buffer[..wanted], may_wait)?;
            to.put(&buffer[..len])
        });
        match step {
            Ok(0) => break,
            Ok(moved) => {
                if keep == Keep::No {
                    from.skip(moved);
                }
                done += moved;
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Whether bytes stay in the pipe that they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// They move.
    No,
    /// They are copied.
    Yes,
}

/// The pipe behind an opening, if it is one that may be used so.
pub fn end_of(open: &OpenFile, access: Access) -> Result<Option<&PipeEnd>> {
    match open.file.as_any().downcast_ref::<PipeEnd>() {
        Some(end) if end.access().contains(access) => Ok(Some(end)),
        Some(_) => Err(Error::BadFile),
        None => Ok(None),
    }
}
