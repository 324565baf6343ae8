//! Mapping a program into an address space that nobody uses yet.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::{PAGE_BYTES, VirtAddr};
use mm::io::Sink;
use mm::{AddressSpace, Mapping, Object, Place, Rights};
use sync::{Error, Result};

use super::elf::{HEADER_BYTES, Header, PROGRAM_HEADER_BYTES, Program, Segment};
use mach::mem::fallible;
use vfs::file::OpenFile;

/// A program that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// What was added to each address in the file.
    pub bias: u64,
    /// Where it starts.
    pub entry: u64,
    /// One past its last byte.
    pub end: u64,
    /// Bytes to be zeroed once the space is the current one: the rest of the last page
    /// of each writable segment.
    pub tail: [(u64, u64); TAILS_MAX],
}

/// Segments with zeros behind their file bytes; linkers make one.
const TAILS_MAX: usize = 4;

/// Reads exactly `bytes.len()` bytes of the file.
///
/// Errors: `NotExecutable` if it is shorter.
pub fn read_exact(open: &OpenFile, offset: u64, bytes: &mut [u8]) -> Result<()> {
    let wanted = bytes.len();
    let got = read(open, offset, bytes)?;
    if got == wanted {
        Ok(())
    } else {
        Err(Error::NotExecutable)
    }
}

/// Reads up to `bytes.len()` bytes of the file.
pub fn read(open: &OpenFile, offset: u64, bytes: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        let mut sink = Sink::kernel(&mut bytes[done..]);
        match open.file.read_at(open, offset + done as u64, &mut sink)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// Reads the headers of the program in `open`, of which `first` are the first bytes.
pub fn read_program(open: &OpenFile, first: &[u8]) -> Result<Program> {
    let header = Header::parse(first.get(..HEADER_BYTES).ok_or(Error::NotExecutable)?)?;
    let mut table = fallible::zeroed(header.table_len * PROGRAM_HEADER_BYTES)?;
    read_exact(open, header.table_at, &mut table)?;
    Program::parse(header, &table)
}

/// The path of the interpreter that the program asks for.
pub fn read_interpreter(open: &OpenFile, program: &Program) -> Result<Option<Vec<u8>>> {
    let Some((offset, len)) = program.interpreter else {
        return Ok(None);
    };
    let mut path = fallible::zeroed(len)?;
    read_exact(open, offset, &mut path)?;
    match path.iter().position(|&byte| byte == 0) {
        Some(end) if end > 0 => {
            path.truncate(end);
            Ok(Some(path))
        }
        _ => Err(Error::NotExecutable),
    }
}

/// Maps the program; one that can go anywhere goes to `wish`, or where there is room.
pub fn map(
    space: &AddressSpace,
    open: &Arc<OpenFile>,
    program: &Program,
    wish: Option<VirtAddr>,
) -> Result<Loaded> {
    let memory = open.file.clone().memory().ok_or(Error::AccessDenied)?;
    let object = Object::new(memory, Some(open.clone()));
    let (first, end) = program.span();
    let bias = if program.header.anywhere {
        let align = program.align;
        let room = end - first + align - PAGE_BYTES as u64;
        let place = wish.map_or(Place::Hint(VirtAddr(0)), Place::Hint);
        let at = space.map(Mapping::anonymous(place, room, Rights::NONE))?;
        space.unmap(at, room)?;
        let aligned =
            at.0.checked_next_multiple_of(align)
                .ok_or(Error::OutOfMemory)?;
        aligned.wrapping_sub(first & !(align - 1))
    } else {
        0
    };
    let mut loaded = Loaded {
        bias,
        entry: program.header.entry.wrapping_add(bias),
        end: end.wrapping_add(bias),
        tail: [(0, 0); TAILS_MAX],
    };
    let mut tails = 0;
    for segment in &program.segments {
        map_segment(space, &object, segment, bias)?;
        let tail = zeros_after(segment, bias);
        if tail.1 != 0 && segment.rights.write {
            *loaded.tail.get_mut(tails).ok_or(Error::NotExecutable)? = tail;
            tails += 1;
        }
    }
    Ok(loaded)
}

/// The bytes between the end of the file's part and the end of its last page.
fn zeros_after(segment: &Segment, bias: u64) -> (u64, u64) {
    if segment.memory_bytes == segment.file_bytes || segment.file_bytes == 0 {
        return (0, 0);
    }
    let start = VirtAddr(segment.file_end().wrapping_add(bias));
    (start.0, start.page_ceil() - start)
}

fn map_segment(space: &AddressSpace, object: &Object, segment: &Segment, bias: u64) -> Result<()> {
    let start = VirtAddr(segment.first_page().wrapping_add(bias));
    let end = VirtAddr(segment.end().wrapping_add(bias)).page_ceil();
    let lead = segment.address - segment.first_page();
    let file_end = if segment.file_bytes == 0 {
        start
    } else {
        VirtAddr(segment.file_end().wrapping_add(bias)).page_ceil()
    };
    if file_end > start {
        let mut mapping = Mapping::anonymous(Place::Fixed(start), file_end - start, segment.rights);
        mapping.object = Some((object.clone(), segment.offset - lead));
        space.map(mapping)?;
    }
    if end > file_end {
        space.map(Mapping::anonymous(
            Place::Fixed(file_end),
            end - file_end,
            segment.rights,
        ))?;
    }
    Ok(())
}
