//! splice and tee: bytes through a pipe without the program's memory between.
//!
//! The pages of a file go into the pipe on loan (`ipc::pipe`), as `transfer` finds them, and
//! out of it into a connection or another pipe: nothing is copied. Everything else passes
//! through a buffer of one page. Bytes leave the source pipe only once the target has taken
//! them: we hold them, look at them, then skip as many.

use alloc::vec::Vec;

use base::PAGE_BYTES;
use mm::io::{Sink, Source};
use sync::{Error, Result};

use super::pipe::{Access, PipeEnd};
use crate::transfer;
use vfs::file::OpenFile;
use vfs::socket::Socket;

/// Whether a call may wait for a pipe.
pub use vfs::socket::Blocking;

/// From a pipe to whatever `to` is, at `offset` if it has positions and one is given.
pub fn from_pipe(
    from: &PipeEnd,
    to: &OpenFile,
    offset: Option<u64>,
    count: usize,
    blocking: Blocking,
) -> Result<usize> {
    let mut buffer = Vec::new();
    in_steps(count, blocking, &mut |done, may_wait| {
        let hold = from.hold(may_wait)?;
        let moved = match lend_to_socket(from, to, count - done)? {
            0 => {
                let bytes = space(&mut buffer, count - done);
                let len = from.look(0, bytes)?;
                let source = &mut Source::kernel(&bytes[..len]);
                match offset {
                    Some(offset) => to.write_at(offset + done as u64, source)?,
                    None => to.write(source)?,
                }
            }
            lent => lent,
        };
        hold.skip(moved);
        Ok(moved)
    })
}

/// Gives `to` the pages that come next in the pipe, at most `limit` bytes, if it is a connection;
/// returns how many it took.
fn lend_to_socket(from: &PipeEnd, to: &OpenFile, limit: usize) -> Result<usize> {
    let socket = to.file.as_socket();
    let Some(sink) = socket.and_then(Socket::page_sink) else {
        return Ok(0);
    };
    match from.share(0, limit) {
        none if none.is_empty() => Ok(0),
        pages => sink.write_pages(to, pages),
    }
}

/// From whatever `from` is to a pipe. What was read into the buffer must go in.
pub fn to_pipe(
    from: &OpenFile,
    offset: Option<u64>,
    to: &PipeEnd,
    count: usize,
    blocking: Blocking,
) -> Result<usize> {
    let mut buffer = Vec::new();
    in_steps(count, blocking, &mut |done, may_wait| {
        let left = count - done;
        let room = to.room(may_wait)?;
        let offset = offset.map(|offset| offset + done as u64);
        let lent = transfer::lend_at(from, offset, room.min(left), &mut |pages| to.lend(pages))?;
        if lent != 0 {
            return Ok(lent);
        }
        let bytes = space(&mut buffer, left.min(room));
        let sink = &mut Sink::kernel(bytes);
        let len = match offset {
            Some(offset) => from.read_at(offset, sink)?,
            None if done != 0 && !from.file.is_seekable() => 0,
            None => from.read(sink)?,
        };
        to.put(&bytes[..len])
    })
}

/// From a program's memory to a pipe, as much as fits: only room for the first bytes is waited
/// for. They are copied, not lent: the program may change them at once.
pub fn from_memory(from: &mut Source<'_>, to: &PipeEnd, blocking: Blocking) -> Result<usize> {
    match from.remaining() {
        0 => Ok(0),
        _ => to.fill(from, blocking),
    }
}

/// From a pipe to a program's memory.
pub fn to_memory(from: &PipeEnd, to: &mut Sink<'_>, blocking: Blocking) -> Result<usize> {
    from.pipe.read(to, blocking == Blocking::Never)
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
    let mut buffer = Vec::new();
    in_steps(count, blocking, &mut |done, may_wait| {
        let left = count - done;
        let kept = if keep == Keep::Yes { done } else { 0 };
        let room = to.room(may_wait)?;
        let hold = match keep {
            Keep::No => Some(from.hold(may_wait)?),
            Keep::Yes => from.wait_for_bytes(kept, may_wait).map(|()| None)?,
        };
        let moved = match to.lend(from.share(kept, left))? {
            0 => {
                let bytes = space(&mut buffer, left.min(room));
                let len = from.look(kept, bytes)?;
                to.put(&bytes[..len])?
            }
            lent => lent,
        };
        if let Some(hold) = hold {
            hold.skip(moved);
        }
        Ok(moved)
    })
}

/// Calls `step` with the bytes that are done, and whether it may wait, until it moves none or
/// `count` are done. Only the first bytes are waited for. An error shows if nothing went before.
fn in_steps(
    count: usize,
    blocking: Blocking,
    step: &mut dyn FnMut(usize, Blocking) -> Result<usize>,
) -> Result<usize> {
    let mut done = 0;
    while done < count {
        let may_wait = if done == 0 { blocking } else { Blocking::Never };
        match step(done, may_wait) {
            Ok(0) => break,
            Ok(moved) => done += moved,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// At most a page of `buffer` for so many bytes.
fn space(buffer: &mut Vec<u8>, wanted: usize) -> &mut [u8] {
    buffer.resize(wanted.min(PAGE_BYTES), 0);
    buffer
}

/// Whether bytes stay in the pipe that they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// They move.
    No,
    /// They are copied.
    Yes,
}

/// The pipe behind an open file, if it is one that may be used so.
pub fn end_of(open: &OpenFile, access: Access) -> Result<Option<&PipeEnd>> {
    match open.file.as_any().downcast_ref::<PipeEnd>() {
        Some(end) if end.access().contains(access) => Ok(Some(end)),
        Some(_) => Err(Error::BadFile),
        None => Ok(None),
    }
}
