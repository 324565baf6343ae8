//! Making all CPUs forget what was taken out of the kernel's own half.
//!
//! The kernel's half is the same in all tables and its entries are global, so `tlb`, which
//! looks after the spaces of programs, never touches it. Taking something out is rare:
//! it happens when memory is short. So there is one number that grows, and each CPU that
//! is behind forgets everything; who asks waits until all have.
//!
//! Why no stale entry stays: the entries are cleared before the number grows, and a CPU
//! reads the number before it forgets.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::cpu::{self, CpuId, MAX_CPUS};

/// Page-global enable: switching it off forgets global entries, and all others.
const CR4_PGE: u64 = 1 << 7;

/// Requests to all CPUs: the kernel's half is the same everywhere.
static WANTED: AtomicU64 = AtomicU64::new(0);
/// How far each CPU has served them.
static SERVED: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// Makes every CPU forget; returns when all have. The caller holds no lock that another
/// CPU could wait for without serving.
pub(super) fn forget_everywhere() {
    let wanted = WANTED.fetch_add(1, SeqCst) + 1;
    serve();
    let me = cpu::id().index();
    let others = || (0..cpu::count()).filter(|&other| other != me);
    for other in others() {
        cpu::request_service(CpuId(other as u32));
    }
    while others().any(|other| SERVED[other].load(SeqCst) < wanted) {
        cpu::relax();
    }
}

/// Does what other CPUs ask of this one; cheap when there is nothing.
#[inline]
pub(super) fn serve() {
    let (wanted, served) = (WANTED.load(SeqCst), &SERVED[cpu::id().index()]);
    if served.load(SeqCst) < wanted {
        let features = arch::instr::read_cr4();
        // SAFETY: the feature is switched off and on again; the kernel runs without it.
        unsafe {
            arch::instr::write_cr4(features & !CR4_PGE);
            arch::instr::write_cr4(features);
        }
        served.store(wanted, SeqCst);
    }
}
