//! From the loader to the kernel's `main`: what the machine is, in which order it is set up.

mod loader;
mod map;
mod setup;

pub use map::{MemoryMap, Region, RegionKind, Span};
pub use setup::set_up_cpu;

use base::PhysAddr;

use crate::sync::Once;

/// What the loader told us.
#[derive(Debug)]
pub struct BootInfo {
    /// The kernel's command line.
    pub cmdline: &'static str,
    /// The initial file system's archive; empty if there is none.
    pub initrd: &'static [u8],
    /// Which physical memory there is.
    pub memory: MemoryMap,
    /// Where ACPI's tables begin.
    pub rsdp: Option<PhysAddr>,
}

impl BootInfo {
    /// Whether `word` is one of the command line's words.
    pub fn has_word(&self, word: &str) -> bool {
        self.cmdline
            .split_ascii_whitespace()
            .any(|other| other == word)
    }

    /// Linux' parameter: the APIC is used by its page even where it has MSRs. QEMU needs it to
    /// count instructions (`-icount`): it loses count at an MSR that reads the clock.
    pub(crate) fn allows_x2apic(&self) -> bool {
        !self.has_word("nox2apic")
    }
}

static INFO: Once<BootInfo> = Once::new();
static EMPTY: BootInfo = BootInfo {
    cmdline: "",
    initrd: &[],
    memory: MemoryMap::new(),
    rsdp: None,
};

/// What the loader told us; nothing before the machine is set up.
pub fn info() -> &'static BootInfo {
    INFO.get().unwrap_or(&EMPTY)
}
