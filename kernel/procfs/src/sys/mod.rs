//! /sys: the few facts about the machine that server programs look for (sysfs(5)).

pub mod block;
mod iommu_groups;
mod node;
mod nvme;
mod pci;
mod vulnerabilities;

use alloc::sync::Arc;
use core::fmt::{Result, Write};

use mach::sync::Once;
use mm::LargePolicy;

use vfs::pseudo::{Directory, Entry, Table, Text, write_list};
use vfs::{FileSystem, InodeRef, Usage, next_device};

/// Linux's number of sysfs (statfs(2)).
const MAGIC: u64 = 0x6265_6572;

/// What the crates of the kernel add at boot; what a file shows is made when it is read.
static TABLE: Table = Table::new();

const ENTRIES: &[Entry] = &[
    // PERF_TYPE_SOFTWARE.
    Entry::new("bus/event_source/devices/software/type", |text| {
        writeln!(text, "1")
    }),
    Entry::new(
        "devices/system/clocksource/clocksource0/available_clocksource",
        clock,
    ),
    Entry::new(
        "devices/system/clocksource/clocksource0/current_clocksource",
        clock,
    ),
    Entry::new("devices/system/cpu/online", cpus),
    Entry::new("devices/system/cpu/possible", cpus),
    Entry::new("devices/system/cpu/present", cpus),
    Entry::new("devices/system/cpu/kernel_max", last_cpu),
    Entry::new("devices/system/cpu/cpu0/topology/core_id", zero),
    Entry::new("devices/system/cpu/cpu0/topology/physical_package_id", zero),
    Entry::new(
        "devices/system/cpu/cpu0/cache/index0/coherency_line_size",
        line_bytes,
    ),
    Entry {
        path: "kernel/mm/transparent_hugepage/enabled",
        generate: large_pages,
        store: Some(set_large_pages),
    },
    Entry::new(
        "kernel/mm/transparent_hugepage/hpage_pmd_size",
        huge_page_bytes,
    ),
];

/// Adds which functions the IOMMU tells from others and programs may drive: once, after the
/// drivers were started.
pub fn add_iommu_groups() {
    TABLE.add_specials(&iommu_groups::links());
    TABLE.add_specials(&iommu_groups::files());
}

/// Adds files; paths are below /sys, without a leading slash.
pub fn add(entries: &[Entry]) {
    TABLE.add(entries);
}

fn clock(text: &mut Text) -> Result {
    writeln!(text, "tsc")
}

fn cpus(text: &mut Text) -> Result {
    write_list(text, 0..mach::cpu::count())
}

fn last_cpu(text: &mut Text) -> Result {
    writeln!(text, "{}", mach::cpu::MAX_CPUS - 1)
}

fn zero(text: &mut Text) -> Result {
    writeln!(text, "0")
}

fn line_bytes(text: &mut Text) -> Result {
    writeln!(text, "64")
}

/// The names of the policies, with the current one in brackets.
fn large_pages(text: &mut Text) -> Result {
    let current = LargePolicy::current();
    for (index, (name, policy)) in LARGE_POLICIES.into_iter().enumerate() {
        let gap = if index == 0 { "" } else { " " };
        match policy == current {
            true => write!(text, "{gap}[{name}]")?,
            false => write!(text, "{gap}{name}")?,
        }
    }
    writeln!(text)
}

const LARGE_POLICIES: [(&str, LargePolicy); 3] = [
    ("always", LargePolicy::Always),
    ("madvise", LargePolicy::OnAdvice),
    ("never", LargePolicy::Never),
];

fn set_large_pages(text: &[u8]) -> sync::Result<()> {
    let word = text.trim_ascii();
    let named = |(name, _): &&(&str, LargePolicy)| name.as_bytes() == word;
    let (_, policy) = LARGE_POLICIES
        .iter()
        .find(named)
        .ok_or(sync::Error::Invalid)?;
    policy.set();
    Ok(())
}

fn huge_page_bytes(text: &mut Text) -> Result {
    writeln!(text, "{}", 2 << 20)
}

struct Sysfs {
    device: u64,
}

impl FileSystem for Sysfs {
    fn kind(&self) -> &'static str {
        "sysfs"
    }

    fn root(&self) -> InodeRef {
        Arc::new(Directory::new(&TABLE, self.device, ""))
    }

    fn usage(&self) -> Usage {
        Usage {
            magic: MAGIC,
            block_bytes: base::PAGE_BYTES as u64,
            ..Usage::default()
        }
    }

    fn keeps_names(&self) -> bool {
        false
    }
}

/// sysfs for mount(2); every mount shows the same.
pub fn make(_source: &[u8], _options: &[u8]) -> sync::Result<Arc<dyn FileSystem>> {
    /// One, however often it is mounted: devices are the machine's.
    static SYSTEM: Once<Arc<Sysfs>> = Once::new();
    let system = SYSTEM.call_once(|| {
        add(ENTRIES);
        add(node::ENTRIES);
        add(&iommu_groups::ENTRIES);
        add(vulnerabilities::ENTRIES);
        TABLE.add_specials(&node::files());
        TABLE.add_specials(&pci::files());
        Arc::new(Sysfs {
            device: next_device(),
        })
    });
    Ok(system.clone())
}
