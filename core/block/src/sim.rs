//! A disk that keeps writes in a cache, finishes commands in any order, errs when told to, and loses
//! power.
//!
//! For tests, the simulator, and whatever claims to survive a loss of power. Memory is a simulated bus
//! ([`SimMemory`]): a command whose memory is gone is found. It panics when the *queue* breaks the
//! rules.
//!
//! # What a loss of power leaves
//! Each block, by itself, holds any of the versions that were written to it since the last flush, or the
//! one from before: cached writes reach the medium in no order, and only in part. Commands that had not
//! ended are among them. What was flushed or forced is there.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use hal::Span;
use hal::sim::SimMemory;

use crate::SECTOR_BYTES;
use crate::channel::{Broken, Channel, Command, SubmitError, Tag, Verdict};
use crate::limits::{Cache, Limits};
use crate::request::{Durability, Operation, SectorRange};

/// Chance: a number below the argument.
pub type Pick<'a> = &'a mut dyn FnMut(usize) -> usize;

/// A command that the disk has not ended.
struct Pending {
    tag: Tag,
    operation: Operation,
    sectors: SectorRange,
    spans: Vec<Span>,
}

struct State {
    memory: SimMemory,
    limits: Limits,
    depth: u16,
    medium: Vec<u8>,
    /// Versions of blocks that a flush would bring to the medium, oldest first.
    cache: BTreeMap<u64, Vec<Vec<u8>>>,
    submitted: Vec<Pending>,
    pending: Vec<Pending>,
    ended: VecDeque<(Tag, Verdict)>,
    free: Vec<Tag>,
    /// How the next commands end, whatever they ask for.
    verdicts: VecDeque<Verdict>,
    lies: bool,
    commands: u64,
}

/// The disk; clones share it.
#[derive(Clone)]
pub struct SimDisk(Rc<RefCell<State>>);

/// Its queue.
pub struct SimChannel(SimDisk);

impl SimDisk {
    /// An empty disk, which takes `depth` commands at once.
    pub fn new(memory: &SimMemory, limits: Limits, depth: u16) -> Self {
        let bytes = (limits.sectors * SECTOR_BYTES) as usize;
        Self(Rc::new(RefCell::new(State {
            memory: memory.clone(),
            limits,
            depth,
            medium: vec![0; bytes],
            cache: BTreeMap::new(),
            submitted: Vec::new(),
            pending: Vec::new(),
            ended: VecDeque::new(),
            free: (0..depth).map(Tag).collect(),
            verdicts: VecDeque::new(),
            lies: false,
            commands: 0,
        })))
    }

    /// A way to it, after a start.
    pub fn channel(&self) -> SimChannel {
        SimChannel(self.clone())
    }

    /// Commands that it has and has not ended.
    pub fn pending(&self) -> usize {
        self.0.borrow().pending.len()
    }

    /// Commands that it was ever shown.
    pub fn commands(&self) -> u64 {
        self.0.borrow().commands
    }

    /// What the `at`-th of its commands asks for, if it has so many.
    pub fn operation(&self, at: usize) -> Option<Operation> {
        let state = self.0.borrow();
        state.pending.get(at).map(|command| command.operation)
    }

    /// Ends the `at`-th of its commands.
    pub fn finish(&self, at: usize) {
        self.0.borrow_mut().finish(at);
    }

    /// Ends all commands, in the order that chance has.
    pub fn finish_all(&self, pick: Pick<'_>) {
        while self.pending() != 0 {
            self.finish(pick(self.pending()));
        }
    }

    /// The next command that it ends ends so.
    pub fn end_next_with(&self, verdict: Verdict) {
        self.0.borrow_mut().verdicts.push_back(verdict);
    }

    /// From now on its queue is not to be believed.
    pub fn lie(&self) {
        self.0.borrow_mut().lies = true;
    }

    /// It is stopped: commands that it has are forgotten, done or not; its cache stays.
    pub fn stop(&self) {
        let mut state = self.0.borrow_mut();
        state.submitted.clear();
        state.pending.clear();
        state.ended.clear();
        state.lies = false;
        state.free = (0..state.depth).map(Tag).collect();
    }

    /// The power fails, and comes back.
    pub fn lose_power(&self, pick: Pick<'_>) {
        self.0.borrow_mut().lose_power(pick);
        self.stop();
    }

    /// Its cache is gone, as after a flush that failed.
    pub fn lose_cache(&self) {
        self.0.borrow_mut().cache.clear();
    }

    /// The bytes that reads see.
    pub fn bytes(&self, range: SectorRange) -> Vec<u8> {
        self.0.borrow().read(range)
    }
}

impl State {
    fn block_bytes(&self) -> usize {
        self.limits.block_bytes as usize
    }

    /// The blocks of a range.
    fn blocks(&self, range: SectorRange) -> core::ops::Range<u64> {
        let per_block = u64::from(self.limits.block_bytes) / SECTOR_BYTES;
        assert!(
            range.first.is_multiple_of(per_block) && range.count.is_multiple_of(per_block),
            "the queue sent part of a block"
        );
        range.first / per_block..(range.first + range.count) / per_block
    }

    fn read(&self, range: SectorRange) -> Vec<u8> {
        let mut bytes = Vec::new();
        for block in self.blocks(range) {
            let newest = self.cache.get(&block).and_then(|versions| versions.last());
            let start = block as usize * self.block_bytes();
            let on_medium = &self.medium[start..start + self.block_bytes()];
            bytes.extend_from_slice(newest.map_or(on_medium, |version| version));
        }
        bytes
    }

    fn write(&mut self, range: SectorRange, bytes: &[u8], forced: bool) {
        let is_cached = self.limits.cache != Cache::WriteThrough && !forced;
        let size = self.block_bytes();
        for (block, version) in self.blocks(range).zip(bytes.chunks(size)) {
            match is_cached {
                true => self.cache.entry(block).or_default().push(version.to_vec()),
                false => {
                    self.cache.remove(&block);
                    self.put(block, version);
                }
            }
        }
    }

    fn put(&mut self, block: u64, version: &[u8]) {
        let start = block as usize * self.block_bytes();
        self.medium[start..start + version.len()].copy_from_slice(version);
    }

    fn flush(&mut self) {
        for (block, versions) in core::mem::take(&mut self.cache) {
            if let Some(newest) = versions.last() {
                self.put(block, newest);
            }
        }
    }

    fn gather(&self, spans: &[Span]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for span in spans {
            let mut part = vec![0; span.len() as usize];
            let read = self.memory.read(span.addr(), &mut part);
            read.expect("the memory of a command is there until it ends");
            bytes.extend(part);
        }
        bytes
    }

    fn scatter(&self, spans: &[Span], mut bytes: &[u8]) {
        for span in spans {
            let (part, rest) = bytes.split_at(span.len() as usize);
            let written = self.memory.write(span.addr(), part);
            written.expect("the memory of a command is there until it ends");
            bytes = rest;
        }
    }

    fn finish(&mut self, at: usize) {
        let command = self.pending.remove(at);
        let verdict = self.verdicts.pop_front().unwrap_or(Verdict::Done);
        if verdict == Verdict::Done {
            self.perform(&command);
        }
        self.ended.push_back((command.tag, verdict));
    }

    fn perform(&mut self, command: &Pending) {
        let range = command.sectors;
        match command.operation {
            Operation::Read => self.scatter(&command.spans, &self.read(range)),
            Operation::Write(durability) => {
                let bytes = self.gather(&command.spans);
                self.write(range, &bytes, durability == Durability::Forced);
            }
            Operation::Flush => self.flush(),
            Operation::Discard | Operation::WriteZeroes { .. } => {
                let zeroes = vec![0; range.bytes() as usize];
                self.write(range, &zeroes, false);
            }
        }
    }

    fn lose_power(&mut self, pick: Pick<'_>) {
        for command in core::mem::take(&mut self.pending) {
            if let Operation::Write(_) = command.operation {
                let bytes = self.gather(&command.spans);
                self.write(command.sectors, &bytes, false);
            }
        }
        for (block, versions) in core::mem::take(&mut self.cache) {
            let survivor = pick(versions.len() + 1).checked_sub(1);
            if let Some(version) = survivor.and_then(|at| versions.get(at)) {
                self.put(block, version);
            }
        }
    }

    /// What a queue must keep to.
    fn check(&self, command: &Command<'_>) {
        let limits = &self.limits;
        let end = command.sectors.first + command.sectors.count;
        assert!(end <= limits.sectors, "beyond the end");
        assert!(command.spans.len() <= usize::from(limits.segments_max));
        let bytes: u64 = command.spans.iter().map(|span| u64::from(span.len())).sum();
        if command.operation.has_data() {
            assert_eq!(bytes, command.sectors.bytes(), "memory and sectors differ");
            assert!(bytes <= u64::from(limits.command_bytes_max) && bytes != 0);
        }
        if let Some(chunk) = limits.chunk_sectors.map(u64::from) {
            assert_eq!(command.sectors.first / chunk, (end - 1) / chunk);
        }
        for span in command.spans {
            assert!(span.len() <= limits.segment_bytes_max && !span.is_empty());
            assert!(span.addr().0.is_multiple_of(limits.segment_align.into()));
            if let Some(boundary) = limits.segment_boundary {
                let last = span.addr().0 + u64::from(span.len()) - 1;
                assert_eq!(span.addr().0 / boundary, last / boundary);
            }
        }
        if command.operation == Operation::Write(Durability::Forced) {
            let can = limits.cache == Cache::WriteBack { forces: true };
            assert!(can, "the disk cannot force a write");
        }
    }
}

impl Channel for SimChannel {
    fn depth(&self) -> u16 {
        self.0.0.borrow().depth
    }

    fn submit(&mut self, command: &Command<'_>) -> Result<Tag, SubmitError> {
        let mut state = self.0.0.borrow_mut();
        state.check(command);
        let tag = state.free.pop().ok_or(SubmitError::Full)?;
        state.submitted.push(Pending {
            tag,
            operation: command.operation,
            sectors: command.sectors,
            spans: command.spans.to_vec(),
        });
        Ok(tag)
    }

    fn publish(&mut self) {
        let state = &mut *self.0.0.borrow_mut();
        state.commands += state.submitted.len() as u64;
        state.pending.append(&mut state.submitted);
    }

    fn complete(&mut self) -> Result<Option<(Tag, Verdict)>, Broken> {
        let mut state = self.0.0.borrow_mut();
        match state.lies {
            true => Err(Broken),
            false => {
                let ended = state.ended.pop_front();
                // A tag is its command's until the queue has heard of the end.
                state.free.extend(ended.map(|(tag, _)| tag));
                Ok(ended)
            }
        }
    }

    fn arm(&mut self) -> bool {
        !self.0.0.borrow().ended.is_empty()
    }

    fn retire(&mut self) {}
}
