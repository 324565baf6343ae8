//! What dispatching asks of the machine and of the threads.

use base::{CpuId, CpuSet};

use crate::SchedEntity;

/// The CPUs, as the one sees them on which something is decided.
pub trait Machine {
    /// The CPU on which it is decided.
    fn here(&self) -> CpuId;

    /// The CPUs that run.
    fn all(&self) -> CpuSet;

    /// Whether memory that is warm for one of these CPUs is near to the other.
    fn are_near(&self, one: CpuId, other: CpuId) -> bool;

    /// Whether real-time threads have had their part of this CPU ([`crate::Budget`]).
    fn is_realtime_spent(&self) -> bool;

    /// One turn of a loop that waits for another CPU.
    fn relax(&self);
}

/// Something that competes for CPUs.
pub trait Thread {
    /// What the dispatcher knows of it.
    fn sched(&self) -> &SchedEntity;
}

/// The other CPUs, the near ones first and those that follow first among them, so that not all
/// begin with the same one.
pub(crate) fn neighbours(machine: &impl Machine, cpu: CpuId) -> impl Iterator<Item = CpuId> {
    let others = machine.all() - CpuSet::one(cpu);
    let near = others.iter_after(cpu);
    let near = near.filter(move |other| machine.are_near(cpu, *other));
    let far = others.iter_after(cpu);
    near.chain(far.filter(move |other| !machine.are_near(cpu, *other)))
}
