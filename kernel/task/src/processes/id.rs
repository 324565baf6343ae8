//! Numbers of processes and threads: one space, as in Linux.

use mach::sync::Spin;

/// A thread's number; also the number of the process whose first thread it is.
pub type Tid = u32;
/// A process' number.
pub type Pid = u32;

/// Linux's default for /proc/sys/kernel/pid_max.
pub const ID_MAX: u32 = 32_768;

const WORD_BITS: u32 = u64::BITS;

struct Ids {
    /// Bit `id % 64` of word `id / 64` is set while the number is taken; 0 always is.
    used: [u64; (ID_MAX / WORD_BITS) as usize],
    last: u32,
    /// How many were ever given out.
    given: u64,
}

impl Ids {
    /// The first free number in `[from, to)`: a word at a time, as all may be taken.
    fn first_free(&self, from: u32, to: u32) -> Option<u32> {
        let mut at = from;
        while at < to {
            let word = self.used[(at / WORD_BITS) as usize] >> (at % WORD_BITS);
            let free = at + word.trailing_ones();
            if free / WORD_BITS == at / WORD_BITS {
                return Some(free).filter(|&free| free < to);
            }
            at = (at / WORD_BITS + 1) * WORD_BITS;
        }
        None
    }
}

/// Numbers of processes, threads, groups and sessions, which must not meet.
static IDS: Spin<Ids> = Spin::new(Ids {
    used: {
        let mut used = [0; (ID_MAX / WORD_BITS) as usize];
        used[0] = 1;
        used
    },
    last: 0,
    given: 0,
});

/// The next free number after the last one given, so that numbers are not reused soon;
/// `None` when all are taken.
pub fn allocate_id() -> Option<u32> {
    let mut ids = IDS.lock();
    let last = ids.last;
    let after = ids.first_free(last + 1, ID_MAX);
    let id = after.or_else(|| ids.first_free(1, last + 1))?;
    ids.used[(id / WORD_BITS) as usize] |= 1 << (id % WORD_BITS);
    ids.last = id;
    ids.given += 1;
    Some(id)
}

/// Processes and threads that were ever started.
pub fn allocated_ids() -> u64 {
    IDS.lock().given
}

/// Gives a number back once nothing answers to it any more.
pub fn release_id(id: u32) {
    // Number 0, of the threads that boot, is never given.
    if (1..ID_MAX).contains(&id) {
        IDS.lock().used[(id / WORD_BITS) as usize] &= !(1 << (id % WORD_BITS));
    }
}
