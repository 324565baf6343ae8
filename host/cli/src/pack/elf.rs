//! What an ELF file asks of its surroundings: its interpreter, its libraries and
//! where it wants them searched (System V ABI, chapter 5; ld.so(8)).

use std::path::Path;

use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, FileHeader64, PT_LOAD,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use super::PackError;

type Header = FileHeader64<LittleEndian>;
const ENDIAN: LittleEndian = LittleEndian;

const MAGIC: &[u8] = b"\x7fELF";
const CLASS_64: u8 = 2;
const MACHINE_X86_64: u16 = 62;

/// The requests of one ELF file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The loader that starts it; `None` in static programs and libraries.
    pub interpreter: Option<String>,
    /// Names of libraries, in order.
    pub libraries: Vec<String>,
    /// `DT_RPATH`, split at colons.
    pub rpath: Vec<String>,
    /// `DT_RUNPATH`, split at colons.
    pub runpath: Vec<String>,
    /// Whether it names a function of the C library that starts a shell: system(3) or popen(3).
    pub names_shell_call: bool,
}

/// Functions that run `/bin/sh`.
const SHELL_CALLS: [&[u8]; 2] = [b"system", b"popen"];

/// Whether `bytes` begin like an ELF file.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads the needs of the ELF file `bytes`, which lies at `path`.
pub fn needs(path: &Path, bytes: &[u8]) -> Result<Needs, PackError> {
    check_architecture(path, bytes)?;
    read_needs(bytes).map_err(|reason| PackError::DamagedElf {
        path: path.into(),
        reason: reason.to_string(),
    })
}

fn check_architecture(path: &Path, bytes: &[u8]) -> Result<(), PackError> {
    let class = bytes.get(4).copied().unwrap_or(0);
    let machine = bytes
        .get(18..20)
        .map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
    if class == CLASS_64 && machine == MACHINE_X86_64 {
        return Ok(());
    }
    let found = match machine {
        3 => "32-bit x86".to_string(),
        40 => "32-bit Arm".to_string(),
        183 => "64-bit Arm".to_string(),
        243 => "RISC-V".to_string(),
        MACHINE_X86_64 => "x32".to_string(),
        other => format!("the ELF machine {other}"),
    };
    Err(PackError::WrongArchitecture {
        path: path.into(),
        found,
    })
}

fn read_needs(bytes: &[u8]) -> object::read::Result<Needs> {
    let header = Header::parse(bytes)?;
    let segments = header.program_headers(ENDIAN, bytes)?;
    let mut needs = Needs::default();
    for segment in segments {
        if let Some(name) = segment.interpreter(ENDIAN, bytes)? {
            needs.interpreter = Some(String::from_utf8_lossy(name).into_owned());
        }
        if let Some(dynamic) = segment.dynamic(ENDIAN, bytes)? {
            read_dynamic(bytes, segments, dynamic, &mut needs);
        }
    }
    Ok(needs)
}

fn read_dynamic(
    bytes: &[u8],
    segments: &[impl ProgramHeader<Endian = LittleEndian, Word = u64>],
    dynamic: &[impl Dyn<Endian = LittleEndian, Word = u64>],
    needs: &mut Needs,
) {
    let entries = dynamic
        .iter()
        .map(|entry| (entry.d_tag(ENDIAN), entry.d_val(ENDIAN)))
        .take_while(|&(tag, _)| tag != u64::from(DT_NULL));
    let value = |wanted: u32| {
        let mut entries = entries.clone();
        entries.find_map(|(tag, value)| (tag == u64::from(wanted)).then_some(value))
    };
    let Some(strings) = value(DT_STRTAB).and_then(|address| file_offset(segments, address)) else {
        return;
    };
    let size = value(DT_STRSZ).unwrap_or(0);
    needs.names_shell_call = range(bytes, strings, size).is_some_and(names_shell_call);
    let text = |offset: u64| {
        let start = usize::try_from(strings.checked_add(offset)?).ok()?;
        let name = bytes.get(start..)?.split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    for (tag, offset) in entries {
        let Some(value) = u32::try_from(tag).ok().and_then(|_| text(offset)) else {
            continue;
        };
        let folders = || value.split(':').map(str::to_string).collect();
        match u32::try_from(tag) {
            Ok(DT_NEEDED) => needs.libraries.push(value),
            Ok(DT_RPATH) => needs.rpath = folders(),
            Ok(DT_RUNPATH) => needs.runpath = folders(),
            _ => {}
        }
    }
}

fn range(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let bytes = bytes.get(usize::try_from(offset).ok()?..)?;
    bytes.get(..usize::try_from(size).ok()?)
}

/// Whether a table of names has one of [`SHELL_CALLS`].
fn names_shell_call(names: &[u8]) -> bool {
    let mut names = names.split(|&byte| byte == 0);
    names.any(|name| SHELL_CALLS.contains(&name))
}

/// Where in the file the byte with a virtual address lies.
fn file_offset(
    segments: &[impl ProgramHeader<Endian = LittleEndian, Word = u64>],
    address: u64,
) -> Option<u64> {
    segments
        .iter()
        .filter(|segment| segment.p_type(ENDIAN) == PT_LOAD)
        .find_map(|segment| {
            let inside = address.checked_sub(segment.p_vaddr(ENDIAN))?;
            let place = segment.p_offset(ENDIAN).checked_add(inside)?;
            (inside < segment.p_filesz(ENDIAN)).then_some(place)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_names_its_loader_and_libraries() {
        let path = std::env::current_exe().expect("we run");
        let bytes = std::fs::read(&path).expect("we are readable");
        let needs = needs(&path, &bytes).expect("we are a valid program");
        assert!(needs.interpreter.expect("dynamic").contains("ld-linux"));
        assert!(
            needs.libraries.iter().any(|name| name == "libc.so.6"),
            "{:?}",
            needs.libraries
        );
    }

    #[test]
    fn a_segment_at_the_end_of_the_address_space_is_survived() {
        let regression = include_bytes!("testdata/elf_offset_overflow");
        let _ = needs(Path::new("fuzzed"), regression);
    }

    #[test]
    fn another_architecture_is_named() {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(64, 0);
        bytes[4] = CLASS_64;
        bytes[18] = 183;
        let error = needs(Path::new("/x"), &bytes)
            .expect_err("not ours")
            .to_string();
        assert_eq!(
            error,
            "/x is made for 64-bit Arm, not for x86-64: give an x86-64 build of it."
        );
    }

    #[test]
    fn a_cut_off_file_is_an_error_at_every_length() {
        let path = std::env::current_exe().expect("we run");
        let bytes = std::fs::read(&path).expect("we are readable");
        for len in (20..4096).step_by(13) {
            let _ = needs(&path, &bytes[..len]);
        }
    }
}
