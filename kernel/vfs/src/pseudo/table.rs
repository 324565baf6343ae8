//! Paths and their generators.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mach::sync::Spin;
use sync::{Error, Result};

use super::{Directory, Take, Text, TextFile, number_of};
use crate::{FileType, InodeRef, Metadata};

/// Takes what a program wrote.
pub type Store = fn(&[u8]) -> Result<()>;

/// One file.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its path below the top of the table, without a leading slash.
    pub path: &'static str,
    /// Makes its text.
    pub generate: fn(&mut Text) -> fmt::Result,
    /// Takes what is written to it; read-only without.
    pub store: Option<Store>,
}

impl Entry {
    /// A file that can only be read.
    pub const fn new(path: &'static str, generate: fn(&mut Text) -> fmt::Result) -> Self {
        Self {
            path,
            generate,
            store: None,
        }
    }
}

/// A file that is more than text, or one of many of a kind.
#[derive(Clone, Copy)]
pub struct Special {
    /// Its path below the top of the table, without a leading slash.
    pub path: &'static str,
    /// Makes its inode, of these properties; gets `argument`.
    pub make: fn(Metadata, usize) -> InodeRef,
    /// Which one of its kind it is.
    pub argument: usize,
    /// Permission bits.
    pub mode: u32,
    /// A regular file or a symbolic link.
    pub kind: FileType,
}

impl Special {
    /// A file that can only be read, whose text is made piece by piece.
    pub const fn in_pieces(path: &'static str, make: fn(Metadata, usize) -> InodeRef) -> Self {
        Self {
            path,
            make,
            argument: 0,
            mode: 0o444,
            kind: FileType::Regular,
        }
    }
}

/// All files of a tree that are always there.
#[derive(Default)]
pub struct Table {
    entries: Spin<Vec<Entry>>,
    specials: Spin<Vec<Special>>,
}

impl Table {
    /// Without entries.
    pub const fn new() -> Self {
        Self {
            entries: Spin::new(Vec::new()),
            specials: Spin::new(Vec::new()),
        }
    }

    /// Adds files.
    pub fn add(&self, entries: &[Entry]) {
        self.entries.lock().extend_from_slice(entries);
    }

    /// Adds files that are more than text.
    pub fn add_specials(&self, specials: &[Special]) {
        self.specials.lock().extend_from_slice(specials);
    }

    /// Adds such files in place of those whose paths are `replaced`.
    pub fn replace_specials(&self, replaced: fn(&str) -> bool, specials: &[Special]) {
        let mut known = self.specials.lock();
        known.retain(|special| !replaced(special.path));
        known.extend_from_slice(specials);
    }

    /// What is at `path`, on the device of this number.
    pub fn find(&'static self, device: u64, path: &str) -> Result<InodeRef> {
        let entries = self.entries.lock();
        if let Some(entry) = entries.iter().find(|entry| entry.path == path) {
            return Ok(file(device, entry));
        }
        let specials = self.specials.lock();
        if let Some(special) = specials.iter().find(|special| special.path == path) {
            let number = number_of(path.as_bytes());
            let metadata = Metadata::new(device, number, special.kind, special.mode);
            return Ok((special.make)(metadata, special.argument));
        }
        let paths = entries.iter().map(|entry| entry.path);
        let mut paths = paths.chain(specials.iter().map(|special| special.path));
        match paths.any(|known| below(known, path).is_some()) {
            true => Ok(Arc::new(Directory::new(self, device, path))),
            false => Err(Error::NotFound),
        }
    }

    /// The names in the directory `path`, each once, in the order of the table.
    pub fn names(&self, path: &str) -> Vec<(&'static str, FileType)> {
        let mut names: Vec<(&'static str, FileType)> = Vec::new();
        let (entries, specials) = (self.entries.lock(), self.specials.lock());
        let files = entries.iter().map(|entry| (entry.path, FileType::Regular));
        let specials = specials.iter().map(|special| (special.path, special.kind));
        for (known, kind) in files.chain(specials) {
            let Some(rest) = below(known, path) else {
                continue;
            };
            let (name, kind) = match rest.split_once('/') {
                Some((name, _)) => (name, FileType::Directory),
                None => (rest, kind),
            };
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, kind));
            }
        }
        names
    }
}

/// What follows `directory` in `path`, if it lies below.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    match directory {
        "" => Some(path),
        _ => path.strip_prefix(directory)?.strip_prefix('/'),
    }
}

fn file(device: u64, entry: &Entry) -> InodeRef {
    let mode = if entry.store.is_some() { 0o644 } else { 0o444 };
    let number = number_of(entry.path.as_bytes());
    let metadata = Metadata::new(device, number, FileType::Regular, mode);
    let generate = entry.generate;
    let text = Box::new(move |text: &mut Text| generate(text).map_err(|_| Error::Io));
    let store = entry.store.map(|store| Box::new(store) as Take);
    TextFile::new(metadata, text, store)
}
