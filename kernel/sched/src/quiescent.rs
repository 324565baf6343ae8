//! Grace periods: waiting until every CPU has entered the kernel (membarrier(2)).
//!
//! A CPU passes a quiescent state whenever it takes an interrupt in user mode or idle, and
//! counts them. The caller kicks the others and waits for their counts to move. A CPU that is
//! in the kernel already takes the kick on its way out. A CPU that itself waits here counts as
//! well, so two callers do not wait for each other.

use core::sync::atomic::{AtomicU64, Ordering};

use base::CpuId;
use mach::cpu::MAX_CPUS;

/// Each CPU's own, read by others that wait for it to pass another.
static QUIESCENT_STATES: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// This CPU took an interrupt.
pub fn note_quiescent_state() {
    let count = &QUIESCENT_STATES[mach::cpu::id().index()];
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
}

fn counts() -> [u64; MAX_CPUS] {
    core::array::from_fn(|cpu| QUIESCENT_STATES[cpu].load(Ordering::SeqCst))
}

/// Returns once each other CPU has entered the kernel after the call.
pub fn wait_for_grace_period() {
    let before = counts();
    let own = mach::cpu::id().index();
    let others = || (0..mach::cpu::count()).filter(|&cpu| cpu != own);
    for cpu in others() {
        mach::cpu::kick(CpuId(cpu as u32));
    }
    while others().any(|cpu| QUIESCENT_STATES[cpu].load(Ordering::SeqCst) == before[cpu]) {
        note_quiescent_state();
        mach::cpu::relax();
    }
}
