//! Files, their disk, and what is known of them: the oracle.

use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use models::Random;
use plog::{AppendError, Command, CommandId, Promise, Sequence};

use super::disk::SimDisk;
use crate::{Compacted, Error, FileNumber, Files, Piece};

/// What went wrong: a sentence.
pub type Outcome<T = ()> = Result<T, String>;
/// Files by their names.
pub type Content = BTreeMap<Vec<u8>, Vec<u8>>;

pub const BUFFER_BYTES: usize = 1024;

pub struct World {
    pub files: Files<Vec<u8>>,
    pub disk: SimDisk,
    /// Sealed and not durable.
    under_way: BTreeMap<Sequence, Vec<u8>>,
    pub now: Content,
    /// What the files are if the log ends behind the entry of this number, for those that changed them.
    states: Vec<(Sequence, Content)>,
}

impl World {
    pub fn new(block_bytes: u32, blocks: u64) -> Self {
        let mut disk = SimDisk::new(block_bytes, blocks);
        let log = plog::format(&mut disk, 1).expect("an area for a log");
        Self {
            files: Files::open(log, &mut disk, vec![0; BUFFER_BYTES]).expect("an empty log"),
            disk,
            under_way: BTreeMap::new(),
            now: Content::new(),
            states: vec![(0, Content::new())],
        }
    }

    /// The files are `now` when what is gathered is durable.
    fn note(&mut self) {
        let sequence = self.files.log().end().sequence() + 1;
        if self
            .states
            .last()
            .is_some_and(|(last, _)| *last == sequence)
        {
            self.states.pop();
        }
        self.states.push((sequence, self.now.clone()));
    }

    /// Seals until `change` is done or the log is full.
    fn change<T>(
        &mut self,
        random: &mut Random,
        mut change: impl FnMut(&mut Files<Vec<u8>>) -> Result<T, Error>,
    ) -> Option<T> {
        loop {
            match change(&mut self.files) {
                Ok(done) => return Some(done),
                Err(Error::Gathered) if self.seal(Promise::Accepted, random) => {}
                Err(Error::Gathered | Error::Full) => return None,
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    pub fn create(&mut self, name: &[u8], random: &mut Random) -> Option<FileNumber> {
        let number = self.change(random, |files| files.create(name))?;
        self.now.insert(name.to_vec(), Vec::new());
        self.note();
        Some(number)
    }

    /// Writes as much as the log takes: all, or nothing.
    pub fn write(&mut self, name: &[u8], offset: usize, bytes: &[u8], random: &mut Random) -> bool {
        let Some(number) = self.files.find(name) else {
            return false;
        };
        if !self.files.has_room(bytes.len()) {
            return false;
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = (offset + done) as u64;
            let written = self.change(random, |files| files.write(number, at, &bytes[done..]));
            let Some(count) = written else {
                panic!("there was room for all of it");
            };
            let file = self.now.get_mut(name).expect("a file with a name");
            let end = offset + done + count;
            file.resize(file.len().max(end), 0);
            file[offset + done..end].copy_from_slice(&bytes[done..done + count]);
            done += count;
            self.note();
        }
        true
    }

    pub fn set_size(&mut self, name: &[u8], size: usize, random: &mut Random) {
        let Some(number) = self.files.find(name) else {
            return;
        };
        if self
            .change(random, |files| files.set_size(number, size as u64))
            .is_some()
        {
            self.now.get_mut(name).expect("a file").resize(size, 0);
            self.note();
        }
    }

    pub fn rename(&mut self, from: &[u8], to: &[u8], random: &mut Random) {
        let Some(number) = self.files.find(from) else {
            return;
        };
        if self
            .change(random, |files| files.rename(number, to))
            .is_some()
        {
            let file = self.now.remove(from).expect("a file");
            self.now.insert(to.to_vec(), file);
            self.note();
        }
    }

    pub fn remove(&mut self, name: &[u8], random: &mut Random) -> bool {
        let Some(number) = self.files.find(name) else {
            return false;
        };
        let is_removed = self.change(random, |files| files.remove(number)).is_some();
        if is_removed {
            self.now.remove(name);
            self.note();
        }
        is_removed
    }

    /// Makes an entry of what was gathered; false if the log has no room.
    pub fn seal(&mut self, promise: Promise, random: &mut Random) -> bool {
        if !self.files.is_gathered() {
            return true;
        }
        for _ in 0..1000 {
            match self.files.seal(vec![0; BUFFER_BYTES], promise) {
                Ok(sealed) => {
                    let sequence = sealed.ticket.place.sequence();
                    self.under_way.insert(sequence, sealed.buffer);
                    return true;
                }
                Err((AppendError::Busy | AppendError::Full, _)) => self.run(20, random),
                Err((other, _)) => panic!("{other:?}"),
            }
        }
        false
    }

    /// Seals, and waits until it is durable.
    pub fn sync(&mut self, random: &mut Random) -> bool {
        let is_sealed = self.seal(Promise::Durable, random);
        let end = self.files.log().end();
        self.files.log().want_durable(end);
        self.run(1000, random);
        is_sealed
    }

    fn send(&mut self) {
        while let Some(command) = self.files.log().next_command() {
            match command {
                Command::Write {
                    id,
                    block,
                    bytes,
                    durability,
                } => {
                    let CommandId::Entry { sequence, .. } = id else {
                        panic!("a write of an entry");
                    };
                    let bytes = self.under_way[&sequence][bytes].to_vec();
                    self.disk.write_begins(id, block, bytes, durability);
                }
                Command::Anchor {
                    block,
                    bytes,
                    durability,
                } => {
                    self.disk
                        .write_begins(CommandId::Anchor, block, bytes, durability);
                }
                Command::Flush => self.disk.flush_begins(),
            }
        }
    }

    /// Ends at most so many commands.
    pub fn run(&mut self, count: usize, random: &mut Random) {
        for _ in 0..count {
            self.send();
            if self.disk.pending() == 0 {
                break;
            }
            let at = random.below(self.disk.pending());
            let (id, result) = self.disk.finish(at, random);
            self.files
                .log()
                .complete(id, result)
                .expect("it is under way");
        }
        self.send();
        let durable = self.files.log().durable().sequence();
        self.under_way = self.under_way.split_off(&durable);
    }

    pub fn compact(&mut self, random: &mut Random) -> Compacted {
        self.files.trim();
        let compacted = self.files.compact(&mut self.disk, &mut Vec::new());
        let compacted = compacted.expect("a disk that works");
        if compacted == Compacted::Gathered {
            self.seal(Promise::Accepted, random);
        }
        self.files.log().anchor_soon();
        compacted
    }

    /// Compacts until there is room, or a lap has found none.
    pub fn make_room(&mut self, bytes: usize, random: &mut Random) -> bool {
        for _ in 0..2 * self.files.entries() + 8 {
            if self.files.has_room(bytes) {
                return true;
            }
            if self.compact(random) != Compacted::Moved {
                self.sync(random);
                self.files.trim();
                self.files.log().anchor_soon();
                self.run(1000, random);
            }
        }
        false
    }

    /// All bytes of a file.
    pub fn read(&mut self, number: FileNumber) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut entry = Vec::new();
        while let Some(piece) = self.files.piece(number, bytes.len() as u64) {
            match piece {
                Piece::Hole(count) => bytes.resize(bytes.len() + count as usize, 0),
                Piece::Gathered(more) => bytes.extend(more),
                Piece::UnderWay {
                    sequence,
                    at,
                    bytes: count,
                } => {
                    let at = plog::HEADER_BYTES + at;
                    bytes.extend(&self.under_way[&sequence][at..at + count]);
                }
                Piece::Stored {
                    place,
                    at,
                    bytes: count,
                } => {
                    let mut cursor = self.files.log().cursor_at(place);
                    let read = cursor.next(&mut self.disk, &mut entry);
                    let more = matches!(read, Ok(Some(_))).then(|| entry.get(at..at + count));
                    let more = more
                        .flatten()
                        .ok_or_else(|| format!("not read: {read:?}"))?;
                    bytes.extend(more);
                }
            }
        }
        Ok(bytes)
    }

    /// The files are what they should be.
    pub fn check(&mut self) -> Outcome {
        let names: Vec<_> = self
            .files
            .names()
            .map(|(name, at)| (name.to_vec(), at))
            .collect();
        let mut found = Content::new();
        for (name, number) in names {
            found.insert(name, self.read(number)?);
        }
        match found == self.now {
            true => Ok(()),
            false => Err(format!(
                "{} are {} files",
                describe(&found),
                describe(&self.now)
            )),
        }
    }

    pub fn lose_power(&mut self, random: &mut Random) -> Outcome {
        let durable = self.files.log().durable().sequence();
        self.disk = self.disk.after_loss(&mut |below| random.below(below));
        self.under_way.clear();
        let log = plog::open(&mut self.disk).map_err(|why| format!("{why:?}"))?;
        let end = log.end().sequence();
        if end < durable {
            return Err(format!("ends at {end}, and {durable} was durable"));
        }
        let files = Files::open(log, &mut self.disk, vec![0; BUFFER_BYTES]);
        self.files = files.map_err(|why| format!("{why:?}"))?;
        self.states.retain(|(sequence, _)| *sequence <= end);
        let (_, state) = self.states.last().expect("the first is always there");
        self.now = state.clone();
        self.check()
    }
}

fn describe(content: &Content) -> String {
    let files = content.iter();
    let files: Vec<_> = files
        .map(|(name, bytes)| format!("{}: {}", String::from_utf8_lossy(name), bytes.len()))
        .collect();
    format!("{files:?}")
}
