//! What an exit to a hypervisor takes here, as a program can know it.
//!
//! CPUID leaves the guest under each hypervisor that needs exits (Intel SDM volume 3C, 26.1.2; AMD's lets it choose,
//! and KVM does), and is some hundred cycles where there is none. The shortest of a few counts: the others were disturbed.

use std::arch::x86_64::__cpuid;
use std::hint::black_box;

use base::Duration;

use crate::monotonic_nanos;

const MEASURED: usize = 4;

/// Measures it.
pub(crate) fn measure() -> Duration {
    let once = |_| {
        let before = monotonic_nanos();
        black_box(__cpuid(0));
        monotonic_nanos() - before
    };
    Duration::from_nanos((0..MEASURED).map(once).min().unwrap_or(0))
}
