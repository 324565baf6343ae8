//! Resource limits of a process.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// What can be limited; the order is Linux's own (`RLIMIT_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are Linux's own")]
pub enum Resource {
    CpuSeconds,
    FileBytes,
    DataBytes,
    StackBytes,
    CoreBytes,
    ResidentBytes,
    Processes,
    Files,
    LockedBytes,
    AddressBytes,
    FileLocks,
    PendingSignals,
    MessageQueueBytes,
    Nice,
    RealtimePriority,
    RealtimeMicros,
}

const COUNT: usize = 16;

impl Resource {
    const ALL: [Self; COUNT] = [
        Self::CpuSeconds,
        Self::FileBytes,
        Self::DataBytes,
        Self::StackBytes,
        Self::CoreBytes,
        Self::ResidentBytes,
        Self::Processes,
        Self::Files,
        Self::LockedBytes,
        Self::AddressBytes,
        Self::FileLocks,
        Self::PendingSignals,
        Self::MessageQueueBytes,
        Self::Nice,
        Self::RealtimePriority,
        Self::RealtimeMicros,
    ];

    /// The resource of Linux's number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// What the first program starts with: (soft, hard).
    const fn initial(self) -> (u64, u64) {
        match self {
            Self::StackBytes => (8 << 20, UNLIMITED),
            Self::CoreBytes => (0, UNLIMITED),
            Self::Processes => (16_384, 16_384),
            Self::Files => (65_536, 1_048_576),
            Self::LockedBytes => (8 << 20, 8 << 20),
            Self::PendingSignals => (4096, 4096),
            Self::MessageQueueBytes => (819_200, 819_200),
            Self::Nice | Self::RealtimePriority => (0, 0),
            _ => (UNLIMITED, UNLIMITED),
        }
    }
}

/// What is limited for some process, or was: bit n for resource n. It is the machine's and only
/// grows, so that what nobody limits is checked by one load.
static LIMITED: AtomicU32 = AtomicU32::new(limited_at_first());

/// tidy: it runs at compile time only.
const fn limited_at_first() -> u32 {
    let (mut bits, mut at) = (0, 0);
    while at < COUNT {
        if Resource::ALL[at].initial().0 != UNLIMITED {
            bits |= 1 << at;
        }
        at += 1;
    }
    bits
}

/// Whether any process has had a limit for this.
#[inline]
pub(crate) fn is_limited(resource: Resource) -> bool {
    LIMITED.load(Ordering::Relaxed) & 1 << resource as u32 != 0
}

/// The limit of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// In force.
    pub soft: u64,
    /// The most that `soft` may become.
    pub hard: u64,
}

type Values = [AtomicU64; COUNT];

/// All limits of a process; reading one is a plain load.
pub struct Limits {
    soft: Values,
    hard: Values,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            soft: Resource::ALL.map(|resource| AtomicU64::new(resource.initial().0)),
            hard: Resource::ALL.map(|resource| AtomicU64::new(resource.initial().1)),
        }
    }
}

impl Limits {
    /// The limit in force.
    pub fn soft(&self, resource: Resource) -> u64 {
        of(&self.soft, resource).load(Ordering::Relaxed)
    }

    /// Both limits.
    pub fn get(&self, resource: Resource) -> Limit {
        let hard = of(&self.hard, resource).load(Ordering::Relaxed);
        Limit {
            soft: self.soft(resource),
            hard,
        }
    }

    /// Sets both limits; the caller has checked that it may.
    pub fn set(&self, resource: Resource, limit: Limit) {
        if limit.soft != UNLIMITED {
            LIMITED.fetch_or(1 << resource as u32, Ordering::Relaxed);
        }
        of(&self.soft, resource).store(limit.soft, Ordering::Relaxed);
        of(&self.hard, resource).store(limit.hard, Ordering::Relaxed);
    }

    /// A copy for a forked process.
    pub fn fork(&self) -> Self {
        let copy = |from: &Values| {
            from.each_ref()
                .map(|value| AtomicU64::new(value.load(Ordering::Relaxed)))
        };
        Self {
            soft: copy(&self.soft),
            hard: copy(&self.hard),
        }
    }
}

/// tidy: there is a value for each resource.
fn of(values: &Values, resource: Resource) -> &AtomicU64 {
    &values[resource as usize]
}
