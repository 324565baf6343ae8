//! /proc/iommu: the machine's IOMMUs, the functions behind them, and what was refused to each.
//! The file is not Linux's.

use vfs::pseudo::Entry;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[Entry::new("iommu", ::iommu::write)];
