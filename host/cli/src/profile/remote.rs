//! The rings in the machine's memory, read from outside.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use profile::{Cursor, Event, Header};
use qemu::Qmp;

use super::announcement::RingPlace;

const WORD_BYTES: u64 = 8;
/// A header that changes while it is copied is copied again, so often at most.
const TRIES: u32 = 100;

/// The rings of one machine.
#[derive(Debug)]
pub struct Remote {
    memory: Memory,
    /// Events before samples: they explain them.
    rings: Vec<Ring>,
}

#[derive(Debug)]
struct Ring {
    at: u64,
    cursor: Cursor,
}

/// The machine's memory.
#[derive(Debug)]
struct Memory {
    qmp: Qmp,
    /// Where QEMU puts what it copies.
    scratch: PathBuf,
}

impl Remote {
    /// Connects to the QEMU of the machine whose folder this is; it has no rings yet.
    pub fn connect(folder: &Path) -> io::Result<Self> {
        let qmp = Qmp::connect(&folder.join("qmp.sock"))?;
        let scratch = folder.join("profile.part");
        let memory = Memory { qmp, scratch };
        Ok(Self {
            memory,
            rings: Vec::new(),
        })
    }

    /// Takes these rings up. Of those that are `old`, what is written already is left out.
    pub fn add(&mut self, places: &[RingPlace], old: bool) -> io::Result<()> {
        let events = places.iter().map(|place| place.events);
        let samples = places.iter().map(|place| place.samples);
        for at in events.chain(samples).collect::<Vec<_>>() {
            let cursor = if old {
                Cursor::from_now(&self.memory.header(at)?)
            } else {
                Cursor::from_start()
            };
            self.rings.push(Ring { at, cursor });
        }
        Ok(())
    }

    /// Calls `act` with each record that is new.
    pub fn poll(&mut self, act: &mut impl FnMut(&Event<'_>)) -> io::Result<()> {
        for ring in &mut self.rings {
            let header = self.memory.header(ring.at)?;
            let wanted = ring.cursor.wanted(&header);
            if wanted.is_empty() {
                continue;
            }
            let mut words = Vec::new();
            for part in header.places(wanted.clone()) {
                words.extend(self.memory.words(ring.at, part)?);
            }
            let after = self.memory.header(ring.at)?;
            ring.cursor
                .take(wanted.start, &words, &after, &mut |record| {
                    if let Some(event) = profile::decode(record) {
                        act(&event);
                    }
                });
        }
        Ok(())
    }

    /// Records that were overwritten before they were read.
    pub fn lost(&self) -> u64 {
        self.rings.iter().map(|ring| ring.cursor.lost()).sum()
    }
}

impl Memory {
    fn header(&mut self, at: u64) -> io::Result<Header> {
        for _ in 0..TRIES {
            let words = self.words(at, 0..profile::HEADER_WORDS as u64)?;
            if let Some(header) = Header::read(&words) {
                return Ok(header);
            }
        }
        Err(io::Error::other("the machine's rings are damaged"))
    }

    /// Copies the words `range` of the ring at `at`.
    fn words(&mut self, at: u64, range: Range<u64>) -> io::Result<Vec<u64>> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let (start, bytes) = (
            at + range.start * WORD_BYTES,
            (range.end - range.start) * WORD_BYTES,
        );
        self.qmp.save_memory(start, bytes, &self.scratch)?;
        let bytes = fs::read(&self.scratch)?;
        let (words, _) = bytes.as_chunks();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // It may never have been written.
        let _ = fs::remove_file(&self.scratch);
    }
}
