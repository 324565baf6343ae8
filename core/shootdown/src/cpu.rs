//! The protocol: what CPUs publish, ask and answer.
//!
//! Each method is called by the CPU `me`, with that CPU's own [`Local`] and [`Hardware`].

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use base::{Atomics, CPUS_MAX, CpuId, CpuSet, Native, SharedCpuSet, Word};

use crate::request::{Request, Work};
use crate::{Event, Hardware, Local, Pages, Space};

/// Bit of [`Cpu::using`]: the CPU touches no user address until it wakes.
const RESTS: u64 = 1;

/// What the other CPUs see of a CPU.
#[derive(Debug)]
#[repr(align(64))]
struct Cpu<A: Atomics> {
    /// Twice the number of the space in which user addresses are touched, plus [`RESTS`].
    /// Written before the table is loaded.
    using: A::Word,
    /// Number of the space whose root the processor may still have. Written after the
    /// table is loaded.
    root: A::Word,
    /// CPUs whose requests this one has not looked at.
    mail: SharedCpuSet<A>,
    request: Request<A>,
}

impl<A: Atomics> Cpu<A> {
    fn new() -> Self {
        Self {
            using: A::Word::default(),
            root: A::Word::default(),
            mail: SharedCpuSet::default(),
            request: Request {
                space: A::Word::default(),
                generation: A::Word::default(),
                first: A::Word::default(),
                count: A::Word::default(),
                waiting: A::Word::default(),
            },
        }
    }
}

/// The TLBs of a machine with up to `CPUS` CPUs, at most [`CPUS_MAX`].
#[derive(Debug)]
pub struct Shootdown<A: Atomics, const CPUS: usize> {
    cpus: [Cpu<A>; CPUS],
}

impl<A: Atomics, const CPUS: usize> Default for Shootdown<A, CPUS> {
    fn default() -> Self {
        Self {
            cpus: core::array::from_fn(|_| Cpu::new()),
        }
    }
}

impl<const CPUS: usize> Shootdown<Native, CPUS> {
    /// All CPUs run with the kernel's table.
    pub const fn new() -> Self {
        const { assert!(CPUS <= CPUS_MAX, "a set holds every CPU") };
        let cpus = [const {
            Cpu {
                using: AtomicU64::new(0),
                root: AtomicU64::new(0),
                mail: SharedCpuSet::new(CpuSet::EMPTY),
                request: Request {
                    space: AtomicU64::new(0),
                    generation: AtomicU64::new(0),
                    first: AtomicU64::new(0),
                    count: AtomicU64::new(0),
                    waiting: AtomicU64::new(0),
                },
            }
        }; CPUS];
        Self { cpus }
    }
}

impl<A: Atomics, const CPUS: usize> Shootdown<A, CPUS> {
    #[inline(always)]
    fn cpu(&self, id: CpuId) -> &Cpu<A> {
        &self.cpus[id.index()]
    }

    /// Loads a space's table, unless it is loaded already. The space lives until
    /// [`Shootdown::evict`].
    #[inline]
    pub fn activate(&self, me: CpuId, local: &mut Local, space: &Space<A>, hw: &impl Hardware) {
        if local.space() != space.number {
            self.load(me, local, space, hw);
        }
    }

    fn load(&self, me: CpuId, local: &mut Local, space: &Space<A>, hw: &impl Hardware) {
        space.note_cpu(me);
        self.cpu(me).using.store(space.number << 1, Release);
        A::fence();
        let generation = space.generation.load(Acquire);
        let keep = local.choose(space.number, generation, hw);
        hw.load(space.root, local.tag(), keep);
        self.cpu(me).root.store(space.number, Release);
    }

    /// Loads the kernel's table.
    pub fn enter_kernel(&self, me: CpuId, local: &mut Local, hw: &impl Hardware) {
        local.enter_kernel();
        hw.load_kernel();
        self.cpu(me).using.store(0, Release);
        self.cpu(me).root.store(0, Release);
    }

    /// The CPU touches no user address until it wakes. It may be asked to leave the space.
    #[inline]
    pub fn rest(&self, me: CpuId, local: &Local) {
        let using = local.space() << 1 | RESTS;
        self.cpu(me).using.store(using, Release);
    }

    /// The CPU's rest is over. `loaded` is the space whose table is loaded; `None` for the kernel's.
    /// Returns whether it is a space's.
    #[inline]
    pub fn wake(
        &self,
        me: CpuId,
        local: &mut Local,
        loaded: Option<&Space<A>>,
        hw: &impl Hardware,
    ) -> bool {
        self.cpu(me).using.store(local.space() << 1, Release);
        if let Some(space) = loaded {
            A::fence();
            local.catch_up(space.generation.load(Acquire), hw);
        }
        loaded.is_some()
    }

    /// Returns when no CPU translates `pages` of `space` as they were when it was called.
    #[inline]
    pub fn flush(
        &self,
        me: CpuId,
        local: &mut Local,
        space: &Space<A>,
        pages: Pages,
        hw: &impl Hardware,
    ) {
        let generation = self.forget_here(local, space, pages, hw);
        let targets = self.running(space, space.others(me), hw);
        if !targets.is_empty() {
            hw.count(Event::RemoteFlush, 1);
            let work = Work::Forget { pages, generation };
            self.ask(me, local, (space.number, work), targets, hw);
        }
    }

    /// The same when `space` lost tables as well: nor does any CPU walk through them, which one
    /// that rests might do by speculation. One that rests leaves the space, and is not asked again.
    #[cold]
    pub fn flush_tables(
        &self,
        me: CpuId,
        local: &mut Local,
        space: &Space<A>,
        pages: Pages,
        hw: &impl Hardware,
    ) {
        let generation = self.forget_here(local, space, pages, hw);
        let has_it = |id: &CpuId| {
            let cpu = self.cpu(*id);
            cpu.using.load(Acquire) >> 1 == space.number || cpu.root.load(Acquire) == space.number
        };
        let targets: CpuSet = space.others(me).iter().filter(has_it).collect();
        if !targets.is_empty() {
            hw.count(Event::RemoteFlush, 1);
            let work = Work::Forget { pages, generation };
            self.ask(me, local, (space.number, work), targets, hw);
        }
    }

    /// Raises the generation, and has this CPU forget; returns the new one.
    #[inline]
    fn forget_here(
        &self,
        local: &mut Local,
        space: &Space<A>,
        pages: Pages,
        hw: &impl Hardware,
    ) -> u64 {
        let generation = space.generation.fetch_add(1, AcqRel) + 1;
        A::fence();
        if local.space() == space.number {
            local.forget(pages, generation, hw);
        }
        generation
    }

    /// Those of `cpus` that run in the space.
    fn running(&self, space: &Space<A>, cpus: CpuSet, hw: &impl Hardware) -> CpuSet {
        let runs = |id: &CpuId| {
            let using = self.cpu(*id).using.load(Acquire);
            let spared = match using {
                _ if using >> 1 != space.number => Event::SparedElsewhere,
                _ if using & RESTS != 0 => Event::SparedIdle,
                _ => return true,
            };
            hw.count(spared, 1);
            false
        };
        cpus.iter().filter(runs).collect()
    }

    /// Takes the table off every CPU, resting ones too, before its root is given back. Nobody
    /// activates the space any more.
    pub fn evict(&self, me: CpuId, local: &mut Local, space: &Space<A>, hw: &impl Hardware) {
        if local.space() == space.number {
            self.enter_kernel(me, local, hw);
        }
        let has_it = |id: &CpuId| self.cpu(*id).root.load(Acquire) == space.number;
        let targets: CpuSet = space.others(me).iter().filter(has_it).collect();
        if !targets.is_empty() {
            self.ask(me, local, (space.number, Work::Leave), targets, hw);
        }
    }

    /// Has `targets` do something, and waits until they did.
    #[cold]
    fn ask(
        &self,
        me: CpuId,
        local: &mut Local,
        (space, work): (u64, Work),
        targets: CpuSet,
        hw: &impl Hardware,
    ) {
        let request = &self.cpu(me).request;
        request.write(space, work, targets.len());
        for id in targets.iter() {
            if self.cpu(id).mail.insert(me, Release) {
                hw.count(Event::Interrupt, 1);
                hw.interrupt(id);
            } else {
                hw.count(Event::SparedAsked, 1);
            }
        }
        while !request.is_done() {
            self.serve(me, local, hw);
            hw.pause();
        }
    }

    /// Does what other CPUs ask of this one. Takes no lock; cheap when there is nothing.
    #[inline]
    pub fn serve(&self, me: CpuId, local: &mut Local, hw: &impl Hardware) {
        if !self.cpu(me).mail.is_empty(Relaxed) {
            self.serve_all(me, local, hw);
        }
    }

    #[cold]
    fn serve_all(&self, me: CpuId, local: &mut Local, hw: &impl Hardware) {
        hw.count(Event::Received, 1);
        for initiator in self.cpu(me).mail.take(Acquire).iter() {
            let request = &self.cpu(initiator).request;
            let (space, work) = request.read();
            if space == local.space() {
                self.run_work(me, local, work, hw);
            }
            request.acknowledge();
        }
    }

    fn run_work(&self, me: CpuId, local: &mut Local, work: Work, hw: &impl Hardware) {
        let rests = self.cpu(me).using.load(Relaxed) & RESTS != 0;
        match work {
            Work::Forget { pages, generation } if !rests => local.forget(pages, generation, hw),
            Work::Forget { .. } | Work::Leave => self.enter_kernel(me, local, hw),
        }
    }
}
