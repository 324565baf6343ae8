//! /sys/devices/system/cpu/vulnerabilities: what is true of each flaw of the processor here.

use core::fmt::Write;

use mach::speculation::{Flaw, report};

use vfs::pseudo::Entry;

/// The file of a flaw.
macro_rules! flaw {
    ($name:literal, $flaw:expr) => {
        Entry::new(
            concat!("devices/system/cpu/vulnerabilities/", $name),
            |text| {
                report($flaw, text)?;
                writeln!(text)
            },
        )
    };
}

/// The lines of the table.
pub const ENTRIES: &[Entry] = &[
    flaw!("gather_data_sampling", Flaw::GatherDataSampling),
    flaw!("indirect_target_selection", Flaw::IndirectTargetSelection),
    flaw!("itlb_multihit", Flaw::ItlbMultihit),
    flaw!("l1tf", Flaw::L1tf),
    flaw!("mds", Flaw::Mds),
    flaw!("meltdown", Flaw::Meltdown),
    flaw!("mmio_stale_data", Flaw::MmioStaleData),
    flaw!("reg_file_data_sampling", Flaw::RegFileDataSampling),
    flaw!("retbleed", Flaw::Retbleed),
    flaw!("spec_rstack_overflow", Flaw::SpecRstackOverflow),
    flaw!("spec_store_bypass", Flaw::SpecStoreBypass),
    flaw!("spectre_v1", Flaw::SpectreV1),
    flaw!("spectre_v2", Flaw::SpectreV2),
    flaw!("srbds", Flaw::Srbds),
    flaw!("tsa", Flaw::Tsa),
    flaw!("tsx_async_abort", Flaw::TsxAsyncAbort),
];
