//! Requests on the way to one queue of a device.

mod direct;
mod pages;
mod recovery;
mod under_way;
mod wire;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use base::{Duration, Instant};

use crate::channel::{Channel, Tag, Verdict};
use crate::counters::{Counters, Kind};
use crate::limits::Limits;
use crate::order::Order;
use crate::request::{Completion, Failure, Keep, Operation, Request, Sink};
use crate::split;
use direct::Direct;
use under_way::UnderWay;
use wire::{Advance, Wire};

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
    /// It is on its way; the device sees it with the next [`Queue::publish`].
    UnderWay,
    /// It is over already.
    Ended(Completion<K>),
    /// Too many are on their way: to be handed in again when one has ended.
    Full(Request<K>),
}

/// Requests on their way to one queue of a device; `K` is what comes with each.
pub struct Queue<K: Keep, C> {
    wire: Wire<C>,
    /// Transfers that the device has whole.
    direct: Direct<K>,
    requests: Vec<Option<UnderWay<K>>>,
    free: Vec<u16>,
    /// Requests of which the device has not got all, first come first served.
    waiting: VecDeque<u16>,
    counters: Counters,
}

impl<K: Keep, C: Channel> Queue<K, C> {
    /// Of a device with these limits, which were checked, whose completed writes `order` counts.
    pub fn new(channel: C, limits: Limits, order: Arc<Order>) -> Self {
        Self {
            direct: Direct::new(channel.depth()),
            wire: Wire::new(channel, limits, order),
            requests: (0..REQUESTS_MAX).map(|_| None).collect(),
            free: (0..REQUESTS_MAX as u16).rev().collect(),
            waiting: VecDeque::with_capacity(REQUESTS_MAX),
            counters: Counters::default(),
        }
    }

    /// The device's shape has changed.
    pub fn set_limits(&mut self, limits: Limits) {
        self.wire.takes_pages = split::takes_pages(&limits);
        self.wire.inside_block = limits.inside_block();
        self.wire.limits = limits;
    }

    /// What it has done by now.
    pub fn counters(&mut self, now: Instant) -> Counters {
        self.counters.pass(now);
        let mut counters = self.counters;
        counters.commands = self.wire.commands;
        counters
    }

    /// Whether there is room for one more request.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.room() != 0
    }

    /// How many more requests there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        // Each of them may have to become one of the others (Place).
        self.free.len().saturating_sub(self.direct.count())
    }

    /// Takes a request and hands the device as much of it as that takes.
    #[inline]
    pub fn submit(&mut self, request: Request<K>, now: Instant) -> Admitted<K> {
        match self.send_direct(request, now) {
            Ok(()) => Admitted::UnderWay,
            Err(request) => self.admit(request, now),
        }
    }

    fn admit(&mut self, request: Request<K>, now: Instant) -> Admitted<K> {
        if let Err(failure) = self.check(&request) {
            return ended(request, Err(failure), now);
        }
        if let Some(done) = self.nothing_to_do(&request) {
            return ended(request, Ok(done), now);
        }
        if !self.has_room() {
            return Admitted::Full(request);
        }
        let Some(index) = self.free.pop() else {
            return Admitted::Full(request);
        };
        self.counters.begin(now);
        if let Some(place) = self.requests.get_mut(usize::from(index)) {
            *place = Some(UnderWay::new(request, now));
        }
        let ended = self.go_on(index, now);
        ended.map_or(Admitted::UnderWay, Admitted::Ended)
    }

    /// Shows the device what was handed in: several requests cost one doorbell.
    #[inline]
    pub fn publish(&mut self) {
        self.wire.publish();
    }

    /// Hands what has ended to `sink`, sends what waits, and asks for the next interrupt.
    #[inline]
    pub fn complete(&mut self, now: Instant, sink: &mut impl Sink<K>) {
        while !self.wire.is_broken {
            loop {
                match self.wire.channel.complete() {
                    Ok(Some((tag, verdict))) => match self.direct.pages.take(tag) {
                        Some(page) => sink.page_ended(self.end_page(page, verdict, now)),
                        None => self.finish_other(tag, verdict, now, sink),
                    },
                    Ok(None) => break,
                    Err(_) => {
                        self.wire.is_broken = true;
                        return;
                    }
                }
            }
            if !self.waiting.is_empty() {
                self.send_waiting(now, &mut |completion| sink.ended(completion));
            }
            self.wire.publish();
            if !self.wire.channel.arm() {
                return;
            }
        }
    }

    /// A command has ended that is not a [page's](Self::submit_page).
    #[inline]
    fn finish_other(&mut self, tag: Tag, verdict: Verdict, now: Instant, sink: &mut impl Sink<K>) {
        match self.direct.take(tag) {
            Some(transfer) => sink.ended(self.end_direct(transfer, verdict, now)),
            None => self.finish_command(tag, verdict, now, &mut |completion| {
                sink.ended(completion);
            }),
        }
    }

    fn check(&self, request: &Request<K>) -> Result<(), Failure> {
        let limits = &self.wire.limits;
        if request.operation.changes() && limits.is_read_only {
            return Err(Failure::ReadOnly);
        }
        let bulk = match request.operation {
            Operation::Discard => limits.discard,
            Operation::WriteZeroes { .. } => limits.zeroes,
            Operation::Flush => return Ok(()),
            Operation::Read | Operation::Write(_) => {
                let spans = request.keep.spans().iter();
                let bytes: u64 = spans.map(|span| u64::from(span.len())).sum();
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
    fn go_on(&mut self, index: u16, now: Instant) -> Option<Completion<K>> {
        let way = self.requests.get_mut(usize::from(index))?.as_mut()?;
        match self.wire.advance(index, way) {
            Advance::UnderWay => None,
            Advance::NoRoom => {
                self.waiting.push_back(index);
                None
            }
            Advance::Over => self.end(index, now),
        }
    }

    /// A command of a request has ended that is not [direct](Direct), and the request perhaps with it.
    #[inline(never)]
    fn finish_command(
        &mut self,
        tag: Tag,
        verdict: Verdict,
        now: Instant,
        sink: &mut dyn FnMut(Completion<K>),
    ) {
        let Some(index) = self.wire.take_owner(tag) else {
            return;
        };
        let way = self.requests.get_mut(usize::from(index));
        let Some(way) = way.and_then(Option::as_mut) else {
            return;
        };
        way.commands -= 1;
        way.note(verdict);
        if way.commands == 0 && !way.is_waiting {
            self.go_on(index, now).map(sink);
        }
    }

    fn send_waiting(&mut self, now: Instant, sink: &mut dyn FnMut(Completion<K>)) {
        // Each goes at most once: one that still does not fit stands at the end again, alone or
        // behind others that do not fit either.
        while let Some(index) = self.waiting.pop_front() {
            let way = self.requests.get_mut(usize::from(index));
            let Some(way) = way.and_then(Option::as_mut) else {
                continue;
            };
            way.is_waiting = false;
            match self.go_on(index, now) {
                Some(completion) => sink(completion),
                None if self.waiting.back() == Some(&index) => {
                    self.waiting.rotate_right(1);
                    break;
                }
                None => {}
            }
        }
    }

    /// The request is over.
    fn end(&mut self, index: u16, now: Instant) -> Option<Completion<K>> {
        let way = self.requests.get_mut(usize::from(index))?.take()?;
        self.free.push(index);
        let kind = Kind::of(way.request.operation);
        self.counters
            .end(kind, way.request.sectors.count, way.begun, now);
        let completion = way.into_completion(&self.wire.order);
        match completion.result {
            Err(Failure::TimedOut | Failure::Gone) => self.counters.timed_out += 1,
            Err(_) => self.counters.failed += 1,
            Ok(_) => {}
        }
        Some(completion)
    }
}

fn ended<K>(
    request: Request<K>,
    result: Result<crate::Done, Failure>,
    now: Instant,
) -> Admitted<K> {
    Admitted::Ended(Completion {
        result,
        operation: request.operation,
        sectors: request.sectors,
        begun: now,
        keep: request.keep,
    })
}
