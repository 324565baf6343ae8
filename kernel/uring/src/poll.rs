//! Requests that wait for a file's readiness (IORING_OP_POLL_ADD, IORING_OP_POLL_REMOVE).

use core::sync::atomic::Ordering;

use sync::poll::Events;
use task::Thread;
use uring::{CqeFlags, Operation};

use crate::abi::Failure;
use crate::request::{Ending, Request};

impl Request {
    /// The events that a poll waits for, as they were last changed.
    fn interest(&self) -> Events {
        let changed = u32::try_from(self.events.load(Ordering::SeqCst)).ok();
        let asked = match self.operation {
            Operation::Poll { events, .. } => events,
            _ => 0,
        };
        Events::from_bits_truncate(changed.unwrap_or(asked)) | Events::ALWAYS
    }

    /// Looks at the file; one that has several shots observes it before its first look, so that it
    /// looks once for each change.
    pub fn poll(&self, thread: &Thread, is_multishot: bool) {
        let open = match self.resolve(thread) {
            Ok(open) => open,
            Err(error) => return self.fail(error),
        };
        let interest = self.interest();
        if is_multishot {
            self.observe(&open, interest);
        }
        loop {
            let ready = open.file.poll_for(interest) & interest;
            let result = ready.bits() as i32;
            match ready.is_empty() {
                false if is_multishot && self.post_more(result, CqeFlags::empty()) => return,
                false => return self.finish(Ok(result), CqeFlags::empty()),
                true if !self.observe(&open, interest) => return,
                true => {}
            }
        }
    }

    /// Ends another poll, or changes it.
    pub fn update_poll(&self) {
        let Operation::PollUpdate {
            target,
            events,
            user_data,
            ..
        } = self.operation
        else {
            return;
        };
        let is_meant =
            |one: &Request| matches!(one.operation, Operation::Poll { .. }) && one.name() == target;
        let Some(poll) = self.ring.find(is_meant) else {
            return self.fail(sync::Error::NotFound);
        };
        if events.is_none() && user_data.is_none() {
            poll.end(Ending::Cancelled);
        } else {
            if let Some(name) = user_data {
                poll.user_data.store(name, Ordering::SeqCst);
            }
            if let Some(events) = events {
                poll.events.store(events.into(), Ordering::SeqCst);
                poll.stop_observing();
            }
            poll.wake();
        }
        self.finish(Ok::<_, Failure>(0), CqeFlags::empty());
    }
}
