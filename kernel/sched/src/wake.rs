//! Threads that become runnable, and who hears of that.
//!
//! The dispatcher decides where a thread goes and whether somebody makes way. What follows is
//! done here: another CPU is interrupted, or the running thread is to look on its way out.

use alloc::sync::Arc;
use core::cell::Cell;

use base::{CpuId, CpuSet};
use dispatch::{Arrival, Policy, Rank, Wake};
use mach::cpu::PerCpu;

use crate::dispatcher::{DISPATCHER, Here};
use crate::{Entity, Flags, Runnable, alarm, current, profile};

/// Makes `thread` runnable if it is parked, or lets its next park return at once.
pub fn wake(thread: &Arc<Entity>) {
    if mach::profile::records_waits() {
        profile::record_wake(thread);
    }
    match thread.state.wake() {
        Wake::Noted => {}
        Wake::Interrupt => kick(thread.last_cpu()),
        Wake::Enqueue => enqueue(thread.clone()),
    }
}

impl waitq::Thread for Entity {
    fn unpark(self: &Arc<Self>) {
        wake(self);
    }
}

/// Makes `thread` look at its flags soon, whether it waits or runs a program.
pub fn interrupt(thread: &Arc<Entity>) {
    wake(thread);
    if thread.state.is_on_cpu() {
        kick(thread.last_cpu());
    }
}

/// Where this CPU has woken somebody elsewhere, for [`woken_elsewhere`].
static WOKEN_ON: PerCpu<Cell<Option<CpuId>>> = PerCpu::new(|| Cell::new(None));

/// The other CPU on which `act` has woken a thread last, if it has.
pub fn woken_elsewhere<R>(act: impl FnOnce() -> R) -> (R, Option<CpuId>) {
    WOKEN_ON.get().set(None);
    let done = act();
    (done, WOKEN_ON.get().take())
}

/// Interrupts `cpu` if it is another one.
fn kick(cpu: CpuId) {
    if cpu != mach::cpu::id() {
        WOKEN_ON.get().set(Some(cpu));
        mach::cpu::kick(cpu);
    }
}

/// Puts a new thread on a run queue for the first time.
pub fn launch(entity: Arc<Entity>, whole: Arc<dyn Runnable>) {
    entity.keep_whole(whole);
    enqueue(entity);
}

/// Puts a thread that is `Ready` on a queue and sees to it that a CPU notices.
pub(crate) fn enqueue(thread: Arc<Entity>) {
    thread.life.want_cpu(mach::time::now());
    match DISPATCHER.enqueue(thread, &current(), &Here) {
        Arrival::Elsewhere(cpu) => kick(cpu),
        Arrival::Here { preempts } => note_waiting(preempts),
        Arrival::HereIdle => {}
    }
}

/// The same for one that has just made way, and has wanted a CPU for longer. Who came in its place keeps the CPU
/// until its slice ends: if it made way at once in turn, a program that waits for another in a loop of
/// sched_yield(2) could keep that from running at all.
pub(crate) fn queue_behind(thread: Arc<Entity>) {
    match DISPATCHER.enqueue(thread, &current(), &Here) {
        Arrival::Elsewhere(cpu) => kick(cpu),
        Arrival::Here { .. } => alarm::arm_slice(),
        Arrival::HereIdle => {}
    }
}

/// A thread waits for this CPU; whether the running one makes way at once.
fn note_waiting(preempts: bool) {
    if preempts {
        current().set_flags(Flags::RESCHEDULE);
    }
    alarm::arm_slice();
}

/// Another CPU may have put a thread on this one's queue while a program ran here: the
/// program makes way at once, or when its slice ends. A CPU that went idle meanwhile is
/// told, so that it steals.
pub(crate) fn note_arrivals() {
    let Some(preempts) = DISPATCHER.look_for_arrivals(&current(), &Here) else {
        return;
    };
    note_waiting(preempts);
    if let Some(idle) = DISPATCHER.idle_helper(&Here) {
        mach::cpu::kick(idle);
    }
}

/// Gives a thread another policy, and says whether its children start without it.
pub fn set_policy(thread: &Entity, policy: Policy, resets_on_fork: bool) {
    if thread.set_policy(policy, resets_on_fork) {
        note_rank(thread);
    }
}

/// Restricts a thread to these CPUs, from its next switch on; at least one of them exists.
pub fn set_affinity(thread: &Entity, cpus: CpuSet) {
    DISPATCHER.set_affinity(thread, cpus);
}

/// Lends a thread a rank in place of what it was lent before.
pub fn lend(thread: &Entity, rank: Rank) {
    if thread.class.lend(rank) {
        note_rank(thread);
    }
}

/// The thread has got another rank: it moves to its new place, and the CPU that runs it looks
/// whether another one is better now.
fn note_rank(thread: &Entity) {
    if let Some(thread) = DISPATCHER.take_out(thread) {
        return enqueue(thread);
    }
    let cpu = thread.last_cpu();
    if thread.state.is_on_cpu() {
        DISPATCHER.note_running(cpu, thread);
        match cpu == mach::cpu::id() {
            true => note_arrivals(),
            false => mach::cpu::kick(cpu),
        }
    }
}
