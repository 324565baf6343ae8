//! What the counters of threads and CPUs show.

use base::CpuId;
use task::Thread;

use crate::attributes::Kind;

/// What `thread` has counted since it was made.
pub(super) fn of_thread(thread: &Thread, kind: Kind) -> u64 {
    let (voluntary, forced) = thread.sched.switches();
    let [minor, major] = thread.sched.faults();
    match kind {
        Kind::Clock => thread.cpu_ns(),
        Kind::Faults => minor + major,
        Kind::MinorFaults => minor,
        Kind::MajorFaults => major,
        Kind::Switches => voluntary + forced,
        Kind::Migrations => thread.sched.migrations(),
        Kind::Nothing => 0,
    }
}

/// What `cpu` has counted since it was started.
pub(super) fn of_cpu(cpu: CpuId, kind: Kind) -> u64 {
    let [minor, major] = sched::faults_of(cpu);
    match kind {
        Kind::Clock => mach::time::now().as_nanos(),
        Kind::Faults => minor + major,
        Kind::MinorFaults => minor,
        Kind::MajorFaults => major,
        Kind::Switches => sched::switches_of(cpu),
        Kind::Migrations => sched::migrations_of(cpu),
        Kind::Nothing => 0,
    }
}
