//! A log on a disk, and what is known of it: the oracle.

use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use models::Random;

use super::disk::SimDisk;
use crate::{AppendError, Command, CommandId, HEADER_BYTES, Log, OpenError, Promise, Sequence};
use crate::{ReadError, Ticket};

/// What went wrong: a sentence.
pub type Found<T = ()> = Result<T, String>;

/// What was appended, and what was said of it.
#[derive(Clone, Default)]
pub struct Model {
    /// All entries, by their numbers.
    pub entries: Vec<Vec<u8>>,
    /// Those before were said to be durable.
    pub durable: Sequence,
    /// Those before were said to be trimmed.
    pub trimmed: Sequence,
    /// Those before may be trimmed.
    pub head: Sequence,
}

impl Model {
    /// Checks what was recovered, which is what counts from now on.
    pub fn take(&mut self, log: &Log, disk: &mut SimDisk) -> Found {
        let (head, end) = (log.head().sequence(), log.end().sequence());
        if !(self.trimmed..=self.head).contains(&head) {
            return Err(format!(
                "begins at {head}, not {}..={}",
                self.trimmed, self.head
            ));
        }
        let appended = self.entries.len() as u64;
        if !(self.durable..=appended).contains(&end) {
            return Err(format!("ends at {end}, not {}..={appended}", self.durable));
        }
        let mut cursor = log.cursor();
        let mut bytes = Vec::new();
        for sequence in head..end {
            match cursor.next(disk, &mut bytes) {
                Ok(Some(_)) if Some(&bytes) == self.entries.get(sequence as usize) => {}
                Ok(Some(_)) => return Err(format!("{sequence} has bytes of another")),
                other => return Err(format!("{sequence} is not there: {other:?}")),
            }
        }
        self.entries.truncate(end as usize);
        (self.durable, self.head, self.trimmed) = (end, head, head);
        Ok(())
    }

    /// The same of a disk that lies: what is there is right, or is refused.
    pub fn take_of_liar(&mut self, log: &Log, disk: &mut SimDisk) -> Found<bool> {
        let (head, end) = (log.head().sequence(), log.end().sequence());
        if end > self.entries.len() as u64 {
            return Err(format!("ends at {end}, behind what was appended"));
        }
        let mut cursor = log.cursor();
        let mut bytes = Vec::new();
        for sequence in head..end {
            match cursor.next(disk, &mut bytes) {
                Ok(Some(item))
                    if item.tag == 1 && Some(&bytes) == self.entries.get(sequence as usize) => {}
                Err(ReadError::Corrupt(_)) => return Ok(false),
                other => return Err(format!("{sequence} is wrong: {other:?}")),
            }
        }
        self.entries.truncate(end as usize);
        self.durable = end;
        Ok(true)
    }
}

/// A log, its disk, and the buffers of what is under way.
pub struct Shell {
    pub log: Log,
    pub disk: SimDisk,
    pub model: Model,
    /// Whole entries from `first` on.
    buffers: Vec<Vec<u8>>,
    first: Sequence,
    serial: u64,
    pub promises_checked: bool,
}

impl Shell {
    pub fn new(log: Log, disk: SimDisk, model: Model, serial: u64) -> Self {
        Self {
            first: log.end().sequence(),
            log,
            disk,
            model,
            buffers: Vec::new(),
            serial,
            promises_checked: true,
        }
    }

    /// Bytes that no other entry has.
    fn payload(&mut self, len: usize) -> Vec<u8> {
        self.serial += 1;
        let mut random = Random::new(self.serial);
        (0..len).map(|_| random.bits() as u8).collect()
    }

    pub fn serial(&self) -> u64 {
        self.serial + 1000
    }

    pub fn append(&mut self, len: usize, promise: Promise) -> Result<Ticket, AppendError> {
        let payload = self.payload(len);
        let mut header = [0; HEADER_BYTES];
        let (front, back) = payload.split_at(len / 3);
        let ticket = self.log.append(1, &mut header, &[front, back], promise)?;
        let mut buffer = header.to_vec();
        buffer.extend(&payload);
        buffer.resize(
            buffer
                .len()
                .next_multiple_of(self.disk.block_bytes as usize),
            0xee,
        );
        self.buffers.push(buffer);
        self.model.entries.push(payload);
        Ok(ticket)
    }

    /// Gives the disk all that it may be told.
    pub fn send(&mut self) {
        while let Some(command) = self.log.next_command() {
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
                    let buffer = &self.buffers[(sequence - self.first) as usize];
                    let bytes = buffer[bytes].to_vec();
                    self.disk.write_begins(id, block, bytes, durability);
                }
                Command::Anchor {
                    block,
                    bytes,
                    durability,
                } => {
                    let id = CommandId::Anchor;
                    self.disk.write_begins(id, block, bytes, durability);
                }
                Command::Flush => self.disk.flush_begins(),
            }
        }
    }

    /// Ends one command, and notes what the log says then.
    pub fn finish(&mut self, at: usize, random: &mut Random) -> Found {
        let (id, result) = self.disk.finish(at, random);
        let known = self.log.complete(id, result);
        known.map_err(|_| format!("{id:?} was not known"))?;
        self.note()
    }

    fn note(&mut self) -> Found {
        let log = &self.log;
        let points = [log.durable(), log.accepted(), log.submitted(), log.end()];
        if !points.is_sorted_by_key(|place| place.position()) {
            return Err(format!("the points are out of order: {points:?}"));
        }
        self.model.durable = log.durable().sequence();
        self.model.trimmed = log.trimmed().sequence();
        Ok(())
    }

    /// Ends all, and what comes of it.
    pub fn settle(&mut self, random: &mut Random) -> Found {
        for _ in 0..10_000 {
            self.send();
            match self.disk.pending() {
                0 => return Ok(()),
                count => self.finish(random.below(count), random)?,
            }
        }
        Err("it never ends".to_string())
    }

    /// Trims about a part of what is durable.
    pub fn trim(&mut self, random: &mut Random) -> Found {
        let mut cursor = self.log.cursor();
        let mut bytes = vec![];
        let durable = self.log.durable().sequence() - self.log.head().sequence();
        for _ in 0..random.below(durable + 1) {
            let read = cursor.next(&mut self.disk, &mut bytes);
            if !matches!(read, Ok(Some(_))) {
                return match self.promises_checked {
                    true => Err(format!("not read: {read:?}")),
                    false => Ok(()),
                };
            }
        }
        let trimmed = self.log.trim(cursor.place());
        self.model.head = self.log.head().sequence();
        trimmed.map_err(|why| format!("{why:?}"))
    }
}

/// Opens a disk that works, and checks what is there.
pub fn opened(mut disk: SimDisk, mut model: Model, serial: u64) -> Found<Shell> {
    disk.works_for = None;
    let log = crate::open(&mut disk).map_err(|why: OpenError| format!("not opened: {why:?}"))?;
    model.take(&log, &mut disk)?;
    Ok(Shell::new(log, disk, model, serial))
}

/// Carries out the commands of a log that something is built on.
pub struct Driver {
    pub disk: SimDisk,
    /// Whole entries, by their numbers.
    pub buffers: std::collections::BTreeMap<Sequence, Vec<u8>>,
}

impl Driver {
    pub fn new(block_bytes: u32, blocks: u64) -> Self {
        Self {
            disk: SimDisk::new(block_bytes, blocks),
            buffers: Default::default(),
        }
    }

    /// Keeps an entry's bytes as a caller would.
    pub fn keep(&mut self, ticket: Ticket, parts: &[&[u8]]) {
        let mut buffer = parts.concat();
        buffer.resize(
            buffer
                .len()
                .next_multiple_of(self.disk.block_bytes as usize),
            0,
        );
        self.buffers.insert(ticket.place.sequence(), buffer);
    }

    pub fn send(&mut self, log: &mut Log) {
        while let Some(command) = log.next_command() {
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
                    let bytes = self.buffers[&sequence][bytes].to_vec();
                    self.disk.write_begins(id, block, bytes, durability);
                }
                Command::Anchor {
                    block,
                    bytes,
                    durability,
                } => {
                    let id = CommandId::Anchor;
                    self.disk.write_begins(id, block, bytes, durability);
                }
                Command::Flush => self.disk.flush_begins(),
            }
        }
    }

    /// Ends at most so many commands.
    pub fn run(&mut self, log: &mut Log, count: usize, random: &mut Random) {
        for _ in 0..count {
            self.send(log);
            if self.disk.pending() == 0 {
                return;
            }
            let at = random.below(self.disk.pending());
            let (id, result) = self.disk.finish(at, random);
            log.complete(id, result).expect("it is under way");
        }
        self.send(log);
    }

    pub fn lose_power(&mut self, random: &mut Random) {
        self.disk = self.disk.after_loss(&mut |below| random.below(below));
        self.buffers.clear();
    }
}
