//! Which files programs looked for in vain.
//!
//! The problem: a program that was packed without a file of its host says "cannot load module" or nothing at all. Its
//! lookups that failed say what it lacks, but a program looks for a hundred files that are nowhere, and for the same
//! name in many folders until one has it.
//!
//! The idea: a table of paths of a fixed size, each path once. A thread that tries one name in folder after folder is
//! on a *search*, which is open until it looks for another name in vain. If it finds that name while its search is
//! open, the search's paths are struck out; they stay in the table, so that the next search like it does not
//! bring them back. What is the machine's own affair (`/proc`, `/tmp` and the like) is not noted.
//!
//! Who finds a file asks nobody here unless a search for such a name is open: [`Absences::searched`] is a set of bits,
//! one for each open search, and [`bit_of`] a name's bit.
//!
//! Bounds: [`PATHS_MAX`] paths, [`PATHS_OF_FOLDER_MAX`] of one folder, [`TEXT_BYTES_MAX`] bytes of text. What does not fit
//! is counted. Nothing is allocated. A program fails for want of a file when it starts; one that serves looks for the same
//! file in vain with each request, so after [`HEARD_MAX`] misses the table has heard enough ([`Absences::is_over`]).
//!
//! Not here: which of these paths the host has (`host/cli`), the lock, threads.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

/// Paths in the table, those that were struck out among them.
pub const PATHS_MAX: usize = 128;
/// Paths of one folder: the first few tell what it lacks.
pub const PATHS_OF_FOLDER_MAX: usize = 16;
/// Bytes of all paths.
pub const TEXT_BYTES_MAX: usize = 8 << 10;

/// Misses that are listened to, and finds of names for which a search is open.
pub const HEARD_MAX: u64 = 16 << 10;

/// Folders that each machine makes anew.
const OWN: [&[u8]; 7] = [
    b"/proc",
    b"/sys",
    b"/dev",
    b"/run",
    b"/tmp",
    b"/var/run",
    b"/var/tmp",
];

/// Bytes from a name's end on that say which bit it has.
const TAIL_BYTES: usize = 8;

/// A thread's number; 0 is none's.
pub type ThreadId = u32;

/// One path.
#[derive(Clone, Copy, Debug)]
struct Absence {
    /// Where its text begins.
    start: usize,
    len: usize,
    /// Who is still on the search that it belongs to; 0 once that is over.
    searcher: ThreadId,
    /// The search found its name elsewhere.
    is_struck_out: bool,
}

/// The table.
#[derive(Debug)]
pub struct Absences {
    text: [u8; TEXT_BYTES_MAX],
    text_bytes: usize,
    paths: [Absence; PATHS_MAX],
    count: usize,
    unnoted: u64,
    heard: u64,
}

impl Default for Absences {
    fn default() -> Self {
        Self::new()
    }
}

impl Absences {
    /// An empty one.
    pub const fn new() -> Self {
        const NONE: Absence = Absence {
            start: 0,
            len: 0,
            searcher: 0,
            is_struck_out: false,
        };
        Self {
            text: [0; TEXT_BYTES_MAX],
            text_bytes: 0,
            paths: [NONE; PATHS_MAX],
            count: 0,
            unnoted: 0,
            heard: 0,
        }
    }

    /// `thread` has not found the absolute `path`.
    pub fn miss(&mut self, thread: ThreadId, path: &[u8]) {
        self.heard += 1;
        let path = without_slashes(path);
        if path.first() != Some(&b'/') || is_own(path) {
            return;
        }
        self.end_other_searches(thread, last_name(path));
        if let Some(known) = self.position(path) {
            if let Some(known) = self.paths.get_mut(known)
                && !known.is_struck_out
            {
                known.searcher = thread;
            }
            return;
        }
        if self.add(thread, path).is_none() {
            self.unnoted += 1;
        }
    }

    /// `thread` has found `path`, and with it what it searched.
    pub fn find(&mut self, thread: ThreadId, path: &[u8]) {
        self.heard += 1;
        let name = last_name(without_slashes(path));
        let text = &self.text;
        for absence in self.paths.iter_mut().take(self.count) {
            if absence.searcher == thread && last_name(text_of(text, absence)) == name {
                absence.searcher = 0;
                absence.is_struck_out = true;
            }
        }
    }

    /// The bits of names for which a search is open.
    pub fn searched(&self) -> u64 {
        let open = self.known().filter(|absence| absence.searcher != 0);
        open.fold(0, |bits, absence| {
            bits | bit_of(text_of(&self.text, absence))
        })
    }

    /// The paths that nobody has found elsewhere, the first first.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        let absent = self.known().filter(|absence| !absence.is_struck_out);
        absent.map(|absence| text_of(&self.text, absence))
    }

    /// How often a path had no room.
    pub fn unnoted(&self) -> u64 {
        self.unnoted
    }

    /// Whether it has heard of enough misses.
    pub fn is_over(&self) -> bool {
        self.heard >= HEARD_MAX
    }

    fn known(&self) -> impl Iterator<Item = &Absence> {
        self.paths.iter().take(self.count)
    }

    fn position(&self, path: &[u8]) -> Option<usize> {
        self.known()
            .position(|absence| absence.len == path.len() && text_of(&self.text, absence) == path)
    }

    /// A thread searches one name at a time.
    fn end_other_searches(&mut self, thread: ThreadId, name: &[u8]) {
        let text = &self.text;
        for absence in self.paths.iter_mut().take(self.count) {
            if absence.searcher == thread && last_name(text_of(text, absence)) != name {
                absence.searcher = 0;
            }
        }
    }

    /// `None` if there is no room.
    fn add(&mut self, thread: ThreadId, path: &[u8]) -> Option<()> {
        let folder = folder(path);
        let of_folder = self
            .known()
            .filter(|absence| self::folder(text_of(&self.text, absence)) == folder);
        if of_folder.count() >= PATHS_OF_FOLDER_MAX {
            return None;
        }
        let start = self.text_bytes;
        let slot = self.paths.get_mut(self.count)?;
        let room = self.text.get_mut(start..)?.get_mut(..path.len())?;
        room.copy_from_slice(path);
        *slot = Absence {
            start,
            len: path.len(),
            searcher: thread,
            is_struck_out: false,
        };
        self.text_bytes += path.len();
        self.count += 1;
        Some(())
    }
}

/// The bit of the last name of `path`: names that are the same have the same one.
pub fn bit_of(path: &[u8]) -> u64 {
    let name = last_name(without_slashes(path));
    let tail = name.iter().rev().take(TAIL_BYTES);
    let hash = tail.fold(0u32, |hash, &byte| {
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    1 << (hash % u64::BITS)
}

fn text_of<'a>(text: &'a [u8], absence: &Absence) -> &'a [u8] {
    let text = text.get(absence.start..).unwrap_or_default();
    text.get(..absence.len).unwrap_or_default()
}

/// Whether `path` is in a folder that is the machine's own affair.
fn is_own(path: &[u8]) -> bool {
    let is_below = |folder: &&[u8]| {
        path.strip_prefix(*folder)
            .is_some_and(|rest| rest.first().is_none_or(|&byte| byte == b'/'))
    };
    OWN.iter().any(is_below)
}

fn without_slashes(mut path: &[u8]) -> &[u8] {
    while let [rest @ .., b'/'] = path {
        path = rest;
    }
    path
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

fn folder(path: &[u8]) -> &[u8] {
    let above = path.len() - last_name(path).len();
    path.get(..above).unwrap_or_default()
}
