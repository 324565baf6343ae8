//! What the dispatcher knows of one thread.

use core::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use base::lock::Count;
use base::{CpuId, CpuSet, SharedCpuSet};

use crate::class::Class;
use crate::policy::{Policy, Rank};
use crate::weight::virtual_ns;
use crate::{SinceWait, ready};

/// On no run queue.
const NO_PLACE: usize = 0;
/// Set in every other place.
const HAS_PLACE: usize = 1 << 31;

/// Where a thread stands on a run queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Whose queue.
    pub cpu: CpuId,
    /// By which rank.
    pub rank: Rank,
    /// Among its equals.
    pub order: i64,
}

/// The dispatcher's part of a thread.
pub struct SchedEntity<C = AtomicUsize> {
    nice: AtomicI8,
    last_cpu: AtomicU32,
    affinity: SharedCpuSet,
    vruntime_ns: AtomicU64,
    /// By which rules it competes.
    pub class: Class,
    /// What it has used without a wait, if it is real-time.
    pub since_wait: SinceWait,
    /// Changed with the queue locked: the CPU and the rank ([`NO_PLACE`] for none), and the order.
    place: C,
    order: AtomicI64,
    /// It may run on other CPUs than that, as far as the queue knows, which counts it.
    is_movable: AtomicBool,
}

impl<C: Count> SchedEntity<C> {
    /// Of a thread that may run on all CPUs, and would on `cpu`.
    pub fn new(cpu: CpuId) -> Self {
        Self {
            nice: AtomicI8::new(0),
            last_cpu: AtomicU32::new(cpu.0),
            affinity: SharedCpuSet::new(CpuSet::ALL),
            vruntime_ns: AtomicU64::new(0),
            class: Class::default(),
            since_wait: SinceWait::default(),
            place: C::default(),
            order: AtomicI64::new(0),
            is_movable: AtomicBool::new(false),
        }
    }

    /// The CPU it runs on or ran on last.
    #[inline]
    pub fn last_cpu(&self) -> CpuId {
        CpuId(self.last_cpu.load(Ordering::Relaxed))
    }

    /// It gets `cpu`; whether that is another than before.
    #[inline]
    pub fn move_to(&self, cpu: CpuId) -> bool {
        let moves = self.last_cpu() != cpu;
        if moves {
            self.last_cpu.store(cpu.0, Ordering::Relaxed);
        }
        moves
    }

    /// The CPUs it may run on.
    pub fn affinity(&self) -> CpuSet {
        self.affinity.load(Ordering::Relaxed)
    }

    /// Restricts it to these CPUs, from its next switch on; at least one of `cpus` exists. Where it
    /// may wait on a queue, that is for [`crate::Dispatcher::set_affinity`].
    pub fn set_affinity(&self, cpus: CpuSet) {
        self.affinity.store(cpus, Ordering::Relaxed);
    }

    /// Whether it may run on `cpu`.
    pub fn allows(&self, cpu: CpuId) -> bool {
        self.affinity.contains(cpu, Ordering::Relaxed)
    }

    /// Notes and says whether it may run on others than `cpu`, whose queue it stands on.
    pub(crate) fn note_mobility(&self, cpu: CpuId) -> bool {
        let is_movable = self.affinity() != CpuSet::one(cpu);
        self.is_movable.store(is_movable, Ordering::Relaxed);
        is_movable
    }

    /// What was noted last.
    pub(crate) fn is_movable(&self) -> bool {
        self.is_movable.load(Ordering::Relaxed)
    }

    /// Its nice value, -20 to 19.
    pub fn nice(&self) -> i8 {
        self.nice.load(Ordering::Relaxed)
    }

    /// Sets the nice value, brought into -20 to 19.
    pub fn set_nice(&self, nice: i8) {
        self.nice.store(nice.clamp(-20, 19), Ordering::Relaxed);
    }

    /// The rank by which it competes.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.class.rank()
    }

    /// Gives it another policy, and says whether its children start without it; whether anything
    /// changed that its place depends on.
    ///
    /// One whose priority sinks goes before its new equals, any other one behind them (sched(7)).
    pub fn set_policy(&self, policy: Policy, resets_on_fork: bool) -> bool {
        let before = self.class.policy();
        self.class.set_resets_on_fork(resets_on_fork);
        if policy == before {
            return false;
        }
        self.class.set_policy(policy);
        if policy.is_realtime() && policy.priority() < before.priority() {
            self.class.keep_place();
        }
        true
    }

    /// A new thread starts with its maker's policy, nice value, affinity and virtual run time;
    /// where the maker asked for it, without what only the maker may.
    pub fn inherit(&self, maker: &Self) {
        let resets = maker.class.resets_on_fork();
        let policy = maker.class.policy();
        let (policy, nice) = match (resets, policy.is_realtime()) {
            (false, _) => (policy, maker.nice()),
            (true, true) => (Policy::Normal, 0),
            (true, false) => (policy, maker.nice().max(0)),
        };
        self.class.set_policy(policy);
        self.set_nice(nice);
        self.set_affinity(maker.affinity());
        self.set_vruntime_ns(maker.vruntime_ns());
    }

    /// It had the CPU for so long.
    pub fn charge(&self, used_ns: u64) {
        if self.rank().is_realtime() {
            self.class.count_round(used_ns);
        } else {
            let virtual_ns = virtual_ns(used_ns, self.class.policy(), self.nice());
            self.set_vruntime_ns(self.vruntime_ns().saturating_add(virtual_ns));
        }
    }

    /// Virtual run time: real time scaled by weight.
    pub fn vruntime_ns(&self) -> u64 {
        self.vruntime_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn set_vruntime_ns(&self, nanos: u64) {
        self.vruntime_ns.store(nanos, Ordering::Relaxed);
    }

    /// Where it stands on a run queue.
    pub fn place(&self) -> Option<Place> {
        self.place_of(self.place.get())
    }

    /// The same for who has changed what a place depends on, and moves the thread if it has one:
    /// who publishes a place later sees the change.
    pub(crate) fn place_after_change(&self) -> Option<Place> {
        // Adds nothing, but is ordered with all other exchanges of the word.
        self.place_of(self.place.add(0))
    }

    fn place_of(&self, bits: usize) -> Option<Place> {
        (bits != NO_PLACE).then(|| Place {
            cpu: CpuId((bits & !HAS_PLACE) as u32 >> 8),
            rank: Rank(bits as u8),
            order: self.order.load(Ordering::Relaxed),
        })
    }

    /// It stands there from now on. What is read afterwards is not older than what was changed before
    /// a look at the place that found none.
    pub(crate) fn publish_place(&self, place: Place) {
        self.order.store(place.order, Ordering::Relaxed);
        let bits = (place.cpu.0 << 8 | u32::from(place.rank.0)) as usize;
        self.place.swap(HAS_PLACE | bits);
    }

    /// It stands on no queue.
    pub(crate) fn clear_place(&self) {
        self.place.set(NO_PLACE);
    }

    /// The key under which it stands at `place`.
    pub(crate) fn key(&self, place: Place) -> ready::Key {
        ready::Key {
            rank: place.rank,
            vruntime_ns: match place.rank.is_realtime() {
                true => 0,
                false => self.vruntime_ns(),
            },
            order: place.order,
        }
    }
}
