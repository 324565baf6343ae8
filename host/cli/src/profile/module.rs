//! A program or library of the machine, as it lies on this host.

use std::fs;
use std::path::Path;

use super::cfi::Table;
use super::elf::{self, Segment};
use super::symbols::Symbols;

/// What is known of one file.
#[derive(Debug)]
pub struct Module {
    /// Its name without folders.
    name: String,
    segments: Vec<Segment>,
    symbols: Symbols,
    /// How to unwind its functions.
    pub table: Table,
}

impl Module {
    /// Reads the file. One that is not there, or no ELF file, has a name and nothing else.
    pub fn read(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let mut module = Self::named(&name.to_string_lossy());
        let bytes = fs::read(path).unwrap_or_default();
        let Ok(file) = object::File::parse(&*bytes) else {
            return module;
        };
        let debug = elf::debug_file(&file);
        let debug = debug
            .as_ref()
            .and_then(|bytes| object::File::parse(&**bytes).ok());
        module.segments = elf::segments(&file);
        module.table = Table::read(&file);
        let files: Vec<_> = [Some(file), debug].into_iter().flatten().collect();
        module.symbols = Symbols::collect(&files);
        module
    }

    /// Something that is no file.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            segments: Vec::new(),
            symbols: Symbols::default(),
            table: Table::default(),
        }
    }

    /// The address that the file gives to its byte at `offset`.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            offset >= segment.offset && offset - segment.offset < segment.bytes
        };
        let segment = self.segments.iter().find(holds)?;
        Some(segment.address + (offset - segment.offset))
    }

    /// The function at `address`: its name, or `file+0x1234` where it starts.
    pub fn function(&self, address: u64) -> String {
        match self.symbols.find(address) {
            Some(name) => name.into(),
            None => match self.table.function_start(address) {
                Some(start) => format!("{}+{start:#x}", self.name),
                None => self.bracketed(),
            },
        }
    }

    /// What stands for code of it that has no name.
    pub fn bracketed(&self) -> String {
        format!("[{}]", self.name.trim_matches(['[', ']']))
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
