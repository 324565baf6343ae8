//! Bytes from one file to another, without a program's memory between.
//!
//! They pass through a buffer of one page's size at a time; what the target does not take
//! is not consumed from the source, as the source is read at an offset.

use alloc::vec;

use crate::error::Result;
use crate::file::OpenFile;
use crate::io::{Sink, Source};

/// Bytes that pass at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// From a file at `offset` to whatever `to` is; returns the bytes that passed.
pub fn to_stream(from: &OpenFile, offset: u64, to: &OpenFile, count: usize) -> Result<usize> {
    pass(from, offset, count, &mut |_, bytes| {
        to.write(&mut Source::kernel(bytes))
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
    pass(from, source, count, &mut |done, bytes| {
        to.write_at(target + done as u64, &mut Source::kernel(bytes))
    })
}

/// Reads chunks and gives them away; `give` learns how many bytes went before.
fn pass(
    from: &OpenFile,
    offset: u64,
    count: usize,
    give: &mut dyn FnMut(usize, &[u8]) -> Result<usize>,
) -> Result<usize> {
    let mut buffer = vec![0; CHUNK_BYTES.min(count)];
    let mut done = 0;
    while done < count {
        let len = buffer.len().min(count - done);
        let read = from.read_at(offset + done as u64, &mut Sink::kernel(&mut buffer[..len]));
        let outcome = read.and_then(|len| match len {
            0 => Ok((0, 0)),
            len => Ok((len, give(done, &buffer[..len])?)),
        });
        match outcome {
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
