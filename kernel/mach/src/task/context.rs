//! A thread's saved registers, and the switch from one to another.
//!
//! Invariants:
//! - **Parked**: `state` is `PARKED` exactly while no CPU runs on the stack and
//!   `stack_pointer` is where [`Context::switch`] left it (or where a new thread starts).
//!   `switch` takes a context from parked to running by an atomic exchange, so two CPUs
//!   never run on one stack; it becomes parked again only from the next thread's stack.
//! - **Here**: a running context is named by its CPU's area; only that CPU touches the
//!   cells below. A context that is dropped waits until it is parked.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::fpu::Fpu;
use crate::mem::KernelStack;

const PARKED: u32 = 0;
const RUNNING: u32 = 1;

/// One thread's kernel stack and registers.
pub struct Context {
    state: AtomicU32,
    stack_pointer: Cell<u64>,
    /// `None` for the stack that a CPU boots on, which is never freed.
    stack: Option<KernelStack>,
    fs_base: AtomicU64,
    gs_base: AtomicU64,
    fpu: Option<Fpu>,
}

// SAFETY: by **Here** the cells are reached by one CPU at a time.
unsafe impl Send for Context {}
// SAFETY: as above; what others may read is atomic.
unsafe impl Sync for Context {}

impl Context {
    /// A thread that will run `entry(arg)` on a kernel stack of its own; `None` without
    /// memory.
    pub fn new(entry: fn(usize) -> !, arg: usize) -> Option<Self> {
        Self::with_fpu(entry, arg, Fpu::new()?)
    }

    /// The same, with the running thread's vector registers and segment bases (`fork`).
    pub fn fork(entry: fn(usize) -> !, arg: usize) -> Option<Self> {
        let current = current()?;
        let child = Self::with_fpu(entry, arg, current.fpu.as_ref()?.duplicate()?)?;
        child.fs_base.store(current.fs_base(), Ordering::Relaxed);
        child.gs_base.store(current.gs_base(), Ordering::Relaxed);
        Some(child)
    }

    fn with_fpu(entry: fn(usize) -> !, arg: usize, fpu: Fpu) -> Option<Self> {
        let stack = KernelStack::new()?;
        // SAFETY: the stack is new and has room for the first frame.
        let stack_pointer =
            unsafe { arch::switch::prepare(stack.top(), first, entry as usize, arg) };
        Some(Self {
            state: AtomicU32::new(PARKED),
            stack_pointer: Cell::new(stack_pointer),
            stack: Some(stack),
            fs_base: AtomicU64::new(0),
            gs_base: AtomicU64::new(0),
            fpu: Some(fpu),
        })
    }

    /// The context of the code that boots this CPU; it never goes to user mode.
    pub fn boot() -> Self {
        Self {
            state: AtomicU32::new(PARKED),
            stack_pointer: Cell::new(0),
            stack: None,
            fs_base: AtomicU64::new(0),
            gs_base: AtomicU64::new(0),
            fpu: None,
        }
    }

    /// Leaves `prev`, which runs on this CPU, for `next`; returns when somebody switches
    /// back to `prev`, perhaps on another CPU.
    ///
    /// Only the scheduler calls it. Both must stay where they are until then.
    ///
    /// # Panics
    /// If another context runs here. Waits while `next` is still leaving another CPU.
    pub fn switch(prev: &Self, next: &Self) {
        let area = arch::area::this();
        let running = area.context.get();
        assert!(
            running == prev.address() || running == 0,
            "only the running context leaves"
        );
        prev.state.store(RUNNING, Ordering::Relaxed);
        next.claim();
        prev.leave();
        area.previous.set(prev.address());
        next.arrive(area);
        // SAFETY: **Parked**: `next` was parked, so its stack holds a frame that a switch
        // or `prepare` left, and nobody else runs on it.
        unsafe { arch::switch::switch(prev.stack_pointer.as_ptr(), next.stack_pointer.get()) };
        after_switch();
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    fn claim(&self) {
        while self
            .state
            .compare_exchange(PARKED, RUNNING, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            crate::cpu::relax();
        }
    }

    fn leave(&self) {
        if let Some(fpu) = &self.fpu {
            fpu.leave();
            self.fs_base
                .store(arch::switch::fs_base(), Ordering::Relaxed);
            self.gs_base
                .store(arch::switch::user_gs_base(), Ordering::Relaxed);
        }
    }

    fn arrive(&self, area: &arch::CpuArea) {
        area.context.set(self.address());
        if let Some(stack) = &self.stack {
            arch::tables::set_kernel_stack(area, stack.top());
        }
        if let Some(fpu) = &self.fpu {
            let load = fpu.arrive(self.address(), area.id.get());
            let asked = area.return_work.get() & ASKED;
            area.return_work
                .set(if load { asked | LOAD_FPU } else { asked });
            set_bases(
                self.fs_base.load(Ordering::Relaxed),
                self.gs_base.load(Ordering::Relaxed),
            );
        }
    }

    fn is_current(&self) -> bool {
        arch::area::this().context.get() == self.address()
    }

    /// Base of FS in user mode: the thread pointer.
    pub fn fs_base(&self) -> u64 {
        if self.is_current() {
            arch::switch::fs_base()
        } else {
            self.fs_base.load(Ordering::Relaxed)
        }
    }

    /// Base of GS in user mode.
    pub fn gs_base(&self) -> u64 {
        if self.is_current() {
            arch::switch::user_gs_base()
        } else {
            self.gs_base.load(Ordering::Relaxed)
        }
    }

    /// Sets the base of FS; false if the address is not a program's. Takes effect at once
    /// for the running thread, else when a thread that has not run yet starts.
    pub fn set_fs_base(&self, base: u64) -> bool {
        let valid = base >> arch::layout::USER_BITS == 0;
        if valid && self.is_current() {
            // SAFETY: the address is canonical.
            unsafe { arch::switch::set_fs_base(base) };
        } else if valid {
            self.fs_base.store(base, Ordering::Relaxed);
        }
        valid
    }

    /// Sets the base of GS in user mode, as [`Context::set_fs_base`] does FS.
    pub fn set_gs_base(&self, base: u64) -> bool {
        let valid = base >> arch::layout::USER_BITS == 0;
        if valid && self.is_current() {
            // SAFETY: the address is canonical.
            unsafe { arch::switch::set_user_gs_base(base) };
        } else if valid {
            self.gs_base.store(base, Ordering::Relaxed);
        }
        valid
    }
}

/// Loads the segment bases of a thread that arrives. Hardly any program uses GS, and
/// writing its base is slow, so it is compared first.
fn set_bases(fs: u64, gs: u64) {
    // SAFETY: both are canonical: they were checked when set, or read from the registers.
    unsafe {
        arch::switch::set_fs_base(fs);
        if arch::switch::user_gs_base() != gs {
            arch::switch::set_user_gs_base(gs);
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        assert!(
            !self.is_current(),
            "a running thread is never freed by itself"
        );
        while *self.state.get_mut() != PARKED {
            crate::cpu::relax();
        }
    }
}

/// Runs first on the stack of the thread that comes.
fn after_switch() {
    let previous = arch::area::this().previous.replace(0) as *const Context;
    // SAFETY: `switch` put a reference there that the thread which left still holds on its
    // stack; its owner cannot free it before this store (see `drop`).
    unsafe { (*previous).state.store(PARKED, Ordering::Release) };
}

/// Where a new thread begins.
extern "C" fn first(entry: usize, arg: usize) -> ! {
    after_switch();
    // SAFETY: `with_fpu` stored a function of this type.
    let entry = unsafe { core::mem::transmute::<usize, fn(usize) -> !>(entry) };
    entry(arg)
}

fn current() -> Option<&'static Context> {
    let context = arch::area::this().context.get() as *const Context;
    // SAFETY: **Here**: the area names the running context, which outlives this call.
    unsafe { context.as_ref() }
}

/// Runs `act` on the vector registers of the running thread and its context's address.
pub(super) fn with_current_fpu<R>(act: impl FnOnce(&Fpu, usize) -> R) -> R {
    let fpu = current().and_then(|context| Some((context.fpu.as_ref()?, context.address())));
    match fpu {
        Some((fpu, owner)) => act(fpu, owner),
        None => unreachable!("a thread without vector registers runs no program"),
    }
}

/// Reasons for a system call to return by the long way (`CpuArea::return_work`): the
/// vector registers are not in the CPU.
pub(super) const LOAD_FPU: u32 = 1;
/// Somebody asked for it.
const ASKED: u32 = 2;

/// Makes [`crate::trap::Kernel::leave`] run before this CPU goes back to user mode, for
/// whatever thread that may be. Once too often does no harm.
#[inline]
pub fn look_before_user() {
    let area = arch::area::this();
    area.return_work.set(area.return_work.get() | ASKED);
}

/// [`crate::trap::Kernel::leave`] looks now: whoever asks from here on is not heard yet.
#[inline]
pub fn begin_look() {
    let area = arch::area::this();
    area.return_work.set(area.return_work.get() & !ASKED);
}

/// Loads what user mode needs and the kernel does not.
pub(crate) fn before_user_mode() {
    let area = arch::area::this();
    let work = area.return_work.get();
    area.return_work.set(work & !LOAD_FPU);
    if work & LOAD_FPU != 0
        && let Some(context) = current()
        && let Some(fpu) = &context.fpu
    {
        fpu.load(context.address());
    }
}
