//! Random histories of four CPUs, ten spaces and all tags, against TLBs that forget only
//! what they are told to.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::num::NonZeroU64;

use base::{CpuId, Native, PAGE_BYTES};
use models::Random;
use shootdown::{Event, Hardware, Local, Pages, Shootdown, Space};

const CPUS: usize = 4;
/// More than there are tags.
const SPACES: usize = 10;
/// More than are forgotten one by one.
const PAGES: u64 = 48;
const STEPS: u32 = 200_000;

/// What a page maps; 0 for nothing. It never maps the same twice.
type Frame = u64;

/// A CPU as the hardware sees it.
#[derive(Default)]
struct Cpu {
    local: RefCell<Local>,
    /// Index of the loaded space.
    root: Cell<Option<usize>>,
    tag: Cell<usize>,
    rests: Cell<bool>,
    tlb: RefCell<HashMap<(usize, u64), Frame>>,
}

struct World {
    tlbs: Shootdown<Native, CPUS>,
    spaces: Vec<Space<Native>>,
    tables: Vec<RefCell<[Frame; PAGES as usize]>>,
    cpus: [Cpu; CPUS],
    interrupts: Cell<u64>,
    kept: Cell<u64>,
}

struct At<'a>(&'a World, usize);

impl At<'_> {
    fn cpu(&self) -> &Cpu {
        &self.0.cpus[self.1]
    }

    fn me(&self) -> CpuId {
        CpuId(self.1 as u32)
    }

    fn activate(&self, space: usize) {
        let local = &mut *self.cpu().local.borrow_mut();
        let space = &self.0.spaces[space];
        self.0.tlbs.activate(self.me(), local, space, self);
    }

    /// Rests, or wakes.
    fn turn(&self) {
        let local = &mut *self.cpu().local.borrow_mut();
        let rests = !self.cpu().rests.get();
        self.cpu().rests.set(rests);
        if rests {
            return self.0.tlbs.rest(self.me(), local);
        }
        let loaded = self.cpu().root.get().map(|index| &self.0.spaces[index]);
        self.0.tlbs.wake(self.me(), local, loaded, self);
    }

    /// What a program reads in a page, as its TLB has it.
    fn read(&self, page: u64) -> Frame {
        let Some(space) = self.cpu().root.get() else {
            return 0;
        };
        let walked = self.0.tables[space].borrow()[page as usize];
        let mut tlb = self.cpu().tlb.borrow_mut();
        let seen = *tlb.entry((self.cpu().tag.get(), page)).or_insert(walked);
        if seen == 0 {
            tlb.remove(&(self.cpu().tag.get(), page));
            return walked;
        }
        seen
    }

    /// Unmaps pages of a space and maps new frames there.
    fn remap(&self, space: usize, first: u64, count: u64, next: &mut Frame) {
        let pages = Pages {
            first: first * PAGE_BYTES as u64,
            count,
        };
        let range = first as usize..(first + count) as usize;
        self.0.tables[space].borrow_mut()[range.clone()].fill(0);
        let runs = |&other: &usize| {
            let cpu = &self.0.cpus[other];
            other != self.1 && cpu.root.get() == Some(space) && !cpu.rests.get()
        };
        let running = (0..CPUS).filter(runs).count() as u64;
        let before = self.0.interrupts.get();
        {
            let local = &mut *self.cpu().local.borrow_mut();
            let space = &self.0.spaces[space];
            self.0.tlbs.flush(self.me(), local, space, pages, self);
        }
        assert_eq!(
            self.0.interrupts.get() - before,
            running,
            "one each, no more"
        );
        for frame in &mut self.0.tables[space].borrow_mut()[range] {
            *next += 1;
            *frame = *next;
        }
    }
}

impl Hardware for At<'_> {
    fn load(&self, root: u64, tag: usize, keep: bool) {
        self.cpu().root.set(Some(root as usize));
        self.cpu().tag.set(tag);
        if !keep {
            self.forget_all();
        }
    }

    fn load_kernel(&self) {
        self.cpu().root.set(None);
        self.cpu().tag.set(0);
    }

    fn forget_one(&self, address: u64) {
        let page = address / PAGE_BYTES as u64;
        self.cpu()
            .tlb
            .borrow_mut()
            .remove(&(self.cpu().tag.get(), page));
    }

    fn forget_all(&self) {
        let loaded = self.cpu().tag.get();
        self.cpu()
            .tlb
            .borrow_mut()
            .retain(|(tag, _), _| *tag != loaded);
    }

    fn interrupt(&self, _: CpuId) {
        self.0.interrupts.set(self.0.interrupts.get() + 1);
    }

    /// Time passes: the other CPUs take their interrupts.
    fn pause(&self) {
        for other in (0..CPUS).filter(|&other| other != self.1) {
            let at = At(self.0, other);
            let local = &mut *at.cpu().local.borrow_mut();
            self.0.tlbs.serve(at.me(), local, &at);
        }
    }

    fn count(&self, event: Event, times: u64) {
        if event == Event::Kept {
            self.0.kept.set(self.0.kept.get() + times);
        }
    }
}

fn world() -> World {
    let number = |index| NonZeroU64::MIN.saturating_add(index as u64);
    let world = World {
        tlbs: Shootdown::new(),
        spaces: (0..SPACES)
            .map(|index| Space::new(number(index), index as u64))
            .collect(),
        tables: (0..SPACES)
            .map(|_| RefCell::new([0; PAGES as usize]))
            .collect(),
        cpus: Default::default(),
        interrupts: Cell::new(0),
        kept: Cell::new(0),
    };
    for cpu in &world.cpus[1..] {
        cpu.local.borrow_mut().use_tags();
    }
    world
}

/// CPU 0 has no tags but one, as a processor without PCIDs; the others have all.
#[test]
fn no_cpu_sees_a_frame_that_was_given_back() {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x715b);
    println!("SEED={seed}");
    let mut random = Random::new(seed);
    let world = world();
    let mut next = 0;
    for step in 0..STEPS {
        let at = At(&world, random.below(CPUS));
        if at.cpu().rests.get() {
            if random.below(4) == 0 {
                at.turn();
            }
            continue;
        }
        match random.below(16) {
            0 => at.turn(),
            1..4 => at.activate(random.below(SPACES)),
            4 => {
                let first = random.below(PAGES);
                let count = 1 + random.below(PAGES - first);
                at.remap(random.below(SPACES), first, count, &mut next);
            }
            _ => {
                let page = random.below(PAGES);
                let seen = at.read(page);
                let space = at.cpu().root.get();
                let mapped = space.map_or(0, |space| world.tables[space].borrow()[page as usize]);
                assert_eq!(seen, mapped, "stale at step {step}, SEED={seed}");
            }
        }
    }
    assert_ne!(world.kept.get(), 0, "some switches forget nothing");
}

#[test]
fn a_cpu_that_rests_is_interrupted_for_the_first_table_only() {
    let world = world();
    let (worker, sleeper) = (At(&world, 0), At(&world, 1));
    for at in [&worker, &sleeper] {
        at.activate(0);
    }
    sleeper.turn();
    let sweep = || {
        let local = &mut *worker.cpu().local.borrow_mut();
        let pages = Pages { first: 0, count: 1 };
        let space = &world.spaces[0];
        world
            .tlbs
            .flush_tables(worker.me(), local, space, pages, &worker);
        world.interrupts.get()
    };
    assert_eq!((sweep(), sweep()), (1, 1));
    assert_eq!(sleeper.cpu().root.get(), None, "it rests in the kernel's");
    sleeper.turn();
    sleeper.activate(0);
    assert_eq!(sweep(), 2, "it runs there again");
}
