//! Each thread's heap, in its thread-local storage.
//!
//! `thread_local!` would call `__tls_get_addr` in a shared library, and `#[thread_local]`
//! needs an unstable compiler. So the storage is defined in assembly and reached with the
//! initial-exec model: the thread's own address (`fs:0`) plus an offset that the dynamic
//! linker wrote down. For this the library must be there when the program starts.

use core::arch::{asm, global_asm};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use slab::{CLASSES, Class, LocalHeap, Round};

use crate::{depots, options, stats, storage};

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
    pub heap: LocalHeap,
    /// Bytes of the objects that fit into its magazines.
    room_bytes: usize,
    /// Classes that ran empty since they last grew.
    missed: u64,
    /// The class to lose its magazine next when the room is used up.
    victim: usize,
    stage: Stage,
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

/// Rounds of a magazine when it starts, and at most; and what a depot gives at once.
const START_ROUNDS: usize = 32;
const START_BYTES: usize = 4 << 10;
const MOST_ROUNDS: usize = 2048;
const MOST_BYTES: usize = 256 << 10;
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
    pub fn refill(&mut self, class: Class) -> Option<Round> {
        if !self.is_running() {
            return direct_take(class);
        }
        let index = class.index();
        self.missed |= 1 << index;
        let batch = batch(class);
        if self.heap.magazine(class).capacity() < 2 * batch {
            self.grow(class);
        }
        let magazine = self.heap.magazine(class);
        let count = batch.min(magazine.capacity().div_ceil(2));
        if count == 0 {
            return direct_take(class);
        }
        depots::take(class, count, magazine);
        magazine.pop()
    }

    /// Takes an object back whose magazine is full.
    #[cold]
    pub fn overflow(&mut self, class: Class, object: Round) {
        if !self.is_running() {
            return direct_give(class, object);
        }
        let index = class.index();
        let capacity = self.heap.magazine(class).capacity();
        // A magazine that only overflows is another thread's supply: it need not be long.
        if capacity == 0 || self.missed & (1 << index) != 0 {
            self.missed &= !(1 << index);
            self.grow(class);
        }
        let magazine = self.heap.magazine(class);
        if magazine.room() == 0 {
            depots::give(class, magazine.capacity().div_ceil(2), magazine);
        }
        if !magazine.push(object) {
            direct_give(class, object);
        }
    }

    /// Doubles a magazine as far as its class and the thread's cap permit.
    fn grow(&mut self, class: Class) {
        let before = self.heap.magazine(class).capacity();
        let rounds = if before == 0 {
            start(class)
        } else {
            before * 2
        };
        if rounds > most(class) {
            return;
        }
        let more = (rounds - before) * class.bytes();
        let cap = options::perthread_cache();
        if more > cap {
            return;
        }
        for _ in 0..CLASSES {
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
        let old = unsafe { self.heap.magazine(class).lend(array, rounds) };
        if let (Some(old), Some(order)) = (NonNull::new(old), before.checked_ilog2()) {
            storage::put(old, order);
        }
    }

    /// Takes the magazine of another class away.
    fn rob(&mut self, spared: Class) {
        self.victim = self.victim % CLASSES + 1;
        if let Some(class) = Class::from_index(self.victim)
            && class != spared
        {
            self.unload(class);
        }
    }

    fn unload(&mut self, class: Class) {
        let magazine = self.heap.magazine(class);
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
        Class::all().for_each(|class| self.unload(class));
    }

    #[inline]
    fn is_running(&mut self) -> bool {
        self.stage == Stage::Running || (self.stage == Stage::New && self.start())
    }

    #[cold]
    fn start(&mut self) -> bool {
        options::read();
        self.stage = Stage::Running;
        if options::perthread_cache() == 0 {
            self.stage = Stage::Ending;
            return false;
        }
        stats::add_thread(ptr::from_mut(self).addr(), options::perthread_cache());
        register(ptr::from_mut(self));
        true
    }
}

fn start(class: Class) -> usize {
    (START_BYTES / class.bytes())
        .clamp(2, START_ROUNDS)
        .next_power_of_two()
}

fn most(class: Class) -> usize {
    1 << (MOST_BYTES / class.bytes()).clamp(4, MOST_ROUNDS).ilog2()
}

fn batch(class: Class) -> usize {
    (BATCH_BYTES / class.bytes()).clamp(1, BATCH_ROUNDS)
}

/// Fetches one object without a magazine of the thread's.
fn direct_take(class: Class) -> Option<Round> {
    with_single(|single| {
        depots::take(class, 1, single);
        single.pop()
    })
}

fn direct_give(class: Class, object: Round) {
    with_single(|single| {
        single.push(object);
        depots::give(class, 1, single);
    });
}

fn with_single<R>(work: impl FnOnce(&mut slab::Magazine) -> R) -> R {
    let mut array = [const { core::mem::MaybeUninit::<Round>::uninit() }; 1];
    let mut single = slab::Magazine::new();
    // SAFETY: the array lives as long as the magazine.
    unsafe { single.lend(NonNull::from(&mut array).cast(), 1) };
    work(&mut single)
}

/// The key whose destructor runs at the end of each thread, plus one.
static KEY: AtomicUsize = AtomicUsize::new(0);
static KEY_MAKERS: AtomicU32 = AtomicU32::new(0);

/// Makes sure that the thread's objects are returned at its end. The C library may call
/// malloc for this; the thread's heap is in use by then as by any other call.
fn register(thread: *mut Thread) {
    if KEY.load(Ordering::Acquire) == 0 && KEY_MAKERS.fetch_add(1, Ordering::AcqRel) == 0 {
        let mut key = 0;
        // SAFETY: `key` is ours, and the destructor has the right type.
        if unsafe { libc::pthread_key_create(&mut key, Some(end)) } == 0 {
            KEY.store(key as usize + 1, Ordering::Release);
        }
    }
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, thread.cast()) };
    }
}

extern "C" fn end(thread: *mut libc::c_void) {
    // SAFETY: **Own**: `register` stored the calling thread's own storage.
    let thread = unsafe { &mut *thread.cast::<Thread>() };
    thread.flush();
    stats::remove_thread(ptr::from_mut(thread).addr());
    thread.stage = Stage::Ending;
}
