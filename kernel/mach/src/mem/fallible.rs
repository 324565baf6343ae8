//! Allocations that are refused rather than end the machine.
//!
//! The problem: `push`, `Box::new` and their kin cannot say no, so a heap with nothing left
//! can only panic; and what a program may choose the size or the number of would sooner or
//! later bring it there.
//!
//! The idea: such memory is asked for here first. [`reserve`] runs a `try_reserve` during which
//! the heap leaves the reserve to those who cannot do without (`ram`), and says no instead.
//! `Box` and `Arc` have no constructor that fails; [`room_for`] takes an object of their
//! class and gives it back, so that it lies on this CPU's magazine when the constructor asks:
//! nothing runs in between.
//!
//! A thread may ask that its n-th such allocation from now on fails (Linux's `fail-nth`):
//! `task` counts, and installs [`set_injector`]. While nobody has asked it costs
//! one load. Frames of programs (`Page`, page tables) are asked for here as well.
//!
//! Invariant: nothing blocks within `refusable`: the mark belongs to the CPU.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::cpu::{Own, Private, own};
use crate::sync::Once;

/// There is not enough memory, the reserve left out.
pub use base::NoMemory;

/// The kernel's heap, for the mechanisms of `core/`.
#[derive(Debug)]
pub struct Heap;

impl base::Memory for Heap {
    #[inline]
    fn reserve<E>(grow: impl FnOnce() -> Result<(), E>) -> Result<(), NoMemory> {
        reserve(grow)
    }
}

/// Whether what this CPU allocates now can be refused.
static REFUSABLE: Own<Private<bool>> = own!(Private<bool>, Private::new(false));
/// Before `cpu` is started.
pub(super) fn add_cpu(cpu: base::CpuId) {
    REFUSABLE.prepare(cpu);
}

/// Threads with an allocation that is to fail. Allocations look here, and the heap is one.
static ARMED: AtomicU32 = AtomicU32::new(0);
/// Whether the running thread's next allocation is to fail. Said once at boot by who keeps threads.
static INJECTOR: Once<fn() -> bool> = Once::new();

/// Says who counts the allocations of threads that asked for a failure.
pub fn set_injector(is_to_fail: fn() -> bool) {
    INJECTOR.call_once(|| is_to_fail);
}

/// One more thread asked that an allocation of its own fails.
pub fn arm() {
    ARMED.fetch_add(1, Relaxed);
}

/// A thread that asked no longer waits for its failure.
pub fn disarm() {
    ARMED.fetch_sub(1, Relaxed);
}

/// Whether this allocation may be tried; counted as one.
#[inline(always)]
pub(super) fn is_admitted() -> bool {
    ARMED.load(Relaxed) == 0 || is_admitted_by_injector()
}

#[cold]
#[inline(never)]
fn is_admitted_by_injector() -> bool {
    INJECTOR.get().is_none_or(|is_to_fail| !is_to_fail())
}

/// Whether what this CPU allocates now must leave the reserve alone.
#[inline]
pub(super) fn is_refusable() -> bool {
    REFUSABLE.with(|mark| *mark)
}

fn refusable<T>(work: impl FnOnce() -> T) -> T {
    let before = REFUSABLE.with(|mark| core::mem::replace(mark, true));
    let result = work();
    REFUSABLE.with(|mark| *mark = before);
    result
}

/// Runs a `try_reserve` that leaves the kernel's reserve alone. It must not block.
#[inline]
pub fn reserve<E>(grow: impl FnOnce() -> Result<(), E>) -> Result<(), NoMemory> {
    match is_admitted() {
        true => refusable(grow).map_err(|_| NoMemory),
        false => Err(NoMemory),
    }
}

/// Sees to it that the next object of `T`'s size on this CPU is there. Between this and the
/// constructor nothing may block or allocate.
#[inline]
pub fn room_for<T>() -> Result<(), NoMemory> {
    reserve(|| Vec::<T>::new().try_reserve_exact(1))
}

/// What an `Arc` allocates: its two counts, and the value.
#[repr(C)]
struct Counted<T>(usize, usize, T);

/// As [`room_for`], for an `Arc` of `T`.
#[inline]
pub fn room_for_arc<T>() -> Result<(), NoMemory> {
    room_for::<Counted<T>>()
}

/// `Box::new` that may be refused.
#[inline]
pub fn boxed<T>(value: T) -> Result<Box<T>, NoMemory> {
    room_for::<T>()?;
    Ok(Box::new(value))
}

/// `Arc::new` that may be refused.
#[inline]
pub fn arc<T>(value: T) -> Result<Arc<T>, NoMemory> {
    room_for_arc::<T>()?;
    Ok(Arc::new(value))
}

/// An empty `Vec` with room for `count` elements.
pub fn vec<T>(count: usize) -> Result<Vec<T>, NoMemory> {
    let mut vec = Vec::new();
    reserve(|| vec.try_reserve_exact(count))?;
    Ok(vec)
}

/// `count` bytes of zeros.
pub fn zeroed(count: usize) -> Result<Vec<u8>, NoMemory> {
    let mut bytes = vec(count)?;
    bytes.resize(count, 0);
    Ok(bytes)
}

/// `to_vec` that may be refused.
pub fn copied<T: Clone>(from: &[T]) -> Result<Vec<T>, NoMemory> {
    let mut copy = vec(from.len())?;
    copy.extend_from_slice(from);
    Ok(copy)
}

/// `collect` into a `Vec` that may be refused, element by element.
pub fn collected<T>(from: impl Iterator<Item = T>) -> Result<Vec<T>, NoMemory> {
    let mut all = vec(from.size_hint().0)?;
    for one in from {
        all.try_push(one)?;
    }
    Ok(all)
}

/// Collections that grow only after they were asked whether they can.
pub trait TryGrow {
    /// Makes room for `more` elements or bytes beyond those that are there.
    fn make_room(&mut self, more: usize) -> Result<(), NoMemory>;
}

impl<T> TryGrow for Vec<T> {
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<(), NoMemory> {
        if self.capacity() - self.len() >= more {
            return Ok(());
        }
        reserve(|| self.try_reserve(more))
    }
}

impl<T> TryGrow for VecDeque<T> {
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<(), NoMemory> {
        if self.capacity() - self.len() >= more {
            return Ok(());
        }
        reserve(|| self.try_reserve(more))
    }
}

impl TryGrow for String {
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<(), NoMemory> {
        reserve(|| self.try_reserve(more))
    }
}

/// `push` that may be refused; the element is dropped then.
pub trait TryPush<T> {
    /// Adds an element at the end.
    fn try_push(&mut self, element: T) -> Result<(), NoMemory>;
}

impl<T> TryPush<T> for Vec<T> {
    #[inline]
    fn try_push(&mut self, element: T) -> Result<(), NoMemory> {
        self.make_room(1)?;
        self.push(element);
        Ok(())
    }
}

impl<T> TryPush<T> for VecDeque<T> {
    #[inline]
    fn try_push(&mut self, element: T) -> Result<(), NoMemory> {
        self.make_room(1)?;
        self.push_back(element);
        Ok(())
    }
}
