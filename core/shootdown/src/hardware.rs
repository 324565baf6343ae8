//! What the protocol asks of a CPU.

use base::CpuId;

use crate::Event;

/// The running CPU's registers and instructions.
pub trait Hardware {
    /// Loads the page table at `root` under `tag` (1 to [`crate::TAGS_MAX`]). With `keep` what is
    /// remembered under the tag stays valid; without, it is forgotten.
    fn load(&self, root: u64, tag: usize, keep: bool);

    /// Loads the kernel's table, which maps nothing for programs, under tag 0.
    fn load_kernel(&self);

    /// Forgets the translation of the page at `address` under the loaded tag.
    fn forget_one(&self, address: u64);

    /// Forgets all translations under the loaded tag.
    fn forget_all(&self);

    /// Makes `cpu` call [`crate::Shootdown::serve`] soon, also if it rests.
    fn interrupt(&self, cpu: CpuId);

    /// Lets time pass in a loop that waits.
    fn pause(&self);

    /// Counts an event `times`.
    fn count(&self, event: Event, times: u64);
}
