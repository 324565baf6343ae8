//! Which programs load the library: dynamic ones, and scripts of such, that do not change rights.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

/// Interpreters of interpreters that are followed.
const INTERPRETERS_MAX: usize = 4;

/// Whether a program is going to load the library: it is a dynamic one, or a script of such, and does not change rights.
pub fn loads_library(program: &CStr) -> bool {
    let mut path = program.to_bytes().to_vec();
    for _ in 0..INTERPRETERS_MAX {
        let Ok(mut file) = File::open(OsStr::from_bytes(&path)) else {
            // The call says what is wrong.
            return true;
        };
        let mut head = Vec::new();
        if Read::take(&mut file, 4096).read_to_end(&mut head).is_err() {
            return true;
        }
        match head.strip_prefix(b"#!") {
            Some(line) => {
                let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let mut words = line.split(|byte| byte.is_ascii_whitespace());
                path = words
                    .find(|word| !word.is_empty())
                    .unwrap_or_default()
                    .to_vec();
            }
            None => return is_dynamic(&head) && !changes_rights(&file),
        }
    }
    true
}

const ELF: &[u8] = b"\x7fELF\x02";
const PT_INTERP: u32 = 3;
/// Places of the program headers in a 64-bit ELF header, and their sizes (System V ABI, "ELF Header").
const HEADERS_AT: usize = 32;
const HEADER_BYTES_AT: usize = 54;
const HEADERS_COUNT_AT: usize = 56;

fn is_dynamic(head: &[u8]) -> bool {
    let word = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let find = || {
        let first = u64::from_le_bytes(head.get(HEADERS_AT..HEADERS_AT + 8)?.try_into().ok()?);
        let (bytes, count) = (word(HEADER_BYTES_AT)?, word(HEADERS_COUNT_AT)?);
        let mut kinds = (0..usize::from(count)).filter_map(|index| {
            let at = (first as usize).checked_add(index * usize::from(bytes))?;
            Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?))
        });
        Some(kinds.any(|kind| kind == PT_INTERP))
    };
    head.starts_with(ELF) && find().unwrap_or(false)
}

fn changes_rights(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(status) = file.metadata() else {
        return false;
    };
    // SAFETY: no memory is passed.
    let user = unsafe { libc::geteuid() };
    status.mode() & libc::S_ISUID != 0 && status.uid() != user || status.mode() & libc::S_ISGID != 0
}
