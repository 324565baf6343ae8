//! Carries out what a `plog` asks for, on a queue of blocks.
//!
//! An entry's buffer moves to the device as it is: header, bytes, and what fills the last block. Only one that passes the
//! ring's end is copied, the part behind it. Proofs of what survives are made as completions are *taken*: a flush covers
//! what was taken before it was submitted (`core/block`, `order`).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use block::order::{Flushing, Order, Writing};
use block::{Done, Durability, Failure};
use plog::{Area, Command, CommandId, Log, Place, Sequence, Ticket};

use super::{BlockQueue, Buffer, Completion, Operation, Outcome, Request};

/// The cookie of a read or write of our own; those of commands are below.
const OWN: u64 = u64::MAX;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// What was submitted.
#[derive(Clone, Copy, Debug)]
enum UnderWay {
    Write(Writing, Durability),
    Flush(Flushing),
}

/// A queue, and what a log has under way on it.
pub struct Pump {
    queue: Box<dyn BlockQueue + Send>,
    order: Order,
    /// Buffers of entries whose writes were not submitted yet, and how many of their bytes are written.
    kept: BTreeMap<Sequence, (Buffer, usize)>,
    under_way: BTreeMap<u64, UnderWay>,
    /// Ended while somebody read.
    ended: VecDeque<Completion>,
    /// The queue was full.
    waiting: Option<Request>,
}

impl Pump {
    /// Over a queue whose blocks are the log's alone.
    pub fn new(queue: Box<dyn BlockQueue + Send>) -> Self {
        Self {
            queue,
            order: Order::new(),
            kept: BTreeMap::new(),
            under_way: BTreeMap::new(),
            ended: VecDeque::new(),
            waiting: None,
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

    /// Asks for the doorbell; false if there is something to do already.
    pub fn arm(&mut self) -> bool {
        self.ended.is_empty() && self.queue.arm()
    }

    /// Tells the log what has ended and the device what is to be done, until neither has more. Does not wait.
    pub fn turn(&mut self, log: &mut Log) {
        loop {
            let mut is_quiet = true;
            while let Some(completion) = self.ended.pop_front().or_else(|| self.queue.poll()) {
                is_quiet = false;
                self.end(log, completion);
            }
            while self.submit_waiting()
                && let Some(command) = log.next_command()
            {
                is_quiet = false;
                self.start(command);
            }
            if is_quiet {
                return;
            }
            self.queue.kick();
        }
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
        if self.under_way.is_empty() && self.waiting.is_none() {
            return Err(io::Error::other("nothing is under way"));
        }
        self.queue.wait(timeout)?;
        self.turn(log);
        Ok(())
    }

    fn submit_waiting(&mut self) -> bool {
        if let Some(request) = self.waiting.take() {
            self.waiting = self.queue.submit(request).err();
        }
        self.waiting.is_none()
    }

    fn submit(&mut self, request: Request, under_way: UnderWay) {
        self.under_way.insert(request.cookie, under_way);
        self.waiting = self.queue.submit(request).err();
    }

    fn start(&mut self, command: Command) {
        match command {
            Command::Write {
                id,
                block,
                bytes,
                durability,
            } => match self.part_of(id, bytes) {
                Some(buffer) => self.write(id, block, buffer, durability),
                None => self.refuse(id),
            },
            Command::Anchor {
                block,
                bytes,
                durability,
            } => match self.copy_of(&bytes) {
                Some(buffer) => self.write(CommandId::Anchor, block, buffer, durability),
                None => self.refuse(CommandId::Anchor),
            },
            Command::Flush => {
                let request = Request {
                    operation: Operation::Flush,
                    first: 0,
                    count: 0,
                    buffer: None,
                    cookie: cookie_of(CommandId::Flush),
                };
                self.submit(request, UnderWay::Flush(self.order.flush_begins()));
            }
        }
    }

    fn write(
        &mut self,
        id: CommandId,
        first: u64,
        buffer: (Buffer, usize),
        durability: Durability,
    ) {
        let (buffer, bytes) = buffer;
        let is_forced = durability == Durability::Forced;
        let request = Request {
            operation: Operation::Write { is_forced },
            first,
            count: bytes as u64 / u64::from(self.queue.geometry().block_bytes),
            buffer: Some(buffer),
            cookie: cookie_of(id),
        };
        self.submit(
            request,
            UnderWay::Write(self.order.write_begins(), durability),
        );
    }

    /// The buffer whose beginning is these bytes of an entry, and how many they are.
    fn part_of(&mut self, id: CommandId, bytes: Range<usize>) -> Option<(Buffer, usize)> {
        let CommandId::Entry { sequence, part } = id else {
            return None;
        };
        let count = bytes.len();
        let (kept, all) = self.kept.remove(&sequence)?;
        if part == 0 && count == all {
            return Some((kept, count));
        }
        let copy = self.copy_of(kept.get(bytes)?);
        if part == 0 {
            self.kept.insert(sequence, (kept, all));
        }
        copy
    }

    /// Bytes of whole blocks, in a buffer. Waits for one: there are some as soon as something ends.
    fn copy_of(&mut self, bytes: &[u8]) -> Option<(Buffer, usize)> {
        loop {
            if let Some(mut buffer) = self.queue.buffer(bytes.len()) {
                buffer.copy_from_slice(bytes);
                return Some((buffer, bytes.len()));
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
        self.under_way.insert(
            cookie_of(id),
            UnderWay::Write(self.order.write_begins(), Durability::Volatile),
        );
        self.ended.push_back(Completion {
            cookie: cookie_of(id),
            outcome: Outcome::Failed,
            buffer: None,
        });
    }

    fn end(&mut self, log: &mut Log, completion: Completion) {
        let Some(under_way) = self.under_way.remove(&completion.cookie) else {
            return;
        };
        let is_done = completion.outcome == Outcome::Done;
        let result = match under_way {
            UnderWay::Flush(flushing) if is_done => {
                Ok(Done::Flushed(self.order.flush_succeeded(flushing)))
            }
            UnderWay::Flush(_) => {
                self.order.flush_failed();
                Err(Failure::Medium)
            }
            UnderWay::Write(writing, durability) if is_done => {
                Ok(self.written(writing, durability))
            }
            UnderWay::Write(..) if completion.outcome == Outcome::Revoked => Err(Failure::Gone),
            UnderWay::Write(..) => Err(Failure::Medium),
        };
        // A stray would be one of a command that was not submitted, and those are not in the table.
        log.complete(id_of(completion.cookie), result).ok();
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
                self.queue.kick();
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

fn cookie_of(id: CommandId) -> u64 {
    match id {
        CommandId::Entry { sequence, part } => sequence << 2 | u64::from(part & 1),
        CommandId::Anchor => 2,
        CommandId::Flush => 3,
    }
}

fn id_of(cookie: u64) -> CommandId {
    match cookie & 3 {
        2 => CommandId::Anchor,
        3 => CommandId::Flush,
        part => CommandId::Entry {
            sequence: cookie >> 2,
            part: part as u8,
        },
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
