//! Virtual run time for real time, by nice value.

use crate::Policy;

/// What [`Policy::Idle`] takes in place of [`VIRTUAL_PER_REAL`]: a three hundredth of nice 0.
const VIRTUAL_PER_REAL_IDLE: u32 = 1024 * 1024 / 3;

/// Nanoseconds of virtual run time for each nanosecond of real time, in 1/1024, by nice
/// value from -20 to 19: each step is a tenth more or less CPU against its neighbour.
const VIRTUAL_PER_REAL: [u32; 40] = virtual_per_real();

const fn virtual_per_real() -> [u32; 40] {
    let mut table = [1024; 40];
    let mut step = 1;
    while step <= 20 {
        table[20 - step] = table[21 - step] * 4 / 5;
        if step < 20 {
            table[20 + step] = table[19 + step] * 5 / 4;
        }
        step += 1;
    }
    table
}

/// The virtual run time of a thread that had the CPU for so long.
pub(crate) fn virtual_ns(real_ns: u64, policy: Policy, nice: i8) -> u64 {
    let index = usize::from((nice + 20).unsigned_abs());
    let factor = match policy {
        Policy::Idle => VIRTUAL_PER_REAL_IDLE,
        // tidy: a nice value lies between -20 and 19.
        _ => VIRTUAL_PER_REAL[index],
    };
    (real_ns / 1024).saturating_mul(u64::from(factor))
}
