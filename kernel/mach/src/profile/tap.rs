//! Samples for the kernel itself, which gives them to programs (perf_event_open(2)).
//!
//! The host reads raw stacks from outside and takes its time over them. A program wants return
//! addresses, now. So the NMI handler follows the frame pointers of the kernel's stack and then
//! of the program's, and puts the addresses into a queue of its CPU. The kernel empties the queue
//! when it can take locks: the handler has told it by the listener that there is something.
//!
//! Invariant **One each**: a queue is filled by its CPU's NMI handler, which is not interrupted by
//! another, and emptied by the same CPU's one flow of control. So a slot between `tail` and
//! `head` belongs to the reader, and every other slot to the handler.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use profile::Who;

use super::capture::{self, Side};
use super::{HERTZ, demand};
use crate::cpu::{self, MAX_CPUS};
use crate::irq::Vector;
use crate::mem::fallible::TryGrow;
use crate::sync::Once;
use crate::time;

/// Addresses of one sample, as many as Linux gives (kernel.perf_event_max_stack).
pub const ADDRESSES_MAX: usize = 127;
/// Nanoseconds from one sample to the next.
pub const PERIOD_NS: u64 = 1_000_000_000 / HERTZ as u64;

/// Samples that wait for the kernel to come to them.
const SLOTS: u64 = 16;
const HEAD_WORDS: usize = 3;
const SLOT_WORDS: usize = HEAD_WORDS + ADDRESSES_MAX;

struct Queue {
    words: Vec<AtomicU64>,
    /// Samples that were put in.
    head: AtomicU64,
    /// Samples that were taken out.
    tail: AtomicU64,
    /// Samples for which there was no room.
    lost: AtomicU64,
}

/// Each CPU's own.
static QUEUES: [Once<Queue>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];
/// Said once at boot by who knows threads.
static LISTENER: Once<fn() -> Who> = Once::new();

/// What a CPU did at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When, in nanoseconds of the monotonic clock; 0 if that was being set.
    pub at_ns: u64,
    /// The process that ran.
    pub pid: u32,
    /// The thread that ran.
    pub tid: u32,
    /// Samples that were lost before this one.
    pub lost: u64,
    kernel: usize,
    len: usize,
    addresses: [u64; ADDRESSES_MAX],
}

impl Sample {
    /// Where the kernel was, and who called it; empty if the program was interrupted.
    pub fn kernel(&self) -> &[u64] {
        self.addresses.get(..self.kernel).unwrap_or_default()
    }

    /// Where the program was, and who called it.
    pub fn user(&self) -> &[u64] {
        self.addresses
            .get(self.kernel..self.len)
            .unwrap_or_default()
    }
}

/// As long as there is one, samples are taken.
pub struct Tap(());

impl Tap {
    /// Has samples taken. `listener` says who runs, and sees to it that the kernel calls
    /// [`next`] soon; it is called by the NMI handler, so it takes no lock and does not allocate.
    ///
    /// `None` if nothing on this machine can raise them, or memory is short.
    pub fn open(listener: fn() -> Who) -> Option<Self> {
        for queue in QUEUES.iter().take(cpu::count()) {
            if queue.get().is_none() {
                let made = Queue::new()?;
                queue.call_once(|| made);
            }
        }
        LISTENER.call_once(|| listener);
        demand::add_tap().then_some(Self(()))
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        demand::remove_tap();
    }
}

/// Whether there is a tap. It costs one load.
#[inline]
pub fn is_open() -> bool {
    demand::is_tap()
}

/// Whether this CPU has samples for [`next`].
pub fn is_filled() -> bool {
    let queue = QUEUES[cpu::id().index()].get();
    queue.is_some_and(|queue| {
        queue.head.load(Ordering::Acquire) != queue.tail.load(Ordering::Relaxed)
    })
}

/// The oldest sample of this CPU that was not taken yet.
pub fn next() -> Option<Sample> {
    QUEUES[cpu::id().index()].get()?.take()
}

/// Called by NMI: puts down what it has interrupted.
pub(super) fn put(frame: &arch::KernelFrame) {
    if let (Some(queue), Some(listener)) = (QUEUES[cpu::id().index()].get(), LISTENER.get()) {
        queue.put(frame, listener());
        arch::apic::send_to_self(Vector::KICK.number());
    }
}

impl Queue {
    fn new() -> Option<Self> {
        let mut words = Vec::new();
        let count = SLOTS as usize * SLOT_WORDS;
        words.make_room(count).ok()?;
        words.resize_with(count, || AtomicU64::new(0));
        Some(Self {
            words,
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        })
    }

    fn slot(&self, number: u64) -> Option<&[AtomicU64]> {
        let first = (number % SLOTS) as usize * SLOT_WORDS;
        self.words.get(first..first + SLOT_WORDS)
    }

    fn put(&self, frame: &arch::KernelFrame, who: Who) {
        let head = self.head.load(Ordering::Relaxed);
        if head - self.tail.load(Ordering::Acquire) == SLOTS {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Some([at, ids, counts, addresses @ ..]) = self.slot(head) else {
            return;
        };
        let now_ns = time::try_now().map_or(0, base::Instant::as_nanos);
        at.store(now_ns, Ordering::Relaxed);
        ids.store(pair(who.pid, who.tid), Ordering::Relaxed);
        let (mut kernel, mut len) = (0, 0);
        capture::addresses(frame, &mut |side, address| {
            let Some(word) = addresses.get(len as usize) else {
                return false;
            };
            word.store(address, Ordering::Relaxed);
            len += 1;
            kernel += u32::from(side == Side::Kernel);
            true
        });
        counts.store(pair(kernel, len), Ordering::Relaxed);
        self.head.store(head + 1, Ordering::Release);
    }

    fn take(&self) -> Option<Sample> {
        let tail = self.tail.load(Ordering::Relaxed);
        if tail == self.head.load(Ordering::Acquire) {
            return None;
        }
        let [at, ids, counts, addresses @ ..] = self.slot(tail)? else {
            return None;
        };
        let (pid, tid) = halves(ids.load(Ordering::Relaxed));
        let (kernel, len) = halves(counts.load(Ordering::Relaxed));
        let mut sample = Sample {
            at_ns: at.load(Ordering::Relaxed),
            pid,
            tid,
            lost: self.lost.swap(0, Ordering::Relaxed),
            kernel: kernel as usize,
            len: len as usize,
            addresses: [0; ADDRESSES_MAX],
        };
        for (to, from) in sample.addresses.iter_mut().zip(addresses) {
            *to = from.load(Ordering::Relaxed);
        }
        self.tail.store(tail + 1, Ordering::Release);
        Some(sample)
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}
