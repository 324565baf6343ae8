//! Finding the thread that runs on this CPU in one load, and parts of it from below.

use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;

use crate::cpu::MAX_CPUS;
use crate::sync::Once;

/// Names the running thread of each CPU.
///
/// Invariant **Alive**: a thread that executes code is kept alive by the slot of its CPU,
/// or by whoever [`CurrentSlot::replace`] gave the counted reference to until
/// [`super::Context::switch`] has left the thread's stack. The scheduler is the only one
/// that calls `replace`, and switches right after it.
pub struct CurrentSlot<T> {
    slots: [Cell<*const T>; MAX_CPUS],
}

// SAFETY: each slot is used by its own CPU alone; the `Arc`s in it may move between CPUs.
unsafe impl<T: Send + Sync> Sync for CurrentSlot<T> {}

impl<T> CurrentSlot<T> {
    /// A slot for each CPU, all empty.
    pub const fn new() -> Self {
        Self {
            slots: [const { Cell::new(core::ptr::null()) }; MAX_CPUS],
        }
    }

    #[inline(always)]
    fn slot(&self) -> &Cell<*const T> {
        // SAFETY: CPU numbers are below `MAX_CPUS`; `arch::area::install` demands it.
        unsafe { self.slots.get_unchecked(arch::area::cpu_index()) }
    }

    /// Gives the code that boots this CPU its thread; once on each CPU.
    ///
    /// # Panics
    /// If the CPU has a current thread already.
    pub fn start(&self, thread: Arc<T>) {
        let before = self.slot().replace(Arc::into_raw(thread));
        assert!(before.is_null(), "a CPU starts once");
    }

    /// Names the next thread; gives back the reference to the one that still runs.
    ///
    /// # Panics
    /// If the CPU was not started.
    pub fn replace(&self, next: Arc<T>) -> Arc<T> {
        let before = self.slot().replace(Arc::into_raw(next));
        assert!(!before.is_null(), "a CPU is started before it switches");
        // SAFETY: the pointer came from `Arc::into_raw` and leaves the slot here.
        unsafe { Arc::from_raw(before) }
    }

    /// The running thread.
    ///
    /// Before [`CurrentSlot::start`] there is none and the CPU must not ask.
    #[inline(always)]
    pub fn get(&self) -> Current<T> {
        let thread = self.slot().get();
        debug_assert!(!thread.is_null(), "a CPU has no thread before it starts");
        Current {
            thread,
            stays_on_stack: PhantomData,
        }
    }

    /// The running thread, counted.
    ///
    /// # Panics
    /// If the CPU was not started.
    #[inline]
    pub fn counted(&self) -> Arc<T> {
        let thread = self.slot().get();
        assert!(!thread.is_null(), "a CPU has no thread before it starts");
        // SAFETY: the pointer came from `Arc::into_raw`, and the slot keeps its count.
        unsafe {
            Arc::increment_strong_count(thread);
            Arc::from_raw(thread)
        }
    }

    /// The running thread, or `None` before [`CurrentSlot::start`].
    pub fn try_get(&self) -> Option<Current<T>> {
        let thread = self.slot().get();
        (!thread.is_null()).then_some(Current {
            thread,
            stays_on_stack: PhantomData,
        })
    }
}

impl<T> Default for CurrentSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The running thread, as long as it runs: cheap, copied at will, never sent.
pub struct Current<T> {
    thread: *const T,
    stays_on_stack: PhantomData<*const T>,
}

impl<T> Current<T> {
    /// A part of the running thread, as long as that runs.
    #[inline(always)]
    pub fn part<U>(self, part: impl FnOnce(&T) -> &U) -> Current<U> {
        Current {
            // Alive as long as the whole: the closure knows of no shorter life.
            thread: part(&self),
            stays_on_stack: PhantomData,
        }
    }
}

impl<T> Clone for Current<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Current<T> {}

impl<T> Deref for Current<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: **Alive**, and the handle cannot leave the stack of the thread it names.
        unsafe { &*self.thread }
    }
}

/// A part of the running thread that crates below the threads' own ask for. Whoever makes threads
/// says once, at boot, where it is.
pub struct CurrentPart<T>(Once<fn() -> Current<T>>);

impl<T> CurrentPart<T> {
    /// Not found yet.
    pub const fn new() -> Self {
        Self(Once::new())
    }

    /// Says how it is found. Only the first word counts, as each CPU that boots says the same.
    pub fn find_by(&self, find: fn() -> Current<T>) {
        self.0.call_once(|| find);
    }

    /// The running thread's. Before there are threads there is none and nobody must ask.
    #[inline]
    pub fn get(&self) -> Current<T> {
        match self.0.get() {
            Some(find) => find(),
            None => unreachable!("there are threads before anything runs for one"),
        }
    }
}

impl<T> Default for CurrentPart<T> {
    fn default() -> Self {
        Self::new()
    }
}
