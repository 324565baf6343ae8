//! ELF files of x86-64: what to map where (ELF-64 Object File Format, System V ABI).
//!
//! Everything is checked here, so that later steps can add offsets without a thought:
//! segments lie in the user half, end where they say, and agree with the page grid.

use alloc::vec::Vec;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::USER_END;
use mm::Rights;
use sync::{Error, Result};

/// Bytes of the file header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a program header.
pub const PROGRAM_HEADER_BYTES: usize = 56;
/// Program headers that are looked at; the linker makes about a dozen.
const PROGRAM_HEADERS_MAX: usize = 256;

const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";
const MACHINE_X86_64: u16 = 62;
const FIXED: u16 = 2;
const SHARED: u16 = 3;
const LOAD: u32 = 1;
const INTERPRETER: u32 = 3;
const PROGRAM_HEADERS: u32 = 6;
const GNU_STACK: u32 = 0x6474_e551;
const EXECUTE: u32 = 1;
const WRITE: u32 = 2;
const READ: u32 = 4;
/// The longest path of an interpreter.
const INTERPRETER_BYTES_MAX: u64 = 4096;

/// Little-endian numbers of a header.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let bytes = self
            .0
            .get(at..at + N)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or(Error::NotExecutable)
    }

    fn u16(&self, at: usize) -> Result<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Result<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: usize) -> Result<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
}

/// The file header, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// It can be loaded anywhere.
    pub anywhere: bool,
    /// Where it starts.
    pub entry: u64,
    /// Where its program headers are in the file.
    pub table_at: u64,
    /// How many there are.
    pub table_len: usize,
}

impl Header {
    /// Reads the file's first bytes.
    ///
    /// Errors: `NotExecutable` if this is no program for this machine.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::NotExecutable);
        }
        let fields = Fields(bytes);
        let anywhere = match fields.u16(16)? {
            FIXED => false,
            SHARED => true,
            _ => return Err(Error::NotExecutable),
        };
        let table_len = usize::from(fields.u16(56)?);
        let fits = fields.u16(18)? == MACHINE_X86_64
            && usize::from(fields.u16(54)?) == PROGRAM_HEADER_BYTES
            && (1..=PROGRAM_HEADERS_MAX).contains(&table_len);
        if !fits {
            return Err(Error::NotExecutable);
        }
        Ok(Self {
            anywhere,
            entry: fields.u64(24)?,
            table_at: fields.u64(32)?,
            table_len,
        })
    }
}

/// A part of the file that is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its first byte's address, before the file is moved.
    pub address: u64,
    /// Its first byte in the file.
    pub offset: u64,
    /// Bytes that come from the file.
    pub file_bytes: u64,
    /// Bytes in memory; the rest is zero.
    pub memory_bytes: u64,
    /// What the program may do with it.
    pub rights: Rights,
}

impl Segment {
    /// The page that holds its first byte.
    pub fn first_page(&self) -> u64 {
        VirtAddr(self.address).page_floor().0
    }

    /// One past its last byte.
    pub fn end(&self) -> u64 {
        self.address + self.memory_bytes
    }

    /// One past its last byte that comes from the file.
    pub fn file_end(&self) -> u64 {
        self.address + self.file_bytes
    }
}

/// What the program headers say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The file header.
    pub header: Header,
    /// What to map, by ascending address; at least one.
    pub segments: Vec<Segment>,
    /// Where in the file the interpreter's path is, and its length with the final zero.
    pub interpreter: Option<(u64, usize)>,
    /// The address of the program headers in memory, before the file is moved; 0 if they
    /// are not mapped.
    pub table_address: u64,
    /// The stack is executable.
    pub executable_stack: bool,
    /// The alignment that the segments ask for; a power of two.
    pub align: u64,
}

impl Program {
    /// Reads the program headers `table`, which belong to `header`.
    ///
    /// Errors: `NotExecutable` if they make no sense.
    pub fn parse(header: Header, table: &[u8]) -> Result<Self> {
        let mut program = Self {
            header,
            segments: Vec::new(),
            interpreter: None,
            table_address: 0,
            executable_stack: false,
            align: PAGE_BYTES as u64,
        };
        for bytes in table.chunks_exact(PROGRAM_HEADER_BYTES) {
            program.add(&Fields(bytes))?;
        }
        if program.segments.is_empty() {
            return Err(Error::NotExecutable);
        }
        if program.table_address == 0 {
            program.table_address = program.mapped_at(header.table_at).unwrap_or(0);
        }
        Ok(program)
    }

    fn add(&mut self, fields: &Fields<'_>) -> Result<()> {
        let flags = fields.u32(4)?;
        match fields.u32(0)? {
            LOAD => {
                let align = fields.u64(48)?;
                if align.is_power_of_two() && align < 1 << 40 {
                    self.align = self.align.max(align);
                }
                let segment = segment(fields, flags)?;
                let in_order = self
                    .segments
                    .last()
                    .is_none_or(|last| last.end() <= segment.address);
                if !in_order {
                    return Err(Error::NotExecutable);
                }
                if segment.memory_bytes != 0 {
                    self.segments.push(segment);
                }
            }
            INTERPRETER => {
                let len = fields.u64(32)?;
                if !(2..=INTERPRETER_BYTES_MAX).contains(&len) {
                    return Err(Error::NotExecutable);
                }
                self.interpreter = Some((fields.u64(8)?, len as usize));
            }
            PROGRAM_HEADERS => self.table_address = fields.u64(16)?,
            GNU_STACK => self.executable_stack = flags & EXECUTE != 0,
            _ => {}
        }
        Ok(())
    }

    /// The address at which the byte `offset` of the file is mapped.
    fn mapped_at(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            offset >= segment.offset && offset - segment.offset < segment.file_bytes
        };
        let segment = self.segments.iter().find(holds)?;
        Some(segment.address + (offset - segment.offset))
    }

    /// The pages that it covers, first and one past the last, before it is moved.
    pub fn span(&self) -> (u64, u64) {
        let first = self.segments.first().map_or(0, Segment::first_page);
        let last = self.segments.last().map_or(0, Segment::end);
        (first, VirtAddr(last).page_ceil().0)
    }
}

fn segment(fields: &Fields<'_>, flags: u32) -> Result<Segment> {
    let segment = Segment {
        offset: fields.u64(8)?,
        address: fields.u64(16)?,
        file_bytes: fields.u64(32)?,
        memory_bytes: fields.u64(40)?,
        rights: Rights {
            read: flags & (READ | WRITE | EXECUTE) != 0,
            write: flags & WRITE != 0,
            exec: flags & EXECUTE != 0,
        },
    };
    let end = segment.address.checked_add(segment.memory_bytes);
    let file_end = segment.offset.checked_add(segment.file_bytes);
    let grid = PAGE_BYTES as u64 - 1;
    let sound = end.is_some_and(|end| end <= USER_END.0)
        && file_end.is_some()
        && segment.file_bytes <= segment.memory_bytes
        && segment.address & grid == segment.offset & grid;
    if sound {
        Ok(segment)
    } else {
        Err(Error::NotExecutable)
    }
}
