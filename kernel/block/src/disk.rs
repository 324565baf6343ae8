//! A disk: its queues, and how a thread's request goes through one of them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Duration, Instant};
use block::{Admitted, ChannelBox, Completion, Control, Counters, Done, Failure, Limits};
use block::{Operation, Order, Parts, Queue, Request, SectorRange, TIMEOUT};
use hal::Span;
use mach::mem::DmaMemory;
use mach::sync::Spin;
use sync::{Error, Mutex, Result, Wait, WaitQueue};

use crate::nodes::{Family, Identity};
use crate::outcome::{Ended, Keep, Memory, Outcome};
use crate::partition::Partition;

/// A thread looks at its request so much later than it is due.
const GRACE: Duration = Duration::from_millis(100);

/// One queue of a device.
pub(crate) struct Lane {
    pub queue: Spin<Queue<Keep, ChannelBox>>,
    /// Threads that wait for room in it.
    room: WaitQueue,
}

/// A disk.
pub struct Disk {
    number: usize,
    identity: Identity,
    pub(crate) lanes: Box<[Lane]>,
    pub(crate) control: Mutex<Box<dyn Control + Send>>,
    pub(crate) memory: DmaMemory,
    limits: Spin<Limits>,
    /// By their numbers.
    pub(crate) partitions: Spin<Vec<Arc<Partition>>>,
    /// Held by who writes through pages of the kernel's.
    pub(crate) buffered: Mutex<()>,
    /// Flushes that failed; an open file tells of those that came since it last told.
    flush_failures: AtomicU64,
    /// A queue is broken, and its threads are to see to it.
    pub(crate) is_stuck: AtomicBool,
    /// The device could not be started anew.
    pub(crate) is_gone: AtomicBool,
}

impl Disk {
    pub(crate) fn new(
        number: usize,
        identity: Identity,
        parts: Parts,
        memory: DmaMemory,
    ) -> Arc<Self> {
        let (limits, order) = (parts.control.limits(), Arc::new(Order::new()));
        let lane = |channel| Lane {
            queue: Spin::new(Queue::new(channel, limits, order.clone())),
            room: WaitQueue::new(),
        };
        let disk = Arc::new(Self {
            number,
            identity,
            lanes: parts.channels.into_iter().map(lane).collect(),
            control: Mutex::new(parts.control),
            memory,
            limits: Spin::new(limits),
            partitions: Spin::new(Vec::new()),
            buffered: Mutex::new(()),
            flush_failures: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
        });
        // Asks for the first interrupt.
        disk.complete();
        disk
    }

    /// `vda` is the first.
    pub fn name(&self) -> &'static str {
        self.identity.name
    }

    /// What drives it.
    pub fn family(&self) -> Family {
        self.identity.family
    }

    /// The major number that it has with all of its family.
    pub fn major(&self) -> u32 {
        self.identity.family.major()
    }

    /// Major and minor number of a partition; 0 is the disk itself.
    pub fn device(&self, partition: u8) -> (u32, u32) {
        self.identity.number(partition)
    }

    /// The partition with these numbers, 0 for the disk itself.
    pub(crate) fn partition_of(&self, device: (u32, u32)) -> Option<u8> {
        self.identity.partition_of(device)
    }

    /// Its place among the disks.
    pub fn number(&self) -> usize {
        self.number
    }

    /// How many queues it has.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Its shape, as last heard.
    pub fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    /// Its partitions, by their numbers.
    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        self.partitions.lock().clone()
    }

    /// What it has done.
    pub fn counters(&self) -> Counters {
        let (mut sum, now) = (Counters::default(), mach::time::now());
        for lane in &self.lanes {
            sum.add(&lane.queue.lock().counters(now));
        }
        sum
    }

    /// Asks the device for its size, which may have changed.
    pub(crate) fn refresh(&self) -> Limits {
        let mut control = self.control.lock();
        let limits = control.refresh();
        for lane in &self.lanes {
            lane.queue.lock().set_limits(limits);
        }
        *self.limits.lock() = limits;
        limits
    }

    /// Takes what has ended in all queues.
    pub(crate) fn complete(&self) {
        let now = mach::time::now();
        for lane in &self.lanes {
            let mut queue = lane.queue.lock();
            queue.complete(now, &mut hand_out);
            if queue.is_broken() && !self.is_stuck.swap(true, Ordering::AcqRel) {
                queue.keeps().for_each(|keep| keep.outcome.wake());
            }
            drop(queue);
            lane.room.wake_all();
        }
    }

    /// Does what needs no memory.
    pub(crate) fn command(&self, operation: Operation, sectors: SectorRange) -> Result<Done> {
        let (result, _) = self.run(operation, sectors, Vec::new(), Memory::Nothing);
        result.map_err(error_of)
    }

    /// Empties the device's cache.
    pub(crate) fn flush(&self) -> Result<()> {
        let flushed = self.command(Operation::Flush, SectorRange::default());
        if flushed.is_err() {
            self.flush_failures.fetch_add(1, Ordering::AcqRel);
        }
        flushed.map(|_| ())
    }

    /// Flushes that have failed so far.
    pub(crate) fn flush_failures(&self) -> u64 {
        self.flush_failures.load(Ordering::Acquire)
    }

    /// Sends a request and sleeps until it is over, whatever signals come.
    pub(crate) fn run(
        &self,
        operation: Operation,
        sectors: SectorRange,
        spans: Vec<Span>,
        memory: Memory,
    ) -> Ended {
        let outcome = Arc::new(Outcome::default());
        let mut request = Request {
            operation,
            sectors,
            spans,
            keep: Keep {
                outcome: outcome.clone(),
                memory,
            },
        };
        let lane = self.lane();
        loop {
            if self.is_gone.load(Ordering::Acquire) {
                return (Err(Failure::Gone), request.keep.memory);
            }
            let admitted = lane.queue.lock().submit(request, mach::time::now());
            match admitted {
                Admitted::UnderWay => return self.wait(&outcome),
                Admitted::Ended(Completion { result, keep }) => return (result, keep.memory),
                Admitted::Full(back) => request = back,
            }
            let has_room = || lane.queue.lock().has_room().then_some(());
            let soon = mach::time::now() + GRACE;
            // Without room by then the next look comes anyway.
            let _ = lane.room.wait(Wait::UNINTERRUPTIBLE.until(soon), has_room);
        }
    }

    /// The queue of this CPU, or the one that it shares.
    fn lane(&self) -> &Lane {
        // tidy: there is a queue at least, and the index is below their number.
        &self.lanes[mach::cpu::id().0 as usize % self.lanes.len()]
    }

    fn wait(&self, outcome: &Outcome) -> Ended {
        loop {
            let due = mach::time::now() + TIMEOUT + GRACE;
            let is_stuck = || self.is_stuck.load(Ordering::Acquire);
            let look = || match outcome.take() {
                Some(ended) => Some(Some(ended)),
                None => is_stuck().then_some(None),
            };
            let how = Wait::UNINTERRUPTIBLE.until(due);
            match outcome.waiter().wait(how, look) {
                Ok(Some(ended)) => return ended,
                Ok(None) | Err(_) => self.recover(),
            }
        }
    }

    /// The same at boot, where no thread can sleep yet: looks at the device until `until`; `None` if it
    /// has not ended by then.
    pub(crate) fn run_at_boot(
        &self,
        operation: Operation,
        sectors: SectorRange,
        spans: Vec<Span>,
        memory: Memory,
        until: Instant,
    ) -> Option<Ended> {
        let outcome = Arc::new(Outcome::default());
        let keep = Keep {
            outcome: outcome.clone(),
            memory,
        };
        let request = Request {
            operation,
            sectors,
            spans,
            keep,
        };
        let admitted = self.lane().queue.lock().submit(request, mach::time::now());
        if let Admitted::Ended(Completion { result, keep }) = admitted {
            return Some((result, keep.memory));
        }
        while mach::time::now() < until {
            self.complete();
            if let Some(ended) = outcome.take() {
                return Some(ended);
            }
            core::hint::spin_loop();
        }
        None
    }
}

/// Gives an end to the thread that waits for it.
pub(crate) fn hand_out(completion: Completion<Keep>) {
    let Completion { result, keep } = completion;
    keep.outcome.fill((result, keep.memory));
}

/// What a program is told.
pub(crate) fn error_of(failure: Failure) -> Error {
    match failure {
        Failure::Medium | Failure::TimedOut | Failure::Gone => Error::Io,
        Failure::Unsupported => Error::Unsupported,
        Failure::OutOfRange => Error::NoSpace,
        Failure::Misaligned => Error::Invalid,
        Failure::ReadOnly => Error::NotPermitted,
    }
}
