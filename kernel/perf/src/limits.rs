//! What programs may see, and have of events.

use core::sync::atomic::AtomicU64;

/// Gauges that one thread may have.
pub const GAUGES_MAX: usize = 1024;
/// Gauges that one user may have.
pub const USER_GAUGES_MAX: u64 = 1 << 16;

/// What all rings of one user may have for each CPU, besides what the process may lock
/// (kernel.perf_event_mlock_kb).
pub const USER_RING_KIBIBYTES: u64 = 516;

/// What programs without rights may see (kernel.perf_event_paranoid): their own programs (2), the
/// kernel too (1), all of a CPU (0). The administrator's, for the whole machine.
pub static PARANOID: AtomicU64 = AtomicU64::new(2);
