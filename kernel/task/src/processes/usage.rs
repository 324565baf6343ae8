//! What processes have used.

use core::ops::AddAssign;

use accounting::CpuTime;

use super::Thread;

/// Sums for getrusage(2), times(2) and wait4(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// CPU time: exact in sum, its parts by samples.
    pub cpu: CpuTime,
    /// Switches because the thread waited.
    pub switches_voluntary: u64,
    /// Switches because others had to run.
    pub switches_forced: u64,
    /// Page faults that needed no device.
    pub minor_faults: u64,
    /// Page faults that read a file.
    pub major_faults: u64,
    /// The most memory that was resident, in bytes.
    pub resident_bytes_max: u64,
}

impl Usage {
    /// Of one thread up to now.
    pub fn of_thread(thread: &Thread) -> Self {
        let (switches_voluntary, switches_forced) = thread.sched.switches();
        Self {
            cpu: thread.cpu_time(),
            switches_voluntary,
            switches_forced,
            ..Self::default()
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.switches_voluntary += other.switches_voluntary;
        self.switches_forced += other.switches_forced;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.resident_bytes_max = self.resident_bytes_max.max(other.resident_bytes_max);
    }
}
