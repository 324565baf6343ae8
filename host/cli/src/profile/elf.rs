//! The parts of an ELF file that a profile needs.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, SegmentFlags};

/// Where Debian's `-dbgsym` packages and others put symbols, by build id.
const DEBUG_FOLDER: &str = "/usr/lib/debug/.build-id";
const EXECUTABLE: u32 = object::elf::PF_X;

/// A part of a file that is mapped executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its address as the file has it.
    pub address: u64,
}

/// The executable parts of the file.
pub fn segments(file: &object::File<'_>) -> Vec<Segment> {
    let executable = file.segments().filter(|segment| {
        matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & EXECUTABLE != 0)
    });
    executable
        .map(|segment| {
            let (offset, bytes) = segment.file_range();
            Segment {
                offset,
                bytes,
                address: segment.address(),
            }
        })
        .collect()
}

/// The file with the symbols that were stripped from this one, if it is installed.
pub fn debug_file(file: &object::File<'_>) -> Option<Vec<u8>> {
    let id = file.build_id().ok()??;
    fs::read(debug_path(Path::new(DEBUG_FOLDER), id)?).ok()
}

fn debug_path(folder: &Path, id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(
        folder
            .join(format!("{first:02x}"))
            .join(format!("{rest}.debug")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_names_the_file_with_the_symbols() {
        let path = debug_path(Path::new("/d"), &[0xab, 0x01, 0xff]);
        assert_eq!(path, Some(PathBuf::from("/d/ab/01ff.debug")));
        assert_eq!(debug_path(Path::new("/d"), &[]), None);
    }
}
