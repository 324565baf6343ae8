//! One CPU of the host for everything, while it is to do the same work each second.
//!
//! On several CPUs the host moves QEMU's threads and the client about, and each wake-up of
//! another CPU costs a virtual host an exit to its own: the rate then changes without a cause in
//! the guest. Programs inherit the CPUs of the thread that starts them.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps this thread, and what it starts, on one CPU until it is dropped.
#[derive(Debug)]
pub struct OneCpu(CpuSet);

impl OneCpu {
    /// Takes the last CPU that the thread may use; the first has the host's interrupts.
    ///
    /// Errors: a sentence, if the host refuses.
    pub fn take() -> Result<Self, String> {
        let text = |error: rustix::io::Errno| format!("one CPU for all: {error}");
        let all = sched_getaffinity(None).map_err(text)?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| all.is_set(cpu));
        let mut one = CpuSet::new();
        one.set(last.unwrap_or(0));
        sched_setaffinity(None, &one).map_err(text)?;
        Ok(Self(all))
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        // The thread ran on these CPUs before.
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_cpu_until_the_end() {
        let cpus = || sched_getaffinity(None).map(|set| set.count());
        let before = cpus();
        let one = OneCpu::take().expect("a thread may give CPUs up");
        assert_eq!(cpus(), Ok(1));
        drop(one);
        assert_eq!(cpus(), before);
    }
}
