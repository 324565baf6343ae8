//! Requests on the way to one queue of a device.

mod recovery;
mod under_way;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use base::{Duration, Instant};
use hal::Span;

use crate::channel::{Channel, Command, SubmitError, Tag, Verdict};
use crate::counters::{Counters, Kind};
use crate::limits::Limits;
use crate::order::Order;
use crate::request::{Completion, Failure, Operation, Request, SectorRange};
use crate::split;
use under_way::{Phase, UnderWay};

/// Requests on their way through one queue at most, those that wait for a place at the device
/// among them.
pub const REQUESTS_MAX: usize = 256;
/// A device that does not end a command for so long is started anew.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a request is sent again after that.
pub const RETRIES_MAX: u8 = 2;

/// What became of a request that was handed in.
#[derive(Debug)]
#[must_use]
pub enum Admitted<K> {
    /// It is on its way.
    UnderWay,
    /// It is over already.
    Ended(Completion<K>),
    /// Too many are on their way: to be handed in again when one has ended.
    Full(Request<K>),
}

/// How far sending got.
enum Sent {
    /// Nothing of it waits.
    All,
    /// The device takes no more.
    Full,
}

/// Requests on their way to one queue of a device; `K` is what comes with each.
pub struct Queue<K, C> {
    channel: C,
    limits: Limits,
    order: Arc<Order>,
    requests: Vec<Option<UnderWay<K>>>,
    free: Vec<u16>,
    /// The request of each command that the device has.
    owners: Box<[Option<u16>]>,
    /// Requests of which the device has not got all, first come first served.
    waiting: VecDeque<u16>,
    /// The memory of the command that is just being made.
    pieces: Vec<Span>,
    is_broken: bool,
    counters: Counters,
}

impl<K, C: Channel> Queue<K, C> {
    /// Of a device with these limits, which were checked, whose completed writes `order` counts.
    pub fn new(channel: C, limits: Limits, order: Arc<Order>) -> Self {
        let owners = vec![None; usize::from(channel.depth())].into_boxed_slice();
        Self {
            channel,
            limits,
            order,
            requests: (0..REQUESTS_MAX).map(|_| None).collect(),
            free: (0..REQUESTS_MAX as u16).rev().collect(),
            owners,
            waiting: VecDeque::with_capacity(REQUESTS_MAX),
            pieces: Vec::with_capacity(limits.segments_max.into()),
            is_broken: false,
            counters: Counters::default(),
        }
    }

    /// The device's shape has changed.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// What it has done by now.
    pub fn counters(&mut self, now: Instant) -> Counters {
        self.counters.pass(now);
        self.counters
    }

    /// Whether there is room for one more request.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes a request and sends as much of it as the device takes.
    pub fn submit(&mut self, request: Request<K>, now: Instant) -> Admitted<K> {
        if let Err(failure) = self.check(&request) {
            return ended(request, Err(failure));
        }
        if let Some(done) = self.nothing_to_do(&request) {
            return ended(request, Ok(done));
        }
        let Some(index) = self.free.pop() else {
            return Admitted::Full(request);
        };
        self.counters.begin(now);
        let way = UnderWay::new(request, now);
        let ended = self.go_on(index, way, now);
        self.channel.publish();
        ended.map_or(Admitted::UnderWay, Admitted::Ended)
    }

    /// Hands what has ended to `sink`, sends what waits, and asks for the next interrupt.
    pub fn complete(&mut self, now: Instant, sink: &mut dyn FnMut(Completion<K>)) {
        while !self.is_broken {
            loop {
                match self.channel.complete() {
                    Ok(Some((tag, verdict))) => {
                        self.finish_command(tag, verdict, now).map(&mut *sink);
                    }
                    Ok(None) => break,
                    Err(_) => {
                        self.is_broken = true;
                        return;
                    }
                }
            }
            self.send_waiting(now, sink);
            if !self.channel.arm() {
                return;
            }
        }
    }

    fn check(&self, request: &Request<K>) -> Result<(), Failure> {
        let limits = &self.limits;
        if request.operation.changes() && limits.is_read_only {
            return Err(Failure::ReadOnly);
        }
        let bulk = match request.operation {
            Operation::Discard => limits.discard,
            Operation::WriteZeroes { .. } => limits.zeroes,
            Operation::Flush => return Ok(()),
            Operation::Read | Operation::Write(_) => {
                let bytes: u64 = request.spans.iter().map(|span| u64::from(span.len())).sum();
                return match bytes == request.sectors.bytes() {
                    true => limits.check_range(request.sectors),
                    false => Err(Failure::Misaligned),
                };
            }
        };
        bulk.ok_or(Failure::Unsupported)?;
        limits.check_range(request.sectors)
    }

    /// Sends more of a request, and sees whether it is over.
    fn go_on(&mut self, index: u16, mut way: UnderWay<K>, now: Instant) -> Option<Completion<K>> {
        loop {
            if let Sent::Full = self.send(index, &mut way) {
                way.is_waiting = true;
                self.waiting.push_back(index);
                break;
            }
            if way.commands != 0 || self.is_broken {
                break;
            }
            match way.next_phase(&self.limits, &self.order) {
                Some(phase) => way.phase = phase,
                None => return Some(self.end(index, way, now)),
            }
        }
        self.put(index, way);
        None
    }

    /// Sends commands until all are sent or the device takes no more.
    fn send(&mut self, index: u16, way: &mut UnderWay<K>) -> Sent {
        while way.failure.is_none() && !self.is_broken {
            let before = way.cursor;
            let command = match way.phase {
                Phase::Transfer => self.cut(way),
                Phase::Flush => Ok(Some((Operation::Flush, SectorRange::default()))),
                Phase::Flushing(_) => Ok(None),
            };
            let told = match command {
                Err(failure) => {
                    way.failure = Some(failure);
                    return Sent::All;
                }
                Ok(None) => return Sent::All,
                Ok(Some((operation, sectors))) => {
                    if let Phase::Flush = way.phase {
                        way.phase = Phase::Flushing(self.order.flush_begins());
                    }
                    self.tell(index, operation, sectors)
                }
            };
            match told {
                Ok(()) => way.commands += 1,
                Err(error) => {
                    way.unsend(before);
                    match error {
                        SubmitError::Full => return Sent::Full,
                        SubmitError::TooLarge => way.failure = Some(Failure::Misaligned),
                        SubmitError::Broken => self.is_broken = true,
                    }
                }
            }
        }
        Sent::All
    }

    /// The next command of a transfer, whose memory then stands in `pieces`.
    fn cut(&mut self, way: &mut UnderWay<K>) -> Result<Option<(Operation, SectorRange)>, Failure> {
        let Request {
            operation,
            sectors,
            spans,
            ..
        } = &way.request;
        let pieces = &mut self.pieces;
        let next = split::next(
            &self.limits,
            *operation,
            *sectors,
            spans,
            &mut way.cursor,
            pieces,
        )?;
        Ok(next.map(|sectors| (way.told_operation(&self.limits), sectors)))
    }

    fn tell(
        &mut self,
        index: u16,
        operation: Operation,
        sectors: SectorRange,
    ) -> Result<(), SubmitError> {
        let spans = match operation.has_data() {
            true => &self.pieces[..],
            false => &[],
        };
        let command = Command {
            operation,
            sectors,
            spans,
        };
        let tag = self.channel.submit(&command)?;
        let owner = self.owners.get_mut(usize::from(tag.0));
        *owner.ok_or(SubmitError::Broken)? = Some(index);
        self.counters.commands += 1;
        Ok(())
    }

    fn finish_command(
        &mut self,
        tag: Tag,
        verdict: Verdict,
        now: Instant,
    ) -> Option<Completion<K>> {
        let index = self.owners.get_mut(usize::from(tag.0))?.take()?;
        let mut way = self.take(index)?;
        way.commands -= 1;
        way.note(verdict);
        if way.commands != 0 || way.is_waiting {
            self.put(index, way);
            return None;
        }
        let ended = self.go_on(index, way, now);
        self.channel.publish();
        ended
    }

    fn send_waiting(&mut self, now: Instant, sink: &mut dyn FnMut(Completion<K>)) {
        // Each goes at most once: one that still does not fit stands at the end again, alone or
        // behind others that do not fit either.
        while let Some(index) = self.waiting.pop_front() {
            let Some(mut way) = self.take(index) else {
                continue;
            };
            way.is_waiting = false;
            match self.go_on(index, way, now) {
                Some(completion) => sink(completion),
                None if self.waiting.back() == Some(&index) => {
                    self.waiting.rotate_right(1);
                    break;
                }
                None => {}
            }
        }
        self.channel.publish();
    }

    /// The request is over.
    fn end(&mut self, index: u16, way: UnderWay<K>, now: Instant) -> Completion<K> {
        self.free.push(index);
        let kind = Kind::of(way.request.operation);
        self.counters
            .end(kind, way.request.sectors.count, way.begun, now);
        let completion = way.into_completion(&self.order);
        match completion.result {
            Err(Failure::TimedOut | Failure::Gone) => self.counters.timed_out += 1,
            Err(_) => self.counters.failed += 1,
            Ok(_) => {}
        }
        completion
    }

    fn take(&mut self, index: u16) -> Option<UnderWay<K>> {
        self.requests.get_mut(usize::from(index))?.take()
    }

    fn put(&mut self, index: u16, way: UnderWay<K>) {
        if let Some(place) = self.requests.get_mut(usize::from(index)) {
            *place = Some(way);
        }
    }
}

fn ended<K>(request: Request<K>, result: Result<crate::Done, Failure>) -> Admitted<K> {
    Admitted::Ended(Completion {
        result,
        keep: request.keep,
    })
}
