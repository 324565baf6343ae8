//! Each thread's heap, in its thread-local storage.
//!
//! `thread_local!` would call `__tls_get_addr` in a shared library, and `#[thread_local]`
//! needs an unstable compiler. So the storage is defined in assembly and reached with the
//! initial-exec model: the thread's own address (`fs:0`) plus an offset that the dynamic
//! linker wrote down. For this the library must be there when the program starts.

use core::arch::{asm, global_asm};
use core::ptr::{self, NonNull};
use core::sync::atomic::{Ordering, compiler_fence};

use slab::{LocalHeap, Magazine, Round};

use crate::map::VALUES;
use crate::sizes::{PLACES, SizeClass};
use crate::{depots, ending, options, settings, stats, storage};

global_asm!(
    ".pushsection .tbss.umem_thread,\"awT\",@nobits",
    ".balign 64",
    ".hidden umem_thread",
    ".globl umem_thread",
    ".type umem_thread, @tls_object",
    ".size umem_thread, {bytes}",
    "umem_thread:",
    ".skip {bytes}",
    ".popsection",
    bytes = const size_of::<Thread>(),
);

/// What a thread has; all zeros before its first slow path.
#[repr(C, align(64))]
pub struct Thread {
    /// First: `umastat` finds the magazines where the thread is.
    pub heap: LocalHeap<VALUES>,
    /// Bytes of the objects that fit into its magazines.
    room_bytes: usize,
    /// Classes that ran empty since they last grew.
    missed: u128,
    /// The class to lose its magazine next when the room is used up.
    victim: usize,
    stage: Stage,
    /// Whether a slow path changes the magazines just now.
    is_changing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    /// Zero, as in a thread that starts.
    New = 0,
    Running,
    /// Its destructor ran: what it frees goes to the depots at once.
    Ending,
}

/// Rounds of a magazine when it starts, and at most with a cap of `MOST_CAP`; and what a depot
/// gives at once.
const START_ROUNDS: usize = 32;
const START_BYTES: usize = 4 << 10;
const MOST_ROUNDS: usize = 2048;
const MOST_BYTES: usize = 256 << 10;
const MOST_CAP: usize = 1 << 20;
/// Times that a larger cap makes magazines longer, at most.
const MOST_SCALE: usize = 64;
const BATCH_ROUNDS: usize = 64;
const BATCH_BYTES: usize = 16 << 10;

/// The calling thread.
#[inline(always)]
pub fn current() -> *mut Thread {
    let thread: *mut Thread;
    // SAFETY: reads the thread pointer and the offset of our storage, which never change
    // for a thread.
    unsafe {
        asm!(
            "mov {thread}, qword ptr fs:[0]",
            "add {thread}, qword ptr [rip + umem_thread@GOTTPOFF]",
            thread = out(reg) thread,
            options(pure, nomem, nostack),
        );
    }
    thread
}

impl Thread {
    /// An object from the depot of `class`, with others for the next time.
    #[cold]
    pub fn refill(&mut self, class: SizeClass) -> Option<Round> {
        if !self.is_running() {
            return direct_take(class);
        }
        self.changing(|thread| thread.refill_running(class))
    }

    fn refill_running(&mut self, class: SizeClass) -> Option<Round> {
        self.missed |= 1 << class.index();
        let batch = batch(class);
        if self.magazine(class).capacity() < 2 * batch {
            self.grow(class);
        }
        let magazine = self.magazine(class);
        let count = batch.min(magazine.capacity().div_ceil(2));
        if count == 0 {
            return direct_take(class);
        }
        depots::take(class, count, magazine);
        magazine.pop()
    }

    /// Takes an object back whose magazine is full.
    #[cold]
    pub fn overflow(&mut self, class: SizeClass, object: Round) {
        if !self.is_running() {
            return direct_give(class, object);
        }
        self.changing(|thread| thread.overflow_running(class, object));
    }

    fn overflow_running(&mut self, class: SizeClass, object: Round) {
        let index = class.index();
        let capacity = self.magazine(class).capacity();
        // A magazine that only overflows is another thread's supply: it need not be long.
        if capacity == 0 || self.missed & (1 << index) != 0 {
            self.missed &= !(1 << index);
            self.grow(class);
        }
        let magazine = self.magazine(class);
        if magazine.room() == 0 {
            depots::give(class, magazine.capacity().div_ceil(2), magazine);
        }
        if !magazine.push(object) {
            direct_give(class, object);
        }
    }

    /// The magazine of a class.
    pub fn magazine(&mut self, class: SizeClass) -> &mut Magazine {
        self.heap.magazine_at(class.index())
    }

    /// Does what must not be looked at while it is done.
    fn changing<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.is_changing = true;
        compiler_fence(Ordering::SeqCst);
        let result = work(self);
        compiler_fence(Ordering::SeqCst);
        self.is_changing = false;
        result
    }

    /// Doubles a magazine as far as its class and the thread's cap permit.
    fn grow(&mut self, class: SizeClass) {
        let before = self.magazine(class).capacity();
        let rounds = if before == 0 {
            start(class)
        } else {
            before * 2
        };
        if rounds > most(class) {
            return;
        }
        let more = (rounds - before) * class.bytes();
        let cap = settings::perthread_cache();
        if more > cap {
            return;
        }
        for _ in 0..PLACES {
            if self.room_bytes + more <= cap {
                break;
            }
            self.rob(class);
        }
        let Some(array) = storage::get(rounds.ilog2()).filter(|_| self.room_bytes + more <= cap)
        else {
            return;
        };
        self.room_bytes += more;
        // SAFETY: the array is ours alone and longer than the one before.
        let old = unsafe { self.magazine(class).lend(array, rounds) };
        if let (Some(old), Some(order)) = (NonNull::new(old), before.checked_ilog2()) {
            storage::put(old, order);
        }
    }

    /// Takes the magazine of another class away.
    fn rob(&mut self, spared: SizeClass) {
        self.victim = self.victim % PLACES + 1;
        if let Some(class) = SizeClass::from_index(self.victim)
            && class != spared
        {
            self.unload(class);
        }
    }

    fn unload(&mut self, class: SizeClass) {
        let magazine = self.magazine(class);
        let capacity = magazine.capacity();
        if capacity == 0 {
            return;
        }
        depots::give(class, magazine.len(), magazine);
        // SAFETY: nothing is loaded, so nothing is moved to the empty storage.
        let old = unsafe { magazine.lend(NonNull::dangling(), 0) };
        if let Some(old) = NonNull::new(old) {
            storage::put(old, capacity.ilog2());
        }
        self.room_bytes -= capacity * class.bytes();
    }

    /// Returns everything to the depots.
    pub fn flush(&mut self) {
        SizeClass::all().for_each(|class| self.unload(class));
    }

    /// Returns everything, and keeps nothing from now on: the thread's destructor runs.
    pub fn end(&mut self) {
        self.flush();
        stats::remove_thread(ptr::from_mut(self).addr());
        self.stage = Stage::Ending;
    }

    /// Whether the thread is in the middle of a slow path that changes its magazines.
    pub fn is_changing(&self) -> bool {
        self.is_changing
    }

    #[inline]
    fn is_running(&mut self) -> bool {
        self.stage == Stage::Running || (self.stage == Stage::New && self.start())
    }

    #[cold]
    fn start(&mut self) -> bool {
        options::read();
        self.stage = Stage::Running;
        if settings::perthread_cache() == 0 {
            self.stage = Stage::Ending;
            return false;
        }
        stats::add_thread(ptr::from_mut(self).addr(), settings::perthread_cache());
        ending::register(ptr::from_mut(self));
        true
    }
}

fn start(class: SizeClass) -> usize {
    (START_BYTES / class.bytes())
        .clamp(2, START_ROUNDS)
        .next_power_of_two()
}

fn most(class: SizeClass) -> usize {
    let scale = (settings::perthread_cache() / MOST_CAP).clamp(1, MOST_SCALE);
    let rounds = MOST_BYTES * scale / class.bytes();
    1 << rounds.clamp(4, MOST_ROUNDS * scale).ilog2()
}

fn batch(class: SizeClass) -> usize {
    let rounds = (BATCH_BYTES / class.bytes()).clamp(1, BATCH_ROUNDS);
    match depots::steps(class) {
        0 => rounds,
        steps => (rounds << steps).min(most(class) / 2),
    }
}

/// Fetches one object without a magazine of the thread's.
fn direct_take(class: SizeClass) -> Option<Round> {
    with_single(|single| {
        depots::take(class, 1, single);
        single.pop()
    })
}

fn direct_give(class: SizeClass, object: Round) {
    with_single(|single| {
        single.push(object);
        depots::give(class, 1, single);
    });
}

fn with_single<R>(work: impl FnOnce(&mut Magazine) -> R) -> R {
    let mut array = [const { core::mem::MaybeUninit::<Round>::uninit() }; 1];
    let mut single = Magazine::new();
    // SAFETY: the array lives as long as the magazine.
    unsafe { single.lend(NonNull::from(&mut array).cast(), 1) };
    work(&mut single)
}
