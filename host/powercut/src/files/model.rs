//! What two directories hold, as a program sees it.

use std::collections::BTreeMap;

use super::operation::{
    ALLOCATED, APPENDED, Action, Operation, PLACES, PUNCHED, SHORT, WRITTEN, pattern,
};

/// A file, whatever its names.
pub type FileId = usize;

/// Names and bytes at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Files {
    /// What is at each place.
    pub names: [Option<FileId>; 2],
    /// The bytes of all files that there ever were.
    pub bytes: BTreeMap<FileId, Vec<u8>>,
}

impl Files {
    /// One file at the first place.
    pub fn with_first(bytes: Vec<u8>) -> Self {
        Self {
            names: [Some(0), None],
            bytes: BTreeMap::from([(0, bytes)]),
        }
    }

    /// A file's bytes.
    pub fn of(&self, file: FileId) -> &[u8] {
        self.bytes.get(&file).map_or(&[], Vec::as_slice)
    }

    /// The file at a place.
    pub fn at(&self, place: usize) -> Option<FileId> {
        self.names[place]
    }

    /// Whether the operation makes sense now, and is not one that does nothing.
    pub fn allows(&self, operation: &Operation) -> bool {
        let (here, there) = (self.at(operation.place), self.at(1 - operation.place));
        let size = here.map_or(0, |file| self.of(file).len());
        match operation.action {
            Action::Create => here.is_none(),
            Action::FsyncFolder => true,
            Action::Rename => here.is_some() && here != there,
            Action::Link => here.is_some() && there.is_none(),
            Action::Shorten => size > SHORT,
            Action::Empty => size > 0,
            Action::Punch => size > PUNCHED.start,
            _ => here.is_some(),
        }
    }

    /// What the operation, which is the `step`-th, makes of it; of writes `count` bytes were taken.
    pub fn apply(&mut self, operation: &Operation, step: usize, count: usize) {
        let place = operation.place;
        if operation.action == Action::Create {
            let new = self.bytes.len();
            self.names[place] = Some(new);
            self.bytes.insert(new, Vec::new());
            return;
        }
        let Some(file) = self.at(place) else {
            return;
        };
        let bytes = self.bytes.entry(file).or_default();
        match operation.action {
            Action::Write => put(bytes, WRITTEN.start, &pattern(step, WRITTEN.start, count)),
            Action::Append => put(bytes, bytes.len(), &pattern(step, bytes.len(), count)),
            Action::Shorten => bytes.truncate(SHORT),
            Action::Empty => bytes.clear(),
            Action::Allocate => bytes.resize(bytes.len() + ALLOCATED, 0),
            Action::Punch => {
                let end = PUNCHED.end.min(bytes.len());
                bytes[PUNCHED.start..end].fill(0);
            }
            Action::Rename => self.names = moved(place, file),
            Action::Link => self.names[1 - place] = Some(file),
            Action::Unlink => self.names[place] = None,
            Action::Create | Action::Fsync | Action::Fdatasync | Action::FsyncFolder => {}
        }
    }

    /// The files that an operation changes, and the directories; before it is applied.
    pub fn touched(&self, operation: &Operation) -> (Vec<FileId>, Vec<usize>) {
        let (place, other) = (operation.place, 1 - operation.place);
        let here = self.at(place);
        match operation.action {
            Action::Create => (vec![self.bytes.len()], vec![place]),
            Action::Unlink => (here.into_iter().collect(), vec![place]),
            Action::Link => (here.into_iter().collect(), vec![other]),
            Action::Rename => {
                let files = here.into_iter().chain(self.at(other));
                (files.collect(), vec![place, other])
            }
            Action::Fsync | Action::Fdatasync | Action::FsyncFolder => Default::default(),
            _ => (here.into_iter().collect(), Vec::new()),
        }
    }

    /// The bytes that an operation writes: where, and which.
    pub fn written(&self, operation: &Operation, step: usize) -> (usize, Vec<u8>) {
        let size = self
            .at(operation.place)
            .map_or(0, |file| self.of(file).len());
        let (at, len) = match operation.action {
            Action::Append => (size, APPENDED),
            _ => (WRITTEN.start, WRITTEN.len()),
        };
        (at, pattern(step, at, len))
    }
}

fn moved(from: usize, file: FileId) -> [Option<FileId>; 2] {
    let mut names = [None; 2];
    names[1 - from] = Some(file);
    names
}

fn put(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    let end = at + new.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(new);
}

/// The name of a place in its directory.
pub fn name(place: usize) -> &'static [u8] {
    let name = PLACES[place].rsplit_once('/').map_or("", |(_, name)| name);
    name.as_bytes()
}
