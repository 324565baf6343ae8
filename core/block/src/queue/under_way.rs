//! One request on its way.

use base::Instant;

use super::TIMEOUT;
use crate::channel::Verdict;
use crate::limits::{Cache, Limits};
use crate::order::{Flushing, Order, Writing, Written};
use crate::request::{Completion, Done, Durability, Failure, Keep, Operation, Request};
use crate::split::Cursor;

/// What is being done for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its commands are sent.
    Transfer,
    /// A flush is to be sent.
    Flush,
    /// The device has it.
    Flushing(Flushing),
}

#[derive(Debug)]
pub(super) struct UnderWay<K> {
    pub request: Request<K>,
    pub phase: Phase,
    pub cursor: Cursor,
    /// Commands that the device has.
    pub commands: u16,
    pub failure: Option<Failure>,
    /// Stands in the list of those that the device had no room for.
    pub is_waiting: bool,
    pub begun: Instant,
    pub deadline: Instant,
    pub retries: u8,
    /// Since its first command, if it writes.
    writing: Option<Writing>,
    /// The write that a flush is to make durable.
    written: Option<Written>,
}

impl<K: Keep> UnderWay<K> {
    pub(super) fn new(request: Request<K>, now: Instant) -> Self {
        Self {
            phase: first_phase(request.operation),
            request,
            cursor: Cursor::default(),
            commands: 0,
            failure: None,
            is_waiting: false,
            begun: now,
            deadline: now + TIMEOUT,
            retries: 0,
            writing: None,
            written: None,
        }
    }

    /// One whose only command the device had when it was stopped.
    pub(super) fn sent(request: Request<K>, begun: Instant) -> Self {
        let cursor = Cursor::at_end(request.sectors);
        Self {
            cursor,
            ..Self::new(request, begun)
        }
    }

    /// What the device is told: to force a write only where it can.
    pub(super) fn told_operation(&self, limits: &Limits) -> Operation {
        match (self.request.operation, limits.cache) {
            (Operation::Write(Durability::Forced), Cache::WriteBack { forces: true })
                if !planted::is("the flag that forces a write is dropped") =>
            {
                self.request.operation
            }
            (Operation::Write(_), _) => Operation::Write(Durability::Volatile),
            (operation, _) => operation,
        }
    }

    /// A command was not taken.
    pub(super) fn unsend(&mut self, before: Cursor) {
        self.cursor = before;
        if let Phase::Flushing(_) = self.phase {
            self.phase = Phase::Flush;
        }
    }

    /// A command ended.
    pub(super) fn note(&mut self, verdict: Verdict) {
        self.failure = self.failure.or(verdict.failure());
    }

    /// What is to be done when all that was sent is complete; `None` if it is over.
    pub(super) fn next_phase(&mut self, limits: &Limits, order: &Order) -> Option<Phase> {
        let is_forced = self.request.operation == Operation::Write(Durability::Forced);
        let needs_flush = is_forced
            && limits.cache == Cache::WriteBack { forces: false }
            && !planted::is("a forced write ends without its flush");
        if self.failure.is_some() || self.phase != Phase::Transfer || !needs_flush {
            return None;
        }
        self.written = Some(self.completed(order));
        Some(Phase::Flush)
    }

    /// The device was stopped: all begins anew. Whatever was written of it is written again.
    pub(super) fn rewind(&mut self) {
        self.phase = first_phase(self.request.operation);
        if !planted::is("what was sent before a reset is not sent again") {
            self.cursor = Cursor::default();
        }
        (self.commands, self.is_waiting) = (0, false);
        (self.writing, self.written) = (None, None);
    }

    pub(super) fn into_completion(self, order: &Order) -> Completion<K> {
        let result = match self.failure {
            Some(failure) => {
                if self.phase != Phase::Transfer {
                    order.flush_failed();
                }
                Err(failure)
            }
            None => self.done(order),
        };
        Completion {
            result,
            operation: self.request.operation,
            sectors: self.request.sectors,
            begun: self.begun,
            keep: self.request.keep,
        }
    }

    fn done(&self, order: &Order) -> Result<Done, Failure> {
        Ok(match (self.request.operation, self.phase) {
            (Operation::Read, _) => Done::Read,
            (Operation::Discard, _) => Done::Discarded,
            (Operation::Write(Durability::Forced), Phase::Flushing(flush)) => {
                let flushed = order.flush_succeeded(flush);
                let covers = |written: &Written| flushed.covers(written);
                match self.written.as_ref().is_some_and(covers) {
                    true => Done::Durable(order.forced()),
                    // A flush failed meanwhile, and may have dropped it.
                    false => return Err(Failure::Medium),
                }
            }
            (_, Phase::Flushing(flush)) => Done::Flushed(order.flush_succeeded(flush)),
            (Operation::Write(Durability::Forced), _) => Done::Durable(order.forced()),
            (_, _) => Done::Written(self.completed(order)),
        })
    }

    /// Before its first command is sent.
    pub(super) fn begin(&mut self, order: &Order) {
        self.writing.get_or_insert_with(|| order.write_begins());
    }

    fn completed(&self, order: &Order) -> Written {
        match self.writing {
            Some(writing) => order.write_completed(writing),
            None => order.completed(),
        }
    }
}

fn first_phase(operation: Operation) -> Phase {
    match operation {
        Operation::Flush => Phase::Flush,
        _ => Phase::Transfer,
    }
}
