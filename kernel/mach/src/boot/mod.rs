//! What the loader says of the machine: memory, archives, the command line.

mod cmdline;
mod loader;

pub use cmdline::CommandLine;

use core::ops::Range;

use ::acpi::Root;
use bootinfo::MemoryMap;

use crate::sync::Once;

/// Archives that a loader may load.
const ARCHIVES_MAX: usize = 8;

/// What the loader told us.
#[derive(Debug)]
pub struct BootInfo {
    cmdline: CommandLine,
    archives: [&'static [u8]; ARCHIVES_MAX],
    archive_count: usize,
    /// Which physical memory there is.
    pub(crate) memory: MemoryMap,
    /// Where ACPI's tables begin.
    pub(crate) acpi: Option<Root>,
}

impl BootInfo {
    const fn new() -> Self {
        Self {
            cmdline: CommandLine::EMPTY,
            archives: [&[]; ARCHIVES_MAX],
            archive_count: 0,
            memory: MemoryMap::new(),
            acpi: None,
        }
    }

    /// The kernel's command line.
    pub fn cmdline(&self) -> &str {
        self.cmdline.text()
    }

    /// The archives of the initial file system, in the loader's order.
    pub fn archives(&self) -> &[&'static [u8]] {
        &self.archives[..self.archive_count]
    }

    /// The physical addresses that the firmware says are something: RAM, its own, devices.
    pub fn claimed(&self) -> impl Iterator<Item = Range<u64>> {
        self.memory.listed().map(|span| span.start.0..span.end().0)
    }

    /// Whether `word` is one of the command line's words.
    pub fn has_word(&self, word: &str) -> bool {
        self.cmdline()
            .split_ascii_whitespace()
            .any(|other| other == word)
    }

    /// Linux's parameter: the APIC is used by its page even where it has MSRs. QEMU needs it to
    /// count instructions (`-icount`): it loses count at an MSR that reads the clock.
    pub(crate) fn allows_x2apic(&self) -> bool {
        !self.has_word("nox2apic")
    }
}

/// Reads what the loader left; once, on the boot tables.
///
/// # Safety
/// `door` and `address` are what the entry code found, and nobody has touched what they name.
pub(crate) unsafe fn init(door: u64, address: u64) -> &'static BootInfo {
    // SAFETY: the caller vouches for both.
    INFO.call_once(|| unsafe { loader::read(door, address) })
}

/// What this machine's loader left, read once.
static INFO: Once<BootInfo> = Once::new();
/// A constant: what there is before the loader's is read.
static EMPTY: BootInfo = BootInfo::new();

/// What the loader told us; nothing before the machine is set up.
pub fn info() -> &'static BootInfo {
    INFO.get().unwrap_or(&EMPTY)
}
