//! What dispatching asks of the machine and of the threads.

use base::lock::Count;
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
}

/// Something that competes for CPUs.
pub trait Thread {
    /// What the word is by which CPUs hear of its place.
    type Count: Count;

    /// What the dispatcher knows of it.
    fn sched(&self) -> &SchedEntity<Self::Count>;
}

/// `others`, which `cpu` is none of: the near ones first, and those that follow `cpu` first among
/// them, so that not all begin with the same one.
pub(crate) fn by_distance(
    others: CpuSet,
    cpu: CpuId,
    machine: &impl Machine,
) -> impl Iterator<Item = CpuId> {
    let near = others.iter_after(cpu);
    let near = near.filter(move |other| machine.are_near(cpu, *other));
    let far = others.iter_after(cpu);
    near.chain(far.filter(move |other| !machine.are_near(cpu, *other)))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Two nodes of two CPUs each.
    struct Nodes;

    impl Machine for Nodes {
        fn here(&self) -> CpuId {
            CpuId(0)
        }

        fn all(&self) -> CpuSet {
            CpuSet::first_of(4)
        }

        fn are_near(&self, one: CpuId, other: CpuId) -> bool {
            one.0 / 2 == other.0 / 2
        }

        fn is_realtime_spent(&self) -> bool {
            false
        }
    }

    #[test]
    fn near_ones_come_first_and_those_that_follow_among_them() {
        let of = |cpu| {
            let others = Nodes.all() - CpuSet::one(CpuId(cpu));
            let others = by_distance(others, CpuId(cpu), &Nodes);
            others.map(|cpu| cpu.0).collect::<Vec<_>>()
        };
        assert_eq!([of(0), of(1)], [[1, 2, 3], [0, 2, 3]]);
        assert_eq!([of(2), of(3)], [[3, 0, 1], [2, 0, 1]]);
    }
}
