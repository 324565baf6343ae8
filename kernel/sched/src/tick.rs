//! What a CPU does when its deadline has passed: timers that are due, a look at the others'
//! queues, and whether the running thread has had its turn.

use core::cell::Cell;

use base::Instant;
use mach::cpu::PerCpu;

use crate::dispatcher::{DISPATCHER, Here};
use crate::softirq::{Softirq, Work, raise, register_softirq};
use crate::timer::{self, Target};
use crate::{Flags, SLICE, alarm, current, dispatcher, halt_poll, runnable, sample, wake};

/// Targets called before the CPU looks at other work.
const BATCH_TIMERS_MAX: usize = 64;

/// When each CPU compares queues again. One that works is interrupted for samples at least.
static NEXT_BALANCE: PerCpu<Cell<Instant>> = PerCpu::new(|| Cell::new(Instant::START));

/// Connects the deadline interrupt; once at boot.
pub fn init() {
    sample::init();
    halt_poll::init();
    register_softirq(
        Softirq::Timer,
        Work {
            run: run_expired,
            look: None,
        },
    );
    mach::time::on_deadline(|| raise(Softirq::Timer));
}

fn run_expired() {
    let now = mach::time::now();
    call_expired(now);
    if NEXT_BALANCE.get().get() <= now {
        NEXT_BALANCE.get().set(now + SLICE);
        DISPATCHER.balance(&Here);
    }
    let me = current();
    if me.class.policy().is_realtime() {
        runnable::check_realtime_limit();
    }
    if dispatcher::is_turn_over(&me, me.life.slice_used(now)) {
        me.set_flags(Flags::RESCHEDULE);
    }
    alarm::arm_slice();
}

fn call_expired(now: Instant) {
    let cpu = mach::cpu::id();
    for _ in 0..BATCH_TIMERS_MAX {
        match timer::pop_expired(cpu, now) {
            Some(Target::Wake(thread)) => wake(&thread),
            Some(Target::Call(object)) => object.expire(now),
            Some(Target::Raise(source)) => raise(source),
            None => break,
        }
    }
}
