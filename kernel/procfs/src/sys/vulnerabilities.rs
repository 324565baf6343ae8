//! /sys/devices/system/cpu/vulnerabilities: what is true of each one here.

use core::fmt::Write;

use mach::speculation::{Vulnerability, report};

use vfs::pseudo::Entry;

/// The file of a vulnerability.
macro_rules! vulnerability {
    ($name:literal, $vulnerability:expr) => {
        Entry::new(
            concat!("devices/system/cpu/vulnerabilities/", $name),
            |text| {
                report($vulnerability, text)?;
                writeln!(text)
            },
        )
    };
}

/// The lines of the table.
pub const ENTRIES: &[Entry] = &[
    vulnerability!("gather_data_sampling", Vulnerability::GatherDataSampling),
    vulnerability!(
        "indirect_target_selection",
        Vulnerability::IndirectTargetSelection
    ),
    vulnerability!("itlb_multihit", Vulnerability::ItlbMultihit),
    vulnerability!("l1tf", Vulnerability::L1tf),
    vulnerability!("mds", Vulnerability::Mds),
    vulnerability!("meltdown", Vulnerability::Meltdown),
    vulnerability!("mmio_stale_data", Vulnerability::MmioStaleData),
    vulnerability!("reg_file_data_sampling", Vulnerability::RegFileDataSampling),
    vulnerability!("retbleed", Vulnerability::Retbleed),
    vulnerability!("spec_rstack_overflow", Vulnerability::SpecRstackOverflow),
    vulnerability!("spec_store_bypass", Vulnerability::SpecStoreBypass),
    vulnerability!("spectre_v1", Vulnerability::SpectreV1),
    vulnerability!("spectre_v2", Vulnerability::SpectreV2),
    vulnerability!("srbds", Vulnerability::Srbds),
    vulnerability!("tsa", Vulnerability::Tsa),
    vulnerability!("tsx_async_abort", Vulnerability::TsxAsyncAbort),
];
