//! The kernel as a loader wants it. GRUB loads all sections of an ELF file, symbols and debug
//! information too, which are nine tenths of ours; so the image's kernel has none.

use object::elf::FileHeader64;
use object::endian::LittleEndian;
use object::read::elf::{FileHeader, ProgramHeader};

type Header = FileHeader64<LittleEndian>;
/// Offsets in the header: where the table of sections is; how many bytes, how many, and
/// which holds their names.
const SECTIONS: usize = 40;
const SECTIONS_BYTES: usize = 8;
const SECTION_COUNTS: usize = 58;
const SECTION_COUNTS_BYTES: usize = 6;

/// The file up to the end of its last segment, its table of sections forgotten; `None` if it
/// is no ELF file of 64 bits.
pub(super) fn without_symbols(file: &[u8]) -> Option<Vec<u8>> {
    let header = Header::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    let ends = segments.iter().map(|segment| {
        let end = segment
            .p_offset(endian)
            .checked_add(segment.p_filesz(endian))?;
        usize::try_from(end).ok()
    });
    let end = ends.collect::<Option<Vec<usize>>>()?.into_iter().max()?;
    let mut kernel = file.get(..end)?.to_vec();
    kernel
        .get_mut(SECTIONS..)?
        .get_mut(..SECTIONS_BYTES)?
        .fill(0);
    kernel
        .get_mut(SECTION_COUNTS..)?
        .get_mut(..SECTION_COUNTS_BYTES)?
        .fill(0);
    Some(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_symbols_is_shorter_and_still_has_its_segments() {
        let file = std::fs::read("/proc/self/exe").expect("this program");
        let short = without_symbols(&file).expect("an ELF file");
        assert!(short.len() < file.len());
        let segments = |bytes: &[u8]| {
            let header = Header::parse(bytes).expect("a header");
            let headers = header.program_headers(LittleEndian, bytes);
            headers.expect("segments").len()
        };
        assert_eq!(segments(&short), segments(&file));
        assert_eq!(
            Header::parse(&*short)
                .expect("a header")
                .e_shnum
                .get(LittleEndian),
            0
        );
        assert_eq!(without_symbols(&short).as_deref(), Some(&*short));
    }

    #[test]
    fn a_file_that_is_cut_off_is_no_kernel() {
        let file = std::fs::read("/proc/self/exe").expect("this program");
        assert_eq!(without_symbols(&file[..1000]), None);
        assert_eq!(without_symbols(b"MZ"), None);
    }
}
