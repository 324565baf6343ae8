//! Carries out what a `plog` asks for, on a queue of blocks.
//!
//! An entry's buffer moves to the device as it is: header, bytes, and what fills the last block. What passes the
//! ring's end is copied; and so are small entries that were appended together, into one buffer for one write, for a request
//! costs more than a few blocks' copy. Proofs of what survives are made as completions are *taken*: a flush covers
//! what was taken before it was submitted (`core/block`, `order`).

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use block::order::{Flushing, Order, Writing};
use block::{Done, Durability, Failure};
use plog::{Area, Command, CommandId, Log, Place, Ticket};

use super::numbered::Numbered;
use super::{BlockQueue, Buffer, Completion, Look, Looks, Operation, Outcome, Request, Work};

/// The cookie of a read or write of our own; those of commands count from 0.
const OWN: u64 = u64::MAX;
/// Writes behind each other are one up to so many bytes.
const JOINED_BYTES_MAX: usize = 64 * 1024;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// What was submitted.
#[derive(Debug)]
enum UnderWay {
    Write(Vec<CommandId>, Writing, Durability),
    Flush(Flushing),
}

/// A write that was not submitted, for the next one may be joined to it.
struct Write {
    id: CommandId,
    block: u64,
    buffer: Buffer,
    bytes: usize,
    durability: Durability,
}

/// A queue, and what a log has under way on it.
pub struct Pump {
    queue: Box<dyn BlockQueue + Send>,
    order: Order,
    /// Buffers of entries whose writes were not submitted yet, and how many of their bytes are written, by sequence.
    kept: Numbered<(Buffer, usize)>,
    under_way: Numbered<UnderWay>,
    next_cookie: u64,
    /// Writes behind each other.
    joined: Vec<Write>,
    /// Ended while somebody read.
    ended: VecDeque<Completion>,
    /// In order: the queue was full.
    waiting: VecDeque<Request>,
    looks: Looks,
}

impl Pump {
    /// Over a queue whose blocks are the log's alone.
    pub fn new(queue: Box<dyn BlockQueue + Send>) -> Self {
        Self {
            queue,
            order: Order::new(),
            kept: Numbered::new(),
            under_way: Numbered::new(),
            next_cookie: 0,
            joined: Vec::new(),
            ended: VecDeque::new(),
            waiting: VecDeque::new(),
            looks: Looks::default(),
        }
    }

    /// A buffer for an entry; `None` while all are under way.
    pub fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        self.queue.buffer(bytes)
    }

    /// The buffer of an entry that was appended, to which no command was handed out yet.
    pub fn keep(&mut self, ticket: Ticket, buffer: Buffer) {
        let blocks = ticket.end.position() - ticket.place.position();
        let bytes = blocks as usize * self.block_bytes() as usize;
        self.kept.insert(ticket.place.sequence(), (buffer, bytes));
    }

    /// Can be read when [`turn`](Self::turn) has something to do, if [`arm`](Self::arm) has said so.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.queue.doorbell()
    }

    /// Whether anything is under way at the device, or about to be.
    pub fn is_busy(&self) -> bool {
        !self.under_way.is_empty() || !self.waiting.is_empty()
    }

    /// Asks for the doorbell; false if there is something to do already.
    pub fn arm(&mut self) -> bool {
        self.ended.is_empty() && self.queue.arm()
    }

    /// What is started from now on is [taken away](Self::take_work), where it is calls of this process's.
    pub fn put_off(&mut self) {
        self.queue.put_off();
    }

    /// See [`BlockQueue::take_work`].
    pub fn take_work(&mut self) -> Option<Work> {
        self.queue.take_work()
    }

    /// What became of it, of which the log hears with the next [`turn`](Self::turn).
    pub fn take_back(&mut self, done: Vec<Completion>) {
        self.queue.take_back(done);
    }

    /// Tells the log what has ended and the device what is to be done, until neither has more. Does not wait.
    pub fn turn(&mut self, log: &mut Log) {
        while self.step(log) {
            self.queue.kick();
        }
    }

    /// The same; and if something is under way then waits until something has ended: looks for it, where that is worth it, or
    /// sleeps in the call that hands it over.
    ///
    /// Errors: the blocks were taken away.
    pub fn turn_and_wait(&mut self, log: &mut Log, timeout: Option<Duration>) -> io::Result<()> {
        while self.step(log) {}
        if !self.is_busy() {
            return Ok(());
        }
        self.rest(log, timeout)?;
        self.turn(log);
        Ok(())
    }

    /// Until something has ended, or so long.
    fn rest(&mut self, log: &mut Log, timeout: Option<Duration>) -> io::Result<()> {
        if self.look(log) {
            return Ok(());
        }
        self.note_sleep();
        let waited = self.queue.wait(timeout);
        self.looks.wake();
        waited
    }

    /// Whether who waits should begin with looks, by [`turn`](Self::turn), and then [note](Looks::note) what became of them.
    pub fn are_looks_due(&mut self) -> bool {
        self.queue.ends_without_kernel() && self.looks.are_due()
    }

    /// Who waits does so asleep from now on, until the looks are told that it is over.
    pub fn note_sleep(&mut self) {
        if self.queue.ends_without_kernel() {
            self.looks.sleep();
        }
    }

    /// What is known of looks.
    pub fn looks(&mut self) -> &mut Looks {
        &mut self.looks
    }

    /// Looks until something has ended; false if nothing has, or it is not worth it.
    fn look(&mut self, log: &mut Log) -> bool {
        if !self.are_looks_due() {
            return false;
        }
        self.queue.kick();
        let mut look = Look::begin();
        loop {
            let has_ended = self.step(log);
            if has_ended {
                // What follows from it is handed over.
                self.queue.kick();
            }
            if has_ended || look.is_over() {
                self.looks.note(has_ended);
                return has_ended;
            }
        }
    }

    /// Takes what has ended and submits what is to be done; false if neither was anything.
    fn step(&mut self, log: &mut Log) -> bool {
        let mut has_moved = false;
        while let Some(completion) = self.ended.pop_front().or_else(|| self.queue.poll()) {
            has_moved = true;
            self.end(log, completion);
        }
        while self.submit_waiting()
            && let Some(command) = log.next_command()
        {
            has_moved = true;
            self.start(command);
        }
        self.submit_joined();
        has_moved
    }

    /// Until all entries before `place` are durable.
    ///
    /// Errors: the device failed, and the log is appended to no more.
    pub fn wait_durable(&mut self, log: &mut Log, place: Place) -> io::Result<()> {
        log.want_durable(place);
        self.turn(log);
        while log.durable().sequence() < place.sequence() {
            self.wait(log, None)?;
        }
        Ok(())
    }

    /// Waits until something has ended, and does what comes of it.
    ///
    /// Errors: as above.
    pub fn wait(&mut self, log: &mut Log, timeout: Option<Duration>) -> io::Result<()> {
        if let Some(failure) = log.failure() {
            return Err(io::Error::other(format!("the log's device: {failure:?}")));
        }
        if !self.is_busy() {
            return Err(io::Error::other("nothing is under way"));
        }
        self.rest(log, timeout)?;
        self.turn(log);
        Ok(())
    }

    fn submit_waiting(&mut self) -> bool {
        while let Some(request) = self.waiting.pop_front() {
            if let Err(request) = self.queue.submit(request) {
                self.waiting.push_front(request);
                break;
            }
        }
        self.waiting.is_empty()
    }

    fn submit(
        &mut self,
        operation: Operation,
        first: u64,
        buffer: Option<(Buffer, usize)>,
        under_way: UnderWay,
    ) {
        let block_bytes = self.block_bytes() as usize;
        let (buffer, bytes) = buffer.unzip();
        let request = Request {
            operation,
            first,
            count: (bytes.unwrap_or(0) / block_bytes) as u64,
            buffer,
            cookie: self.next_cookie,
        };
        self.under_way.insert(self.next_cookie, under_way);
        self.next_cookie += 1;
        self.waiting.push_back(request);
        self.submit_waiting();
    }

    fn start(&mut self, command: Command) {
        match command {
            Command::Write {
                id,
                block,
                bytes,
                durability,
            } => match self.part_of(id, bytes) {
                Some(buffer) => self.join(id, block, buffer, durability),
                None => self.refuse(id),
            },
            Command::Anchor {
                block,
                bytes,
                durability,
            } => match self.copy_of(&[&bytes]) {
                Some(buffer) => self.join(CommandId::Anchor, block, buffer, durability),
                None => self.refuse(CommandId::Anchor),
            },
            Command::Flush => {
                // It is for writes that are complete; those that are joined now it does not cover.
                let flushing = self.order.flush_begins();
                self.submit(Operation::Flush, 0, None, UnderWay::Flush(flushing));
            }
        }
    }

    /// Puts a write to those before it, if it is behind them and all of them are small.
    fn join(
        &mut self,
        id: CommandId,
        block: u64,
        (buffer, bytes): (Buffer, usize),
        durability: Durability,
    ) {
        let all: usize = self.joined.iter().map(|write| write.bytes).sum();
        let is_next = self.joined.last().is_none_or(|last| {
            let end = last.block + (last.bytes / self.block_bytes() as usize) as u64;
            end == block && last.durability == durability && all + bytes <= JOINED_BYTES_MAX
        });
        if !is_next {
            self.submit_joined();
        }
        self.joined.push(Write {
            id,
            block,
            buffer,
            bytes,
            durability,
        });
    }

    fn submit_joined(&mut self) {
        let mut joined = std::mem::take(&mut self.joined);
        let Some(first) = joined.first() else {
            return;
        };
        let (block, durability) = (first.block, first.durability);
        let ids = joined.iter().map(|write| write.id).collect();
        let buffer = match joined.len() {
            1 => joined.pop().map(|write| (write.buffer, write.bytes)),
            _ => self.copy_of(
                &joined
                    .iter()
                    .map(|write| &write.buffer[..write.bytes])
                    .collect::<Vec<_>>(),
            ),
        };
        let Some(buffer) = buffer else {
            joined.iter().for_each(|write| self.refuse(write.id));
            return;
        };
        let is_forced = durability == Durability::Forced;
        let under_way = UnderWay::Write(ids, self.order.write_begins(), durability);
        self.submit(
            Operation::Write { is_forced },
            block,
            Some(buffer),
            under_way,
        );
    }

    /// The buffer whose beginning is these bytes of an entry, and how many they are.
    fn part_of(&mut self, id: CommandId, bytes: Range<usize>) -> Option<(Buffer, usize)> {
        let CommandId::Entry { sequence, part } = id else {
            return None;
        };
        let count = bytes.len();
        let (kept, all) = self.kept.remove(sequence)?;
        if part == 0 && count == all {
            return Some((kept, count));
        }
        let copy = self.copy_of(&[kept.get(bytes)?]);
        if part == 0 {
            self.kept.insert(sequence, (kept, all));
        }
        copy
    }

    /// Bytes of whole blocks, in a buffer. Waits for one: there are some as soon as something ends.
    fn copy_of(&mut self, parts: &[&[u8]]) -> Option<(Buffer, usize)> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        loop {
            if let Some(mut buffer) = self.queue.buffer(bytes) {
                let mut rest = &mut *buffer;
                for part in parts {
                    let (to, behind) = rest.split_at_mut(part.len());
                    to.copy_from_slice(part);
                    rest = behind;
                }
                return Some((buffer, bytes));
            }
            if self.under_way.is_empty() || self.queue.wait(None).is_err() {
                return None;
            }
            while let Some(mut completion) = self.queue.poll() {
                completion.buffer = None;
                self.ended.push_back(completion);
            }
        }
    }

    /// There is no memory for it: the log ends.
    fn refuse(&mut self, id: CommandId) {
        let under_way = UnderWay::Write(vec![id], self.order.write_begins(), Durability::Volatile);
        self.under_way.insert(self.next_cookie, under_way);
        self.ended.push_back(Completion {
            cookie: self.next_cookie,
            outcome: Outcome::Failed,
            buffer: None,
        });
        self.next_cookie += 1;
    }

    fn end(&mut self, log: &mut Log, completion: Completion) {
        let Some(under_way) = self.under_way.remove(completion.cookie) else {
            return;
        };
        let result = match completion.outcome {
            Outcome::Done => Ok(()),
            Outcome::Revoked => Err(Failure::Gone),
            _ => Err(Failure::Medium),
        };
        // A stray would be one of a command that was not submitted, and those are not in the table.
        match under_way {
            UnderWay::Flush(flushing) => {
                if result.is_err() {
                    self.order.flush_failed();
                }
                let result = result.map(|()| Done::Flushed(self.order.flush_succeeded(flushing)));
                log.complete(CommandId::Flush, result).ok();
            }
            UnderWay::Write(ids, writing, durability) => {
                for id in ids {
                    let result = result.map(|()| self.written(writing, durability));
                    log.complete(id, result).ok();
                }
            }
        }
    }

    /// A forced write is one with a flush of its own.
    fn written(&self, writing: Writing, durability: Durability) -> Done {
        let written = self.order.write_completed(writing);
        if durability == Durability::Volatile {
            return Done::Written(written);
        }
        let flushed = self.order.flush_succeeded(self.order.flush_begins());
        match written.settle(&flushed) {
            Ok(durable) => Done::Durable(durable),
            Err(written) => Done::Written(written),
        }
    }

    /// One request of our own, until it is over; what else ends meanwhile is told later.
    fn carry_out(&mut self, request: Request) -> Result<Option<Buffer>, Failure> {
        let mut request = Some(request);
        loop {
            if let Some(unsent) = request.take() {
                request = self.queue.submit(unsent).err();
            }
            while let Some(completion) = self.queue.poll() {
                if completion.cookie != OWN {
                    self.ended.push_back(completion);
                    continue;
                }
                return match completion.outcome {
                    Outcome::Done => Ok(completion.buffer),
                    Outcome::Revoked => Err(Failure::Gone),
                    _ => Err(Failure::Medium),
                };
            }
            self.queue.wait(None).map_err(|_| Failure::Gone)?;
        }
    }

    fn own(&mut self, operation: Operation, first: u64, buffer: Option<Buffer>) -> Request {
        let bytes = buffer.as_ref().map_or(0, |buffer| buffer.len());
        Request {
            operation,
            first,
            count: bytes as u64 / u64::from(self.queue.geometry().block_bytes),
            buffer,
            cookie: OWN,
        }
    }
}

impl Area for Pump {
    fn block_bytes(&self) -> u32 {
        self.queue.geometry().block_bytes
    }

    fn blocks(&self) -> u64 {
        self.queue.geometry().blocks
    }

    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), Failure> {
        let block_bytes = u64::from(self.block_bytes());
        for (first, into) in (first..)
            .step_by(READ_BYTES / block_bytes as usize)
            .zip(into.chunks_mut(READ_BYTES))
        {
            let buffer = self.queue.buffer(into.len()).ok_or(Failure::TimedOut)?;
            let request = self.own(Operation::Read, first, Some(buffer));
            let buffer = self.carry_out(request)?.ok_or(Failure::Medium)?;
            into.copy_from_slice(buffer.get(..into.len()).ok_or(Failure::Medium)?);
        }
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), Failure> {
        let mut buffer = self.queue.buffer(from.len()).ok_or(Failure::TimedOut)?;
        buffer.copy_from_slice(from);
        let request = self.own(Operation::Write { is_forced: false }, first, Some(buffer));
        self.carry_out(request).map(drop)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let request = self.own(Operation::Flush, 0, None);
        self.carry_out(request).map(drop)
    }
}
