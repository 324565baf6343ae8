//! A CPU: its part of the protocol, and a TLB that forgets only when it is told to.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::Relaxed;

use base::{Atomics, CpuId, Word};
use loom::sync::Arc;
use shootdown::{Event, Hardware, Local, Pages, Shootdown, Space, TAGS_MAX};

use crate::machine::{CPUS, Machine, PAGE_BYTES, PAGES, Quirk};

/// The pages that are remembered under a tag.
type Known = [bool; PAGES];

pub struct Tlb<A: Atomics> {
    machine: Arc<Machine<A>>,
    /// Index of the space whose root is loaded.
    root: Cell<Option<usize>>,
    tag: Cell<usize>,
    known: RefCell<[Known; TAGS_MAX + 1]>,
    /// For each tag, whether the branch is remembered.
    branches: RefCell<[bool; TAGS_MAX + 1]>,
    wakes: Cell<bool>,
}

impl<A: Atomics> Tlb<A> {
    fn has(&self, quirk: Quirk) -> bool {
        self.machine.quirk == quirk
    }

    /// The kernel runs with the root that is loaded, whatever the space's fate.
    fn use_root(&self) {
        if let Some(index) = self.root.get() {
            self.machine.tables[index].root.touch();
        }
    }

    /// The CPU walks through the branch, if it knows of it, for no reason.
    fn speculate(&self) {
        let Some(index) = self.root.get() else { return };
        let table = &self.machine.tables[index];
        let known = &mut self.branches.borrow_mut()[self.tag.get()];
        *known = *known || table.link.load(Relaxed) != 0;
        if *known {
            table.branch.touch();
        }
    }

    /// A program accesses a page, if it is mapped.
    fn access(&self, page: usize) {
        let Some(index) = self.root.get() else { return };
        let table = &self.machine.tables[index];
        let known = &mut self.known.borrow_mut()[self.tag.get()][page];
        *known = *known || table.entries[page].load(Relaxed) != 0;
        if *known {
            table.frames[page].touch();
        }
    }
}

impl<A: Atomics> Hardware for Tlb<A> {
    fn load(&self, root: u64, tag: usize, keep: bool) {
        self.use_root();
        self.speculate();
        self.root.set(Some(root as usize));
        self.tag.set(tag);
        if !keep && !self.has(Quirk::KeepsAll) {
            self.known.borrow_mut()[tag] = Known::default();
            self.branches.borrow_mut()[tag] = false;
        }
    }

    fn load_kernel(&self) {
        self.use_root();
        self.speculate();
        self.root.set(None);
        self.tag.set(0);
    }

    fn forget_one(&self, address: u64) {
        self.known.borrow_mut()[self.tag.get()][(address / PAGE_BYTES) as usize] = false;
        self.branches.borrow_mut()[self.tag.get()] = false;
    }

    fn forget_all(&self) {
        if !(self.wakes.get() && self.has(Quirk::SleepsOn)) {
            self.known.borrow_mut()[self.tag.get()] = Known::default();
            self.branches.borrow_mut()[self.tag.get()] = false;
        }
    }

    fn interrupt(&self, cpu: CpuId) {
        self.machine.interrupts[cpu.index()].fetch_add(1, Relaxed);
    }

    fn pause(&self) {
        loom::thread::yield_now();
    }

    fn count(&self, _: Event, _: u64) {}
}

type Flush<A> = fn(&Shootdown<A, CPUS>, CpuId, &mut Local, &Space<A>, Pages, &Tlb<A>);

pub struct Processor<A: Atomics> {
    me: CpuId,
    local: Local,
    tlb: Tlb<A>,
}

impl<A: Atomics> Processor<A> {
    pub fn new(machine: &Arc<Machine<A>>, me: CpuId) -> Self {
        let mut local = Local::new();
        local.use_tags();
        let tlb = Tlb {
            machine: machine.clone(),
            root: Cell::new(None),
            tag: Cell::new(0),
            known: RefCell::new([Known::default(); TAGS_MAX + 1]),
            branches: RefCell::default(),
            wakes: Cell::new(false),
        };
        Self { me, local, tlb }
    }

    pub fn activate(&mut self, space: usize) {
        let machine = self.tlb.machine.clone();
        let space = &machine.tables[space].space;
        machine
            .tlbs
            .activate(self.me, &mut self.local, space, &self.tlb);
    }

    /// The program accesses a page of the space that is loaded.
    pub fn touch(&mut self, page: usize) {
        self.tlb.access(page);
    }

    /// An interrupt is taken, if one is pending.
    pub fn take_interrupt(&mut self) {
        let machine = self.tlb.machine.clone();
        machine.tlbs.serve(self.me, &mut self.local, &self.tlb);
    }

    pub fn rest(&mut self) {
        self.tlb.machine.tlbs.rest(self.me, &self.local);
    }

    pub fn wake(&mut self) {
        let machine = self.tlb.machine.clone();
        let loaded = self
            .tlb
            .root
            .get()
            .map(|index| &machine.tables[index].space);
        self.tlb.wakes.set(true);
        machine
            .tlbs
            .wake(self.me, &mut self.local, loaded, &self.tlb);
        self.tlb.wakes.set(false);
        self.take_interrupt();
    }

    /// Unmaps a page of space 0 and gives its frame back.
    pub fn unmap(&mut self, page: usize) {
        let machine = self.tlb.machine.clone();
        let table = &machine.tables[0];
        table.entries[page].store(0, Relaxed);
        let pages = Pages {
            first: page as u64 * PAGE_BYTES,
            count: 1,
        };
        machine
            .tlbs
            .flush(self.me, &mut self.local, &table.space, pages, &self.tlb);
        table.frames[page].give_back();
    }

    /// Takes the branch out of space 0 and gives it back, once all CPUs were told by `flush`.
    fn unlink(&mut self, flush: Flush<A>) {
        let machine = self.tlb.machine.clone();
        let table = &machine.tables[0];
        table.link.store(0, Relaxed);
        let pages = Pages { first: 0, count: 1 };
        let (tlbs, local) = (&machine.tlbs, &mut self.local);
        flush(tlbs, self.me, local, &table.space, pages, &self.tlb);
        table.branch.give_back();
    }

    /// Gives a table of space 0 back.
    pub fn sweep(&mut self) {
        self.unlink(Shootdown::flush_tables);
    }

    /// As if it were a page.
    pub fn sweep_as_page(&mut self) {
        self.unlink(Shootdown::flush);
    }

    pub fn speculate(&mut self) {
        self.tlb.speculate();
    }

    /// Gives the tables of space 0 back.
    pub fn drop_tables(&mut self) {
        let machine = self.tlb.machine.clone();
        let table = &machine.tables[0];
        machine
            .tlbs
            .evict(self.me, &mut self.local, &table.space, &self.tlb);
        table.root.give_back();
    }

    /// The kernel goes on with the root that is loaded.
    pub fn stay_in_kernel(&mut self) {
        self.tlb.use_root();
    }
}

/// One part after the other CPU has also played its own: until then it takes interrupts.
pub fn play<A: Atomics<Word: Word>>(cpu: &mut Processor<A>, part: impl FnOnce(&mut Processor<A>)) {
    part(cpu);
    let machine = cpu.tlb.machine.clone();
    machine.finish();
    while !machine.is_finished() {
        cpu.take_interrupt();
        loom::thread::yield_now();
    }
}
