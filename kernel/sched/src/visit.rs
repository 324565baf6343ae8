//! Waiting until every CPU has been in the kernel (membarrier(2)).
//!
//! A CPU counts each interrupt that it took in user mode or idle. The caller kicks the
//! others and waits for their counts to move. A CPU that is in the kernel already takes
//! the kick on its way out. A CPU that itself waits here counts as well, so two callers do not
//! wait for each other.

use core::sync::atomic::{AtomicU64, Ordering};

use base::CpuId;
use mach::cpu::MAX_CPUS;

/// Each CPU's own, read by others that wait for it to come by.
static VISITS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// This CPU took an interrupt.
pub fn note_visit() {
    let visits = &VISITS[mach::cpu::id().index()];
    visits.store(visits.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
}

fn visits() -> [u64; MAX_CPUS] {
    core::array::from_fn(|cpu| VISITS[cpu].load(Ordering::SeqCst))
}

/// Returns once each other CPU has entered the kernel after the call.
pub fn visit_all_cpus() {
    let before = visits();
    let own = mach::cpu::id().index();
    let others = || (0..mach::cpu::count()).filter(|&cpu| cpu != own);
    for cpu in others() {
        mach::cpu::kick(CpuId(cpu as u32));
    }
    while others().any(|cpu| VISITS[cpu].load(Ordering::SeqCst) == before[cpu]) {
        note_visit();
        mach::cpu::relax();
    }
}
