//! Where the high-precision event timer is (IA-PC HPET specification 1.0a, 3.2.4).

/// Of the address structure in the table: the address space (0 is memory), the address.
const SPACE: usize = 40;
const ADDRESS: usize = 44;

/// The physical address of its registers, if the machine has one.
pub(crate) fn hpet() -> Option<u64> {
    let table = super::find(*b"HPET")?;
    let is_memory = table.get(SPACE) == Some(&0);
    is_memory.then(|| ::acpi::address(table, ADDRESS)).flatten()
}
