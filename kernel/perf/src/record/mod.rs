//! What stands in a ring (`enum perf_event_type` of linux/perf_event.h): words, the first of which
//! says what the record is and how long.

pub(super) mod sample;
pub(super) mod sideband;

use alloc::vec::Vec;

use base::CpuId;
use mach::mem::fallible::TryPush;
use sync::Result;
use task::Thread;

use crate::attributes::{AttrBits, Fields};

const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Who did something, when and where.
#[derive(Clone, Copy)]
pub(super) struct SampleContext {
    pub pid: u32,
    pub tid: u32,
    pub at_ns: u64,
    pub cpu: CpuId,
}

impl SampleContext {
    /// The thread does it, now and here.
    pub fn of(thread: &Thread) -> Self {
        Self {
            pid: thread.process.id(),
            tid: thread.id(),
            at_ns: mach::time::now().as_nanos(),
            cpu: mach::cpu::id(),
        }
    }
}

/// What an event says of itself in its records, and what it wants to have in them.
#[derive(Clone, Copy)]
pub(super) struct EventIdentity {
    pub id: u64,
    pub fields: Fields,
    pub hears: AttrBits,
}

/// A record.
pub(super) struct Record {
    words: Vec<u64>,
}

impl Record {
    pub fn new(kind: u32, misc: u16) -> Result<Self> {
        let mut record = Self { words: Vec::new() };
        record.push(u64::from(kind) | u64::from(misc) << 32)?;
        Ok(record)
    }

    pub fn push(&mut self, word: u64) -> Result<()> {
        Ok(self.words.try_push(word)?)
    }

    pub fn pair(&mut self, low: u32, high: u32) -> Result<()> {
        self.push(u64::from(low) | u64::from(high) << 32)
    }

    /// A string, with zeros behind it up to a whole word.
    pub fn text(&mut self, text: &[u8]) -> Result<()> {
        let (words, rest) = text.as_chunks();
        for word in words {
            self.push(u64::from_le_bytes(*word))?;
        }
        let mut last = [0; size_of::<u64>()];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.push(u64::from_le_bytes(last))
    }

    /// The record, with its length in the first word.
    pub fn finished(mut self) -> Self {
        let bytes = size_of_val(&*self.words) as u64;
        if let Some(head) = self.words.first_mut() {
            *head |= bytes << 48;
        }
        self
    }

    /// The record with what is told at the end of all but samples (`sample_id_all`).
    pub fn with_trailer(mut self, author: EventIdentity, moment: &SampleContext) -> Result<Self> {
        let fields = author.fields;
        if author.hears.contains(AttrBits::TRAILER) {
            self.identify(author, moment)?;
            if fields.contains(Fields::CPU) {
                self.pair(moment.cpu.0, 0)?;
            }
            if fields.contains(Fields::IDENTIFIER) {
                self.push(author.id)?;
            }
        }
        Ok(self.finished())
    }

    fn identify(&mut self, author: EventIdentity, moment: &SampleContext) -> Result<()> {
        let fields = author.fields;
        if fields.contains(Fields::TID) {
            self.pair(moment.pid, moment.tid)?;
        }
        if fields.contains(Fields::TIME) {
            self.push(moment.at_ns)?;
        }
        if fields.contains(Fields::ADDR) && self.is_sample() {
            self.push(0)?;
        }
        if fields.contains(Fields::ID) {
            self.push(author.id)?;
        }
        if fields.contains(Fields::STREAM_ID) {
            self.push(author.id)?;
        }
        Ok(())
    }

    fn is_sample(&self) -> bool {
        self.words
            .first()
            .is_some_and(|head| *head as u32 == SAMPLE)
    }

    /// What is in it.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// So many records are missing.
pub(super) fn lost(author: EventIdentity, count: u64) -> Result<Record> {
    let mut record = Record::new(LOST, 0)?;
    record.push(author.id)?;
    record.push(count)?;
    Ok(record)
}
