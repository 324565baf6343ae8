//! The memory of another program.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use object::{Object, ObjectSymbol};

/// A program whose malloc is `libumem.so`.
pub struct Memory {
    bytes: File,
    /// Where the library's first byte is mapped.
    base: u64,
    library: PathBuf,
}

impl Memory {
    /// Opens the memory of a process.
    pub fn of(pid: u32) -> Result<Self, String> {
        let maps = format!("/proc/{pid}/maps");
        let text = fs::read_to_string(&maps).map_err(|error| format!("{maps}: {error}"))?;
        let line = text
            .lines()
            .find(|line| line.ends_with("/libumem.so"))
            .ok_or(format!("process {pid} does not use libumem.so"))?;
        let start = line.split('-').next().unwrap_or_default();
        let base = u64::from_str_radix(start, 16).map_err(|error| format!("{maps}: {error}"))?;
        let name = line.split_whitespace().last().unwrap_or_default();
        let path = format!("/proc/{pid}/mem");
        Ok(Self {
            bytes: File::open(&path).map_err(|error| format!("{path}: {error}"))?,
            base,
            library: PathBuf::from(format!("/proc/{pid}/root{name}")),
        })
    }

    /// Where a symbol of the library is.
    pub fn symbol(&self, name: &str) -> Result<u64, String> {
        let path = self.library.display();
        let file = fs::read(&self.library).map_err(|error| format!("{path}: {error}"))?;
        let file = object::File::parse(&*file).map_err(|error| format!("{path}: {error}"))?;
        file.dynamic_symbols()
            .find(|symbol| symbol.name() == Ok(name))
            .map(|symbol| self.base + symbol.address())
            .ok_or(format!("{path} has no table of statistics"))
    }

    /// `count` words from `address` on.
    pub fn words(&self, address: u64, count: usize) -> Result<Vec<u64>, String> {
        let mut bytes = vec![0; count * 8];
        self.bytes
            .read_exact_at(&mut bytes, address)
            .map_err(|error| format!("{address:#x} cannot be read: {error}"))?;
        Ok(words_of(&bytes))
    }
}

/// The bytes of words.
pub fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The whole words that bytes make.
pub fn words_of(bytes: &[u8]) -> Vec<u64> {
    let words = bytes
        .chunks_exact(8)
        .map(|word| word.try_into().unwrap_or_default());
    words.map(u64::from_le_bytes).collect()
}
