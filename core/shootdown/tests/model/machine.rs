//! Two CPUs with TLBs, two spaces of two pages, one frame behind each page and each root.

use std::array::from_fn;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64 as Unwatched};

use base::{Atomics, CpuId};
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use shootdown::{Shootdown, Space};

use crate::processor::{Processor, play};

pub const SPACES: usize = 2;
pub const PAGES: usize = 2;
pub const CPUS: usize = 2;
pub const PAGE_BYTES: u64 = 4096;

/// Forced switches of the running thread that loom tries in one execution: most races need two.
const PREEMPTIONS_MAX: usize = 3;

/// Runs `scene` in all orders.
pub fn explore(scene: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS_MAX);
    model.check(scene);
}

/// What is wrong with the CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quirk {
    None,
    /// A CPU that wakes does not forget what it missed.
    SleepsOn,
    /// A CPU that returns to a space does not forget what it missed.
    KeepsAll,
}

/// Memory that is used through translations and then given back.
///
/// Each use stores a count. Who gives the frame back must see the last one: otherwise that use
/// did not happen before.
pub struct Frame {
    watched: AtomicU64,
    uses: Unwatched,
    is_free: AtomicBool,
}

impl Frame {
    fn new() -> Self {
        Self {
            watched: AtomicU64::new(0),
            uses: Unwatched::new(0),
            is_free: AtomicBool::new(false),
        }
    }

    pub fn touch(&self) {
        assert!(
            !self.is_free.load(Relaxed),
            "a frame was given back too early: it is used"
        );
        let uses = self.uses.fetch_add(1, Relaxed) + 1;
        self.watched.store(uses, Relaxed);
    }

    pub fn give_back(&self) {
        let (seen, uses) = (self.watched.load(Relaxed), self.uses.load(Relaxed));
        assert_eq!(
            seen, uses,
            "a frame was given back too early: its last use did not happen before"
        );
        self.is_free.store(true, Relaxed);
    }
}

pub struct Table<A: Atomics> {
    pub space: Space<A>,
    pub root: Frame,
    /// 1 while the root links to the branch.
    pub link: AtomicU64,
    /// A table below the root.
    pub branch: Frame,
    /// For each page, 1 while it maps its frame.
    pub entries: [AtomicU64; PAGES],
    pub frames: [Frame; PAGES],
}

impl<A: Atomics> Table<A> {
    fn new(index: usize) -> Self {
        let number = NonZeroU64::MIN.saturating_add(index as u64);
        Self {
            space: Space::new(number, index as u64),
            root: Frame::new(),
            link: AtomicU64::new(1),
            branch: Frame::new(),
            entries: from_fn(|_| AtomicU64::new(1)),
            frames: from_fn(|_| Frame::new()),
        }
    }
}

pub struct Machine<A: Atomics> {
    pub tlbs: Shootdown<A, CPUS>,
    pub tables: [Table<A>; SPACES],
    /// CPUs that have played their part.
    done: AtomicU64,
    /// For each CPU, interrupts that were sent to it.
    pub interrupts: [Unwatched; CPUS],
    pub quirk: Quirk,
}

/// What a CPU does in a scene.
pub type Part<A> = fn(&mut Processor<A>);

impl<A: Atomics<Word: Send + Sync> + 'static> Machine<A> {
    pub fn new(quirk: Quirk) -> Arc<Self> {
        Arc::new(Self {
            tlbs: Shootdown::default(),
            tables: from_fn(Table::new),
            done: AtomicU64::new(0),
            interrupts: from_fn(|_| Unwatched::new(0)),
            quirk,
        })
    }
}

impl<A: Atomics> Machine<A> {
    pub fn finish(&self) {
        self.done.fetch_add(1, AcqRel);
    }

    pub fn is_finished(&self) -> bool {
        self.done.load(Acquire) == CPUS as u64
    }
}

/// CPU 0 does `first` while CPU 1, which did `before`, does `second`.
pub fn run<A: Atomics<Word: Send + Sync> + 'static>(
    quirk: Quirk,
    first: Part<A>,
    before: Part<A>,
    second: Part<A>,
) {
    let machine = Machine::<A>::new(quirk);
    let mut target = Processor::new(&machine, CpuId(1));
    before(&mut target);
    let other = loom::thread::spawn(move || play(&mut target, second));
    play(&mut Processor::new(&machine, CpuId(0)), first);
    assert!(other.join().is_ok(), "the other CPU played its part");
    for sent in &machine.interrupts {
        assert!(
            sent.load(Relaxed) <= 1,
            "one interrupt for one request at most"
        );
    }
}
