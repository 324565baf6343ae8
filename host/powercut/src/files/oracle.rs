//! Whether what is left may be left.

use std::collections::BTreeMap;

use super::model::{FileId, Files};
use super::operation::{Action, Operation, PLACES};
use crate::image::Tree;

/// What had been promised when so many events were over.
#[derive(Clone, Debug)]
struct Promise {
    events: usize,
    /// Names and sizes are at least as new as this state's.
    state: usize,
    /// So are the bytes of these files.
    bytes: Vec<(FileId, usize)>,
}

/// What a sequence did, and when.
#[derive(Clone, Debug)]
pub struct Record {
    /// What there was before and after each operation.
    states: Vec<Files>,
    operations: Vec<Operation>,
    /// Events that were over when each operation began.
    begun: Vec<usize>,
    promises: Vec<Promise>,
    /// The last state that changed a file; its size or its blocks; a directory.
    changed: BTreeMap<FileId, usize>,
    resized: BTreeMap<FileId, usize>,
    /// Its bytes.
    written: BTreeMap<FileId, usize>,
    renamed: [usize; 2],
}

/// How strict to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// What was promised is there, and nothing that was never so.
    Kept,
    /// The disk lied: only nothing that was never so.
    Nothing,
}

impl Record {
    /// Nothing was done yet.
    pub fn new(before: Files) -> Self {
        Self {
            states: vec![before],
            operations: Vec::new(),
            begun: Vec::new(),
            promises: Vec::new(),
            changed: BTreeMap::new(),
            resized: BTreeMap::new(),
            written: BTreeMap::new(),
            renamed: [0; 2],
        }
    }

    /// What there is now.
    pub fn now(&self) -> &Files {
        self.states.last().expect("there is a first")
    }

    /// The operations so far.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Those that had begun after so many events.
    pub fn begun_before(&self, events: usize) -> &[Operation] {
        let begun = self.begun.iter().take_while(|begun| **begun < events);
        &self.operations[..begun.count()]
    }

    /// An operation that began after `begun` events has returned after `events`, and took `count` bytes.
    pub fn done(&mut self, operation: Operation, count: usize, begun: usize, events: usize) {
        let mut after = self.now().clone();
        let (files, folders) = after.touched(&operation);
        let size = |files: &Files, file| files.of(file).len();
        let before = self.now().clone();
        after.apply(&operation, self.operations.len() + 1, count);
        self.states.push(after);
        let state = self.states.len() - 1;
        for file in files {
            self.changed.insert(file, state);
            let is_new = operation.action == Action::Create;
            if is_new || size(&before, file) != size(self.now(), file) {
                self.resized.insert(file, state);
            }
            if before.of(file) != self.now().of(file) {
                self.written.insert(file, state);
            }
        }
        for folder in folders {
            self.renamed[folder] = state;
        }
        self.operations.push(operation);
        self.begun.push(begun);
        self.promise(&operation, events);
    }

    fn promise(&mut self, operation: &Operation, events: usize) {
        let file = self.now().at(operation.place);
        let newest = |of: &BTreeMap<FileId, usize>| {
            file.and_then(|file| of.get(&file)).copied().unwrap_or(0)
        };
        let state = match operation.action {
            Action::Fsync => newest(&self.changed),
            Action::Fdatasync => newest(&self.resized),
            Action::FsyncFolder => self.renamed[operation.place],
            _ => return,
        };
        let is_folder = operation.action == Action::FsyncFolder;
        let file = file.filter(|_| !is_folder);
        let bytes = file.map(|file| (file, newest(&self.written)));
        self.promises.push(Promise {
            events,
            state,
            bytes: bytes.into_iter().collect(),
        });
    }

    /// sync(2) has returned after `events`.
    pub fn synced(&mut self, events: usize) {
        let files = self.changed.values().chain(&self.renamed);
        let state = files.copied().max().unwrap_or(0);
        let bytes = self.written.iter().map(|(file, state)| (*file, *state));
        let bytes = bytes.collect();
        self.promises.push(Promise {
            events,
            state,
            bytes,
        });
    }

    /// Whether `tree` may be what a cut after `events` leaves.
    pub fn check(&self, tree: &Tree, events: usize, demand: Demand) -> Result<(), String> {
        let last = self.begun_before(events).len();
        let kept = self
            .promises
            .iter()
            .filter(|promise| demand == Demand::Kept && promise.events <= events);
        let (mut first, mut bytes) = (0, BTreeMap::new());
        for promise in kept {
            first = first.max(promise.state);
            bytes.extend(promise.bytes.iter().copied());
        }
        let mut why = String::new();
        for state in (first..=last).rev() {
            match self.check_state(tree, state, last, &bytes) {
                Ok(()) => return Ok(()),
                Err(error) => why = format!("{why}\n  unlike state {state}: {error}"),
            }
        }
        Err(format!("no state of {first} to {last} fits:{why}"))
    }

    fn check_state(
        &self,
        tree: &Tree,
        state: usize,
        last: usize,
        kept: &BTreeMap<FileId, usize>,
    ) -> Result<(), String> {
        let files = &self.states[state];
        let mut inodes = [0; 2];
        for (place, path) in PLACES.iter().enumerate() {
            let (file, found) = match (files.at(place), tree.files.get(*path)) {
                (None, None) => continue,
                (None, Some(_)) => return Err(format!("{path} should not be there")),
                (Some(_), None) => return Err(format!("{path} is not there")),
                (Some(file), Some(found)) => (file, found),
            };
            inodes[place] = found.inode;
            let (from, to) = self.sizes(state, last, file);
            if !(from..=to).contains(&found.bytes.len()) {
                return Err(format!("{path} has {} bytes", found.bytes.len()));
            }
            let oldest = kept.get(&file).copied().unwrap_or(0);
            let versions = (oldest..=last).map(|version| Version {
                bytes: self.states[version].of(file),
                is_newer: version > state,
            });
            let versions: Vec<Version<'_>> = versions.collect();
            check_bytes(&found.bytes, &versions).map_err(|error| format!("{path}: {error}"))?;
        }
        let is_one = files.at(0).is_some() && files.at(0) == files.at(1);
        match (inodes[0] != 0 && inodes[0] == inodes[1]) == is_one {
            true => Ok(()),
            false => Err("the names lead to the wrong files".into()),
        }
    }

    /// The sizes that a file may have: a write that is under way may have come into several transactions.
    fn sizes(&self, state: usize, last: usize, file: FileId) -> (usize, usize) {
        let size = self.states[state].of(file).len();
        let next = self.operations.get(state).filter(|_| state < last);
        let grows = next.is_some_and(|next| matches!(next.action, Action::Write | Action::Append));
        match grows {
            true => (size, size.max(self.states[state + 1].of(file).len())),
            false => (size, size),
        }
    }
}

/// A file's bytes at some moment.
struct Version<'a> {
    bytes: &'a [u8],
    /// After the moment that the names and sizes are of.
    is_newer: bool,
}

impl Version<'_> {
    /// Whether a sector at `at` may be of this version. Newer ones that are shorter have left zeroes; older ones
    /// that are shorter have nothing to show, for data come before the size that shows them.
    fn has(&self, at: usize, found: &[u8]) -> bool {
        let there = self.bytes.get(at..).unwrap_or(&[]);
        let (both, rest) = found.split_at(there.len().min(found.len()));
        let is_zero = rest.iter().all(|byte| *byte == 0) && (self.is_newer || rest.is_empty());
        both == &there[..both.len()] && is_zero
    }
}

/// Whether each sector is one of these versions'.
fn check_bytes(found: &[u8], versions: &[Version<'_>]) -> Result<(), String> {
    for (sector, bytes) in found.chunks(512).enumerate() {
        if !versions
            .iter()
            .any(|version| version.has(sector * 512, bytes))
        {
            let byte = bytes.first().copied().unwrap_or(0);
            return Err(format!("sector {sector} ({byte}...) was never so"));
        }
    }
    Ok(())
}
