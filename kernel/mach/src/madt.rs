//! The CPUs and I/O APICs that ACPI's MADT lists (ACPI 6.5, 5.2.12).

use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP};

use crate::sync::Lazy;

const CPUS_MAX: usize = arch::layout::MAX_CPUS;
const IO_APICS_MAX: usize = 4;

/// An I/O APIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoApicEntry {
    /// Physical address of its registers.
    pub address: u64,
    /// The first global interrupt that it serves.
    pub first_gsi: u32,
}

/// What the table says.
#[derive(Debug)]
pub struct Madt {
    cpus: [u32; CPUS_MAX],
    cpu_count: usize,
    io_apics: [IoApicEntry; IO_APICS_MAX],
    io_apic_count: usize,
}

const DEFAULT_IO_APIC: IoApicEntry = IoApicEntry {
    address: 0xfec0_0000,
    first_gsi: 0,
};

static MADT: Lazy<Madt> = Lazy::new(|| {
    let mut madt = Madt {
        cpus: [0; CPUS_MAX],
        cpu_count: 0,
        io_apics: [DEFAULT_IO_APIC; IO_APICS_MAX],
        io_apic_count: 0,
    };
    if let Some(table) = find(*b"APIC") {
        madt.read(table);
    }
    madt.io_apic_count = madt.io_apic_count.max(1);
    madt
});

/// APIC numbers of the CPUs that can be used, the boot CPU among them.
pub fn cpus() -> &'static [u32] {
    &MADT.cpus[..MADT.cpu_count]
}

/// The I/O APICs; one at the customary place if the table names none.
pub fn io_apics() -> impl Iterator<Item = IoApicEntry> {
    MADT.io_apics[..MADT.io_apic_count].iter().copied()
}

impl Madt {
    fn read(&mut self, table: &[u8]) {
        const LOCAL_APIC: u8 = 0;
        const IO_APIC: u8 = 1;
        const LOCAL_X2APIC: u8 = 9;
        let mut rest = table.get(44..).unwrap_or(&[]);
        while let [kind, bytes, ..] = *rest {
            let Some(entry) = rest
                .get(..usize::from(bytes))
                .filter(|entry| entry.len() >= 2)
            else {
                return;
            };
            match kind {
                LOCAL_APIC if enabled(entry, 4) => {
                    self.add_cpu(entry.get(3).map(|&id| u32::from(id)))
                }
                LOCAL_X2APIC if enabled(entry, 8) => self.add_cpu(word(entry, 4)),
                IO_APIC => self.add_io_apic(word(entry, 4), word(entry, 8)),
                _ => {}
            }
            rest = &rest[entry.len()..];
        }
    }

    fn add_cpu(&mut self, id: Option<u32>) {
        if let (Some(id), Some(slot)) = (id, self.cpus.get_mut(self.cpu_count)) {
            *slot = id;
            self.cpu_count += 1;
        }
    }

    fn add_io_apic(&mut self, address: Option<u32>, first_gsi: Option<u32>) {
        if let (Some(address), Some(first_gsi), Some(slot)) = (
            address,
            first_gsi,
            self.io_apics.get_mut(self.io_apic_count),
        ) {
            *slot = IoApicEntry {
                address: u64::from(address),
                first_gsi,
            };
            self.io_apic_count += 1;
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

fn enabled(entry: &[u8], at: usize) -> bool {
    word(entry, at).is_some_and(|flags| flags & 1 != 0)
}

/// The table with this signature, found from the RSDP.
fn find(signature: [u8; 4]) -> Option<&'static [u8]> {
    let rsdp = physical(crate::boot::info().rsdp?.0, 36)?;
    let revision = rsdp[15];
    let (root, entry_bytes) = if revision >= 2 {
        (
            u64::from(word(rsdp, 24)?) | u64::from(word(rsdp, 28)?) << 32,
            8,
        )
    } else {
        (u64::from(word(rsdp, 16)?), 4)
    };
    let entries = table(root)?.get(36..)?.chunks_exact(entry_bytes);
    let address = |entry: &[u8]| {
        let high = word(entry, 4).unwrap_or(0);
        Some(u64::from(word(entry, 0)?) | u64::from(high) << 32)
    };
    entries
        .filter_map(|entry| table(address(entry)?))
        .find(|table| table[..4] == signature)
}

fn table(address: u64) -> Option<&'static [u8]> {
    let bytes = word(physical(address, 36)?, 4)?;
    physical(address, bytes as usize).filter(|table| table.len() >= 36)
}

fn physical(address: u64, bytes: usize) -> Option<&'static [u8]> {
    let end = address.checked_add(bytes as u64)?;
    if end > BOOT_DIRECT_MAP_BYTES {
        return None;
    }
    // SAFETY: the firmware's tables lie below 4 GiB in memory that nobody writes.
    Some(unsafe { core::slice::from_raw_parts((DIRECT_MAP + address) as *const u8, bytes) })
}
