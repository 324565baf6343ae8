//! What waits in a lane for a bandwidth limit or for room in the card.
//!
//! Each flow has one queue, so its frames keep their order whatever its priority becomes.
//! Queues are served by priority, then in turn. Every frame carries the number of its
//! arrival: when rules change, all that waits is put back in that order and sorted anew,
//! so that a connection which moves from one queue to another stays in order too.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use base::Instant;

use crate::chain::Frame;
use crate::flow::Priority;
use crate::table::{LinkId, QueueSpec};

/// A frame, whose it is, and when it came.
pub(crate) struct Waiting<F> {
    pub number: u64,
    pub link: LinkId,
    pub frame: F,
}

struct Queue<F> {
    priority: Priority,
    frames: VecDeque<Waiting<F>>,
    /// The limits do not let the first frame pass before this.
    not_before: Instant,
}

/// All that waits in one direction of a lane.
pub(crate) struct Shaper<F> {
    is_sent: bool,
    queues: Vec<Queue<F>>,
    /// Frames in all queues.
    waiting: usize,
    next_number: u64,
    /// The queues that are not empty, each once, by priority; the next turn first.
    active: [VecDeque<u16>; 3],
}

impl<F: Frame> Shaper<F> {
    pub fn new(is_sent: bool) -> Self {
        Self {
            is_sent,
            queues: Vec::new(),
            waiting: 0,
            next_number: 0,
            active: Default::default(),
        }
    }

    /// Whether its frames are on their way down.
    pub fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Frames that wait in one queue.
    pub fn waiting_in(&self, queue: u16) -> usize {
        self.queues
            .get(usize::from(queue))
            .map_or(0, |queue| queue.frames.len())
    }

    /// New queues; all that waited comes out in the order of its arrival, to be
    /// [`push`](Self::push)ed again.
    pub fn replace_queues(&mut self, specs: &[QueueSpec]) -> Vec<Waiting<F>> {
        let mut all: Vec<_> = self
            .queues
            .drain(..)
            .flat_map(|queue| queue.frames)
            .collect();
        all.sort_unstable_by_key(|waiting| waiting.number);
        self.queues = specs
            .iter()
            .map(|spec| Queue {
                priority: spec.priority,
                frames: VecDeque::new(),
                not_before: Instant::START,
            })
            .collect();
        self.waiting = 0;
        self.active.iter_mut().for_each(VecDeque::clear);
        all
    }

    /// Whether a frame may go now without waiting: nothing of its flow waits, and the
    /// limits, whose tokens are taken, allow it.
    pub fn may_pass(
        &mut self,
        specs: &[QueueSpec],
        queue: u16,
        now: Instant,
        bytes: usize,
    ) -> bool {
        let (Some(spec), Some(queue)) = (
            specs.get(usize::from(queue)),
            self.queues.get_mut(usize::from(queue)),
        ) else {
            return true;
        };
        if !queue.frames.is_empty() {
            return false;
        }
        match spec.take(self.is_sent, now, bytes) {
            Ok(()) => true,
            Err(later) => {
                queue.not_before = later;
                false
            }
        }
    }

    /// Lets a frame wait at the end of its queue. It comes back if there is no such queue.
    pub fn push(&mut self, index: u16, link: LinkId, frame: F) -> Result<(), F> {
        let Some(queue) = self.queues.get_mut(usize::from(index)) else {
            return Err(frame);
        };
        if queue.frames.is_empty() {
            self.active[queue.priority as usize].push_back(index);
        }
        let number = self.next_number;
        self.next_number += 1;
        queue.frames.push_back(Waiting {
            number,
            link,
            frame,
        });
        self.waiting += 1;
        Ok(())
    }

    /// The next frame that may go now, with its queue: the highest priority first.
    pub fn pop(&mut self, specs: &[QueueSpec], now: Instant) -> Option<(u16, Waiting<F>)> {
        for priority in [Priority::High, Priority::Medium, Priority::Low] {
            let priority = priority as usize;
            for _ in 0..self.active[priority].len() {
                let index = self.active[priority].pop_front()?;
                let popped = self.pop_from(index.into(), specs, now);
                if self.waiting_in(index) > 0 {
                    self.active[priority].push_back(index);
                }
                if let Some(waiting) = popped {
                    return Some((index, waiting));
                }
            }
        }
        None
    }

    fn pop_from(&mut self, index: usize, specs: &[QueueSpec], now: Instant) -> Option<Waiting<F>> {
        let (queue, spec) = (&mut self.queues[index], specs.get(index)?);
        if queue.not_before > now {
            return None;
        }
        let bytes = queue.frames.front()?.frame.bytes().len();
        if let Err(later) = spec.take(self.is_sent, now, bytes) {
            queue.not_before = later;
            return None;
        }
        let waiting = queue.frames.pop_front()?;
        self.waiting -= 1;
        Some(waiting)
    }

    /// Puts a frame back in front of its queue that could not go after all.
    pub fn unpop(&mut self, specs: &[QueueSpec], queue: u16, waiting: Waiting<F>) {
        let index = usize::from(queue);
        if let Some(spec) = specs.get(index) {
            spec.give_back(self.is_sent, waiting.frame.bytes().len());
        }
        if let Some(at) = self.queues.get_mut(index) {
            if at.frames.is_empty() {
                self.active[at.priority as usize].push_front(queue);
            }
            at.frames.push_front(waiting);
            self.waiting += 1;
        }
    }

    /// When a limit lets the next frame pass; [`Instant::NEVER`] if none waits for one.
    pub fn next_deadline(&self) -> Instant {
        let active = self.active.iter().flatten();
        let queues = active.filter_map(|index| self.queues.get(usize::from(*index)));
        queues
            .map(|queue| queue.not_before)
            .min()
            .unwrap_or(Instant::NEVER)
    }
}
