//! Bytes from one file to another, without a program's memory between.
//!
//! A connection gets a file's pages themselves, on loan (`mbuf::ExternalStorage`) until its peer has
//! acknowledged them: as on Linux, what is written to the file meanwhile may reach the
//! peer. So does a pipe (`ipc::splice`), until they are read. Pages that are not at hand, and
//! whatever goes elsewhere, pass through a buffer. What the target does not take is not consumed
//! from the source, as the source is read at an offset.

use alloc::vec::Vec;

use base::PAGE_BYTES;
use mach::mem::Pinned;
use mach::mem::fallible::TryGrow;
use mbuf::{Chain, Mbuf};
use mm::io::{Sink, Source};
use mm::{MemoryObject, Sharing};
use sync::Result;

use vfs::file::OpenFile;
use vfs::socket::Socket;

/// Bytes that pass at a time.
const CHUNK_BYTES: usize = 64 << 10;
const PAGE: u64 = PAGE_BYTES as u64;

/// From a file at `offset` to whatever `to` is; returns the bytes that passed.
pub fn to_stream(from: &OpenFile, offset: u64, to: &OpenFile, count: usize) -> Result<usize> {
    let sink = to.file.as_socket().and_then(Socket::page_sink);
    let lender = sink.zip(from.file.clone().memory());
    let mut buffer = Vec::new();
    in_steps(count, &mut |done, left| {
        let at = offset + done as u64;
        if let Some((sink, memory)) = &lender
            && let Some(pages) = lend(&**memory, at, left)
        {
            from.note_read();
            return Ok((pages.len(), sink.write_pages(to, pages)?));
        }
        pass(from, at, left, &mut buffer, &mut |bytes| {
            to.write(&mut Source::kernel(bytes))
        })
    })
}

/// From a file to a place in another.
pub fn between_files(
    from: &OpenFile,
    source: u64,
    to: &OpenFile,
    target: u64,
    count: usize,
) -> Result<usize> {
    let mut buffer = Vec::new();
    in_steps(count, &mut |done, left| {
        let at = source + done as u64;
        pass(from, at, left, &mut buffer, &mut |bytes| {
            to.write_at(target + done as u64, &mut Source::kernel(bytes))
        })
    })
}

/// Offers pages of a file at `offset`, or at its position, which moves on: at most `limit` bytes.
/// `give` takes the first of them and returns how many. 0 if `from` has no pages at hand.
pub fn lend_at(
    from: &OpenFile,
    offset: Option<u64>,
    limit: usize,
    give: &mut dyn FnMut(Chain) -> Result<usize>,
) -> Result<usize> {
    let memory = from.file.clone().memory();
    let Some(memory) = memory.filter(|_| from.is_regular()) else {
        return Ok(0);
    };
    let mut give_at = |at| lend(&*memory, at, limit).map_or(Ok(0), &mut *give);
    let given = match offset {
        Some(at) => give_at(at)?,
        None => {
            let mut position = from.position.lock();
            let given = give_at(*position)?;
            *position += given as u64;
            given
        }
    };
    if given != 0 {
        from.note_read();
    }
    Ok(given)
}

/// Calls `step` with the bytes that are done and those that are left, until it moves fewer than it
/// has read; it returns both. An error shows if nothing went before.
fn in_steps(
    count: usize,
    step: &mut dyn FnMut(usize, usize) -> Result<(usize, usize)>,
) -> Result<usize> {
    let mut done = 0;
    while done < count {
        match step(done, count - done) {
            Ok((read, given)) => {
                done += given;
                if given < read || read == 0 {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Reads a chunk by way of `buffer` and gives it away; returns the bytes read and given.
fn pass(
    from: &OpenFile,
    at: u64,
    left: usize,
    buffer: &mut Vec<u8>,
    give: &mut dyn FnMut(&[u8]) -> Result<usize>,
) -> Result<(usize, usize)> {
    buffer.clear();
    buffer.make_room(CHUNK_BYTES.min(left))?;
    buffer.resize(CHUNK_BYTES.min(left), 0);
    match from.read_at(at, &mut Sink::kernel(buffer))? {
        0 => Ok((0, 0)),
        read => Ok((read, give(&buffer[..read])?)),
    }
}

/// At most a chunk of a file's pages from byte `at` on, up to the first that is not at hand;
/// `None` if that is the first, or the file ends before.
fn lend(memory: &dyn MemoryObject, at: u64, left: usize) -> Option<Chain> {
    // Asking for the size may be expensive, where nothing is at hand.
    memory.ready_page(at / PAGE, Sharing::Private)?;
    let wanted = memory.size().saturating_sub(at).min(left as u64);
    let end = at + wanted.min(CHUNK_BYTES as u64);
    let mut pages = Chain::new();
    pages.reserve(((end - at) / PAGE) as usize);
    let mut at = at;
    while at < end {
        let Some(page) = memory.ready_page(at / PAGE, Sharing::Private) else {
            break;
        };
        let Some(mut part) = Pinned::new(page, ()).and_then(Mbuf::lent) else {
            break;
        };
        let within = at % PAGE;
        let len = (PAGE - within).min(end - at);
        part.advance(within as usize);
        part.truncate(len as usize);
        pages.push_back(part);
        at += len;
    }
    Some(pages).filter(|pages| !pages.is_empty())
}
