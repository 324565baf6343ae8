//! A device that does not answer: stopped, started anew, or given up.
//!
//! Whose command it is that hangs cannot be known, so all that were under way are sent again, and
//! for each that counts as a retry. The order is: [`Control::stop`](crate::Control::stop), then
//! [`Queue::stop`] for all queues, then a start and [`Queue::restart`], or
//! [`Queue::fail_all`]. Only then is memory handed back.

use super::*;
use crate::limits::Cache;
use crate::request::{Done, Durability};

impl<K: Keep, C: Channel> Queue<K, C> {
    /// Whether the device has to be stopped: it broke the rules, or has not ended a
    /// request in time.
    pub fn is_stuck(&self, now: Instant) -> bool {
        let is_late = |way: &UnderWay<K>| way.deadline <= now;
        self.wire.is_broken
            || self.requests.iter().flatten().any(is_late)
            || self.direct.is_late(now)
    }

    /// Whether the device broke the rules: nothing ends any more until it was started anew.
    pub fn is_broken(&self) -> bool {
        self.wire.is_broken
    }

    /// Whether no request is on its way.
    pub fn is_idle(&self) -> bool {
        self.room() == REQUESTS_MAX
    }

    /// What came with the requests that are on their way, but for [pages](Queue::submit_page).
    pub fn keeps(&self) -> impl Iterator<Item = &K> {
        let others = self.requests.iter().flatten();
        self.direct
            .keeps()
            .chain(others.map(|way| &way.request.keep))
    }

    /// The device has been stopped, and touches no memory any more.
    pub fn stop(&mut self) {
        self.wire.stop();
        self.settle_direct();
        self.waiting.clear();
        self.requests
            .iter_mut()
            .flatten()
            .for_each(UnderWay::rewind);
    }

    /// The device was started with a new channel: sends all again that was not tried too often.
    pub fn restart(&mut self, channel: C, now: Instant, sink: &mut dyn FnMut(Completion<K>)) {
        self.direct = Direct::new(channel.depth());
        self.wire.restart(channel);
        for index in 0..REQUESTS_MAX as u16 {
            let way = self.requests.get_mut(usize::from(index));
            let Some(way) = way.and_then(Option::as_mut) else {
                continue;
            };
            way.retries += 1;
            if way.retries > RETRIES_MAX {
                way.failure = Some(Failure::TimedOut);
            } else {
                way.deadline = now + TIMEOUT;
                self.counters.retried += 1;
            }
            if let Some(completion) = self.go_on(index, now) {
                sink(completion);
            }
        }
        self.wire.publish();
    }

    /// The device was stopped and is not started again.
    pub fn fail_all(&mut self, now: Instant, sink: &mut dyn FnMut(Completion<K>)) {
        for index in 0..REQUESTS_MAX as u16 {
            let way = self.requests.get_mut(usize::from(index));
            if let Some(way) = way.and_then(Option::as_mut) {
                way.failure = Some(Failure::Gone);
                self.end(index, now).map(&mut *sink);
            }
        }
    }

    /// What needs no device: nothing was asked for, or a flush of a disk without a cache.
    pub(super) fn nothing_to_do(&self, request: &Request<K>) -> Option<Done> {
        let is_empty = request.sectors.count == 0;
        match (request.operation, self.wire.limits.cache) {
            (Operation::Flush, cache)
                if cache == Cache::WriteThrough
                    || planted::is("a flush is taken for done where there is a cache") =>
            {
                let flush = self.wire.order.flush_begins();
                Some(Done::Flushed(self.wire.order.flush_succeeded(flush)))
            }
            (Operation::Read, _) if is_empty => Some(Done::Read),
            (Operation::Discard, _) if is_empty => Some(Done::Discarded),
            (Operation::Write(Durability::Forced), _) if is_empty => {
                Some(Done::Durable(self.wire.order.forced()))
            }
            (Operation::Write(_) | Operation::WriteZeroes { .. }, _) if is_empty => {
                Some(Done::Written(self.wire.order.completed()))
            }
            _ => None,
        }
    }
}
