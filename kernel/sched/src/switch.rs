//! Leaving a CPU, and coming back to it.
//!
//! A switch hands the thread that leaves to the one that comes: only there, on another
//! stack and with the registers saved, may it be queued again or freed
//! ([`finish_switch`]).

use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use base::{CpuId, Instant};
use dispatch::OffCpu;
use mach::cpu::PerCpu;
use mach::profile::tap;

use crate::current::CURRENT;
use crate::dispatcher::{DISPATCHER, Here, next};
use crate::entity::Leave;
use crate::life::Found;
use crate::{
    Entity, alarm, current, current_counted, dispatcher, idle, preempt_off, profile, runnable,
    sample, timer, wake,
};

/// Each CPU's own: who ran before, until its registers are saved.
static PREVIOUS: PerCpu<Cell<Option<Arc<Entity>>>> = PerCpu::new(|| Cell::new(None));
/// Switches of each CPU.
static SWITCHES: PerCpu<AtomicU64> = PerCpu::new(AtomicU64::default);

/// Context switches of all CPUs.
pub fn switch_count() -> u64 {
    let cpus = (0..mach::cpu::count() as u32).map(CpuId);
    cpus.map(switches_of).sum()
}

/// Context switches of one.
pub fn switches_of(cpu: CpuId) -> u64 {
    SWITCHES.of(cpu).load(Ordering::Relaxed)
}

/// Blocks the current thread until [`crate::wake`] or `deadline`; false at the deadline.
///
/// Returns at once if a wake-up came since the last park. May return for no reason.
pub fn park_until(deadline: Instant) -> bool {
    if tap::is_open() && tap::is_filled() {
        runnable::give_samples();
    }
    if mach::profile::records_waits() {
        return profile::record_park(|| park(deadline));
    }
    park(deadline)
}

fn park(deadline: Instant) -> bool {
    let me = current();
    if !me.state.begin_park() {
        return true;
    }
    match wait_for_end(&me, deadline) {
        End::Next(next) => leave_to(next, deadline),
        End::Woken => {
            go_on(&me);
            true
        }
        End::Deadline => {
            go_on(&me);
            false
        }
    }
}

/// What ends a wait in place.
enum End {
    /// A thread is ready; it may be the one that waits.
    Next(Arc<Entity>),
    Woken,
    Deadline,
}

#[inline]
fn wait_for_end(me: &Entity, deadline: Instant) -> End {
    let cpu = mach::cpu::id();
    let mut has_space = true;
    let end = loop {
        // Who has something to do itself takes nothing from other CPUs.
        if me.state.is_awakened() && !dispatcher::is_wanted(cpu) {
            break End::Woken;
        }
        if let Some(next) = next() {
            break End::Next(next);
        }
        if me.state.is_awakened() {
            break End::Woken;
        }
        if deadline != Instant::NEVER && mach::time::now() >= deadline {
            break End::Deadline;
        }
        has_space &= idle::wait_in_place(cpu, deadline);
        me.look_at_flags();
    };
    if !has_space {
        runnable::activate_space();
    }
    end
}

/// The wait in place is over.
fn go_on(me: &Entity) {
    me.state.run();
    me.count_switch(Leave::ToWait);
    alarm::arm_to_work();
}

fn leave_to(next: Arc<Entity>, deadline: Instant) -> bool {
    if deadline == Instant::NEVER {
        switch_to(next, Leave::ToWait);
        return true;
    }
    let alarm = timer::add(deadline, timer::Target::Wake(current_counted()));
    switch_to(next, Leave::ToWait);
    timer::cancel(alarm)
}

/// Lets another runnable thread go first, if there is one that this one makes way for.
pub fn yield_now() {
    if let Some(next) = DISPATCHER.next_instead_of(&current(), &Here) {
        switch_to(next, Leave::ToOthers);
    }
}

/// Lets another runnable thread go first, whichever there is.
pub(crate) fn make_way() {
    if let Some(next) = next() {
        switch_to(next, Leave::ToOthers);
    }
}

/// Ends the current thread; whatever it owned must be released already.
pub fn exit() -> ! {
    let me = current();
    let cpu = mach::cpu::id();
    me.state.end();
    loop {
        match next() {
            Some(next) => switch_to(next, Leave::ToWait),
            None => _ = idle::wait_in_place(cpu, Instant::NEVER),
        }
    }
}

/// Gives this CPU to the threads; its boot code, which is a thread already, only waits.
pub fn run() -> ! {
    dispatcher::note_start();
    preempt_off::start();
    loop {
        park_until(Instant::NEVER);
    }
}

fn switch_to(next: Arc<Entity>, why: Leave) {
    let me = current();
    if core::ptr::eq(&*next, &*me) {
        me.state.run();
        return;
    }
    let now = mach::time::now();
    sample::take(now, Found::Kernel);
    me.end_slice(now, why);
    me.count_switch(why);
    SWITCHES.get().fetch_add(1, Ordering::Relaxed);
    next.begin_slice(now, mach::cpu::id());
    DISPATCHER.note_running(mach::cpu::id(), &next);
    alarm::arm_to_work();
    preempt_off::switch(&me.cause, &next.cause);
    me.keep_whole(next.take_whole().take_cpu());
    PREVIOUS.get().set(Some(CURRENT.replace(next)));
    // No counted reference stays on this stack: a dead thread never comes back to drop it.
    mach::task::Context::switch(&me.context, &current().context);
    finish_switch();
    me.note_switch();
    me.look_at_flags();
}

/// Runs first on the stack of the thread that comes: disposes of the one that left.
/// A new thread calls it before anything else.
#[inline]
pub fn finish_switch() {
    let Some(previous) = PREVIOUS.get().take() else {
        return;
    };
    match previous.state.leave_cpu() {
        OffCpu::Over => drop(previous.take_whole()),
        OffCpu::Waits => {}
        OffCpu::Woken => wake::enqueue(previous),
        OffCpu::MadeWay => wake::queue_behind(previous),
    }
}
