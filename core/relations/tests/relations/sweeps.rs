//! `loom` runs forks beside sweeps through their group: no child is missed of a parent that was
//! found.

#![allow(
    clippy::arc_with_non_send_sync,
    reason = "threads of loom are one thread of the system"
)]

use std::array::from_fn;
use std::sync::Arc;

use base::lock::{Family, Lock, RwLock};
use loom::thread;
use models::{Watched, explore};
use relations::{Cursor, Generations, Host, INIT, Index, Part, State, Sweeps};

const PARTS: usize = 2;
const PARENT: u32 = 2;
/// In the part of the table through which a sweep comes before the parent's.
const CHILD_BEFORE: u32 = 3;
/// In the parent's, and behind it.
const CHILD_BEHIND: u32 = 4;

struct Kernel;

type Table = relations::Table<Kernel, PARTS>;

/// What signals a process has.
#[derive(Default)]
struct Signals {
    waiting: u32,
    /// Those sent while it forks.
    during_fork: Option<u32>,
}

struct Process {
    signals: <Watched as Family>::Lock<Signals>,
    /// How many sweeps had begun before its fork.
    sweeps: usize,
}

impl Process {
    fn new(sweeps: usize) -> Self {
        let signals = Lock::new(Signals::default());
        Self { signals, sweeps }
    }
}

struct Nothing;

impl State for Nothing {
    fn has_changed(&self) -> bool {
        false
    }
}

impl Host for Kernel {
    type Family = Watched;
    type Process = Process;
    type State = Nothing;

    fn release(_number: u32) {}

    fn has_reapers() -> bool {
        false
    }

    fn is_reaper(_process: &Process) -> bool {
        false
    }

    fn breathe() {}
}

/// The first process, and 2 below it in the same group.
struct World {
    table: Table,
    sweeps: Sweeps<Kernel>,
}

impl World {
    fn new() -> Self {
        let table = Table::new(from_fn(|_| Part::new(RwLock::new(Index::new()))));
        let generations = Lock::new(Generations::new());
        let sweeps = Sweeps::new(Default::default(), Default::default(), generations);
        let world = Self { table, sweeps };
        let first = (INIT, Process::new(0));
        world.table.add(first, None, None, Nothing);
        world.bear(PARENT, INIT);
        world
    }

    fn bear(&self, id: u32, parent: u32) {
        let parent = self.table.get(parent).expect("it is there");
        let child = (id, Process::new(self.sweeps.count()));
        self.table
            .add(child, Some(parent.clone()), Some(&parent), Nothing);
    }

    fn with<R>(&self, id: u32, look: impl FnOnce(&mut Signals) -> R) -> Option<R> {
        let member = self.table.get(id)?;
        Some(look(&mut member.process().signals.lock()))
    }

    /// Sends a signal to all in the first process' group.
    fn sweep(&self, signal: u32) {
        let sweep = self.sweeps.begin();
        let mut cursor = Cursor::default();
        while let Some(member) = self.table.next_of_group(INIT, &mut cursor) {
            if !sweep.reaches(member.process().sweeps) {
                continue;
            }
            let mut signals = member.process().signals.lock();
            signals.waiting |= signal;
            signals.during_fork = signals.during_fork.map(|sent| sent | signal);
        }
    }

    /// As fork(2), of a child with this number; begins only while no signal waits.
    fn fork(&self, child: u32) {
        let begin = |signals: &mut Signals| {
            signals.during_fork = Some(0);
            signals.waiting == 0
        };
        if self.with(PARENT, begin) != Some(true) {
            return;
        }
        self.bear(child, PARENT);
        if let Some(begun) = self.sweeps.begun() {
            while !self.sweeps.are_over(begun) {
                thread::yield_now();
            }
        }
        let sent = self.with(PARENT, |signals| signals.during_fork.take());
        let sent = sent.flatten().expect("it was begun");
        self.with(child, |signals| signals.waiting |= sent);
    }

    /// Takes the signals that wait for the parent.
    fn take(&self) -> u32 {
        let taken = self.with(PARENT, |signals| std::mem::take(&mut signals.waiting));
        taken.expect("it is there")
    }

    fn waiting(&self, id: u32) -> Option<u32> {
        self.with(id, |signals| signals.waiting)
    }

    /// A parent that has no child was sent the signals before.
    fn check(&self, child: u32, sent: u32) {
        assert_eq!(self.waiting(PARENT), Some(sent));
        assert!(self.waiting(child).is_none_or(|waiting| waiting == sent));
    }
}

/// A sweep beside a fork of a child with this number.
fn a_sweep_beside_a_fork(child: u32) {
    explore(move || {
        let world = Arc::new(World::new());
        let here = world.clone();
        let other = thread::spawn(move || here.sweep(1));
        world.fork(child);
        other.join().expect("it ends");
        world.check(child, 1);
    });
}

#[test]
fn a_child_that_is_forked_during_a_sweep_is_sent_what_its_parent_is_sent() {
    a_sweep_beside_a_fork(CHILD_BEFORE);
    a_sweep_beside_a_fork(CHILD_BEHIND);
}

#[test]
fn a_child_is_sent_the_signals_of_sweeps_that_overlap() {
    explore(|| {
        let world = Arc::new(World::new());
        let sweepers = [1, 2].map(|signal| {
            let here = world.clone();
            thread::spawn(move || here.sweep(signal))
        });
        world.fork(CHILD_BEFORE);
        sweepers
            .into_iter()
            .for_each(|sweeper| sweeper.join().expect("it ends"));
        world.check(CHILD_BEFORE, 1 | 2);
    });
}

#[test]
fn a_child_that_is_forked_after_its_parent_has_taken_a_signal_is_not_sent_it() {
    explore(|| {
        let world = Arc::new(World::new());
        let here = world.clone();
        let other = thread::spawn(move || here.sweep(1));
        let taken = world.take();
        world.fork(CHILD_BEHIND);
        other.join().expect("it ends");
        match taken {
            0 => world.check(CHILD_BEHIND, 1),
            _ => assert_eq!(world.waiting(CHILD_BEHIND), Some(0)),
        }
    });
}

#[test]
fn nobody_waits_for_sweeps_that_begin_later() {
    explore(|| {
        let world = World::new();
        assert!(world.sweeps.begun().is_none());
        let first = world.sweeps.begin();
        let begun = world.sweeps.begun().expect("one is under way");
        let second = world.sweeps.begin();
        let both = world.sweeps.begun().expect("two are under way");
        assert!(!world.sweeps.are_over(begun) && !world.sweeps.are_over(both));
        drop(first);
        assert!(world.sweeps.are_over(begun), "the second is later");
        assert!(!world.sweeps.are_over(both));
        let third = world.sweeps.begin();
        drop(second);
        assert!(world.sweeps.are_over(both), "the third is later");
        let last = world.sweeps.begun().expect("one is under way");
        drop(third);
        assert!(world.sweeps.are_over(last));
        assert!(world.sweeps.begun().is_none());
    });
}
