//! What the allocators are asked to do.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use rustix::time::{ClockId, clock_gettime};

use crate::subject::{CPUS, FRAMES, Subject};

/// Pairs of the works that repeat one pair.
const PAIRS: usize = 1_000_000;
/// Frames held at once by the work in batches.
const BATCH: usize = 1000;
const HUGE_ORDER: u32 = 9;

/// A way to allocate and release.
#[derive(Clone, Copy)]
pub enum Work {
    /// A frame is taken and given back at once.
    Pair,
    /// A thousand frames are taken, then given back.
    Batch,
    /// All memory is taken, then given back in random order.
    RandomFree,
    /// A huge page is taken and given back at once.
    HugePair,
    /// As [`Work::Pair`], on two threads at once.
    TwoThreads,
}

/// All of them, in the order of the table.
pub const WORKS: [Work; 5] = [
    Work::Pair,
    Work::Batch,
    Work::RandomFree,
    Work::HugePair,
    Work::TwoThreads,
];

impl Work {
    /// Its row's name.
    pub fn name(self) -> &'static str {
        match self {
            Work::Pair => "order 0, pair at once",
            Work::Batch => "order 0, 1000 taken, then given back",
            Work::RandomFree => "order 0, 1 GiB taken, given back in random order",
            Work::HugePair => "order 9, pair at once",
            Work::TwoThreads => "order 0, pair at once, two threads",
        }
    }

    /// How many times faster than the crate it should be.
    pub fn goal(self) -> f64 {
        match self {
            Work::Pair => 10.0,
            Work::Batch => 4.0,
            Work::RandomFree | Work::HugePair => 4.0,
            Work::TwoThreads => 8.0,
        }
    }

    /// Nanoseconds for one allocation and its release.
    pub fn measure<S: Subject>(self) -> f64 {
        let subject = S::new();
        match self {
            Work::Pair => timed(PAIRS, || pairs(&subject, 0, 0)),
            Work::HugePair => timed(PAIRS, || pairs(&subject, 0, HUGE_ORDER)),
            Work::Batch => timed(PAIRS, || batches(&subject)),
            Work::RandomFree => random_free(&subject),
            Work::TwoThreads => two_threads(&subject),
        }
    }
}

/// Nanoseconds that this thread had a processor, for each pair: time that other
/// programs take is left out.
fn timed(pairs: usize, work: impl FnOnce()) -> f64 {
    let start = processor_nanos();
    work();
    (processor_nanos() - start) / pairs as f64
}

fn processor_nanos() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn pairs(subject: &impl Subject, cpu: usize, order: u32) {
    for _ in 0..PAIRS {
        let first = black_box(subject.alloc(cpu, order));
        subject.free(cpu, first, order);
    }
}

fn batches(subject: &impl Subject) {
    let mut held = Vec::with_capacity(BATCH);
    for _ in 0..PAIRS / BATCH {
        held.extend((0..BATCH).map(|_| subject.alloc(0, 0)));
        held.drain(..).for_each(|frame| subject.free(0, frame, 0));
    }
}

fn random_free(subject: &impl Subject) -> f64 {
    // The permutation is made before the clock starts.
    let mut order: Vec<u32> = (0..FRAMES as u32).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for last in (1..FRAMES).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    let mut held = vec![0; FRAMES];
    timed(FRAMES, || {
        held.iter_mut().for_each(|slot| *slot = subject.alloc(0, 0));
        for index in order {
            subject.free(0, held[index as usize], 0);
        }
    })
}

fn two_threads(subject: &impl Subject) -> f64 {
    let barrier = Barrier::new(CPUS);
    let one = |cpu| {
        barrier.wait();
        timed(PAIRS, || pairs(subject, cpu, 0))
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| one(1));
        let here = one(0);
        let there = other.join().expect("the thread only allocates");
        here.max(there)
    })
}
