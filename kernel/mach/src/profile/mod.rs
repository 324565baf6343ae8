//! The profiler: what each CPU does, a thousand times a second.
//!
//! The problem: the kernel runs with interrupts closed, so an interrupt would find programs
//! and idle CPUs only. What is sampled must not wait for what is measured.
//!
//! The idea: performance counters, or else a timer of the machine, raise non-maskable interrupts
//! on all CPUs ([`source`]). The handler writes one record into a ring of its CPU ([`rings`]): the
//! kernel's return addresses, found by frame pointers, and the program's registers and the
//! top of its stack, found by walking the page table ([`capture`]). The host copies the
//! rings out of the machine's memory from outside. While nobody profiles, nothing runs.
//!
//! Programs sample themselves and each other as well (perf_event_open(2)): for them the handler
//! writes into another queue, which the kernel empties ([`tap`]). The source runs while the
//! host or a program wants samples ([`demand`]).
//!
//! Where a thread waits and who wakes it is recorded by the scheduler at these moments,
//! into a second ring, while [`records_waits`].
//!
//! What an NMI may interrupt, and what follows for the handler:
//! - any lock: it takes none, and allocates nothing;
//! - the entry code, with the program's GS and stack: it has a stack of its own and sets
//!   GS by MSR (`arch::trap`), and looks for a program's registers only if the stack pointer
//!   lies in a kernel stack, below where they are complete;
//! - a change of page tables: it faults never. It reads the kernel stack in use, which is
//!   mapped, and program memory through the direct map, after it found each table and
//!   page to be RAM. A page that is given back meanwhile yields wrong words, no fault;
//! - a write to the APIC's command register in two halves: what it sends itself needs one half;
//! - `sti; hlt`: an NMI between the two lets interrupts in before the halt, which would then
//!   miss them. The handler takes such a CPU beyond the halt.
//!
//! Invariant **Apart**: the ring of samples is written by the NMI handler of its CPU alone (an
//! NMI does not interrupt another), the ring of events by the CPU's one flow of control.

mod capture;
mod counter;
mod demand;
mod hpet;
mod pit;
mod rings;
mod source;
pub mod tap;

pub use profile::Who;

use core::sync::atomic::{AtomicBool, Ordering};

use profile::{Kind, Mapping, StackDraft, Stamp};

use capture::Program;

use crate::irq::Vector;
use crate::klog;
use crate::sync::Once;

/// Samples a second on each CPU: about a thousand, and no multiple of the scheduler's slices.
pub const HERTZ: u32 = 997;

/// Whether the host profiles waits; it profiles the whole machine.
static WAITS: AtomicBool = AtomicBool::new(false);
/// Said once at boot by who knows threads.
static OBSERVER: Once<fn() -> Observed> = Once::new();

/// What the kernel says of the running thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// The thread.
    pub who: Who,
    /// The thread has something to do on its way back to user mode, which it should not put
    /// off until it happens to enter the kernel.
    pub is_wanted: bool,
}

/// Says whom to ask for the running thread. It is called by the NMI handler as well, so it
/// takes no lock and does not allocate. Once at boot.
pub fn on_sample(observer: fn() -> Observed) {
    OBSERVER.call_once(|| observer);
}

/// Makes the rings, if there are none yet, and starts to sample. `ring_bytes` is for each
/// CPU's samples. Says on the log where the rings are, or what is missing.
pub fn start(ring_bytes: usize) {
    if rings::make(ring_bytes) && !demand::is_host() {
        match demand::add_host() {
            Some(name) => klog!("profile started source={name} hertz={HERTZ}"),
            None => klog!("profile failed reason=source"),
        }
    }
}

/// Makes the rings as [`start`] does, and records waits from now on.
pub fn start_waits(ring_bytes: usize) {
    if rings::make(ring_bytes) {
        WAITS.store(true, Ordering::Release);
        klog!("profile started source=scheduler hertz=0");
    }
}

/// Ends all recording. The rings stay: another CPU may be about to write.
pub fn stop() {
    WAITS.store(false, Ordering::Release);
    demand::remove_host();
    klog!("profile stopped");
}

/// Whether waits and wake-ups are to be recorded.
#[inline(always)]
pub fn records_waits() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// Records that the running thread waited for `nanos`, with its stack as it is.
pub fn record_wait(nanos: u64) {
    record_here(Kind::Blocked, nanos, Program::Included);
}

/// Records that the running thread, or a handler on top of it, woke the thread `woken`.
pub fn record_wake(woken: u32) {
    record_here(Kind::Woken, u64::from(woken), Program::Omitted);
}

fn record_here(kind: Kind, extra: u64, program: Program) {
    let Some(rings) = rings::of_this_cpu() else {
        return;
    };
    if let Some(mut draft) = StackDraft::begin(&rings.events, stamp(kind), observe().who) {
        draft.set_extra(extra);
        capture::here(&mut draft, program);
        draft.finish();
    }
}

/// Records that the bytes of the file `path` from `offset` on are mapped at `start..end` in the
/// running process `pid`.
pub fn record_mapping(pid: u32, start: u64, end: u64, offset: u64, path: &[u8]) {
    let Some(rings) = rings::of_this_cpu() else {
        return;
    };
    let mapping = Mapping {
        pid,
        space: capture::space(),
        start,
        end,
        offset,
        path,
    };
    let cpu = crate::cpu::id().0 as u16;
    profile::write_mapping(&rings.events, cpu, crate::time::cycles(), &mapping);
}

fn stamp(kind: Kind) -> Stamp {
    Stamp {
        kind,
        cpu: crate::cpu::id().0 as u16,
        cycles: crate::time::cycles(),
    }
}

fn observe() -> Observed {
    OBSERVER
        .get()
        .map_or_else(Observed::default, |observer| observer())
}

/// Called by NMI: takes a sample.
pub(crate) fn on_nmi(frame: &mut arch::KernelFrame) {
    let (host, tap) = (demand::is_host(), demand::is_tap());
    if source::on_nmi(host || tap) {
        if host && let Some(rings) = rings::of_this_cpu() {
            sample(frame, &rings.samples);
        }
        if tap && !is_idle(frame) {
            tap::put(frame);
        }
    }
    if frame.rip == arch::instr::halt_address() {
        frame.rip = arch::instr::after_halt();
    }
}

/// A CPU that naps in a wait for a lock halts there, too, but holds interrupts back.
fn is_idle(frame: &arch::KernelFrame) -> bool {
    let halts = [arch::instr::halt_address(), arch::instr::after_halt()];
    halts.contains(&frame.rip) && arch::instr::held_back_interrupts() == 0
}

fn sample(frame: &arch::KernelFrame, ring: &profile::Ring<'static>) {
    let is_idle = is_idle(frame);
    let observed = if is_idle {
        Observed::default()
    } else {
        observe()
    };
    let Some(mut draft) = StackDraft::begin(ring, stamp(Kind::Sample), observed.who) else {
        return;
    };
    if is_idle {
        draft.set_idle();
    } else {
        capture::interrupted(&mut draft, frame);
    }
    draft.finish();
    if observed.is_wanted {
        arch::apic::send_to_self(Vector::KICK.number());
    }
}
