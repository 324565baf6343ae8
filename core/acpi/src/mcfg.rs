//! MCFG: where the configuration space of PCI Express functions lies in memory, 4096 bytes for
//! each (PCI Firmware Specification 3.3, 4.1.2).

use crate::RequesterId;
use crate::bytes::{half, long};

const ALLOCATIONS: usize = 44;
const ALLOCATION_BYTES: usize = 16;
const SEGMENT: usize = 8;
const FIRST_BUS: usize = 10;
const LAST_BUS: usize = 11;
/// Bytes of one function's space, as a power of two, and of a bus'.
const FUNCTION_SHIFT: u32 = 12;
const BUS_BYTES: u64 = 1 << 20;

/// The table.
#[derive(Clone, Copy, Debug)]
pub struct Mcfg<'a>(&'a [u8]);

impl<'a> Mcfg<'a> {
    /// The table in these bytes, header included; `None` for too few.
    pub fn read(table: &'a [u8]) -> Option<Self> {
        table.get(ALLOCATIONS..)?;
        Some(Self(table))
    }

    /// Where the space of a function begins; `None` if the table lists its bus nowhere.
    pub fn space_of(&self, segment: u16, function: RequesterId) -> Option<u64> {
        let allocations = self.0.get(ALLOCATIONS..)?;
        let mut allocations = allocations.chunks_exact(ALLOCATION_BYTES);
        allocations.find_map(|allocation| space_in(allocation, segment, function))
    }
}

/// Where a function's space begins in one allocation, whose base is bus 0's even where it
/// begins with another.
fn space_in(allocation: &[u8], segment: u16, function: RequesterId) -> Option<u64> {
    let buses = *allocation.get(FIRST_BUS)?..=*allocation.get(LAST_BUS)?;
    let base = long(allocation, 0)?;
    let is_here = half(allocation, SEGMENT)? == segment && buses.contains(&function.bus());
    let can_be = base != 0 && base.is_multiple_of(BUS_BYTES);
    if !is_here || !can_be {
        return None;
    }
    base.checked_add(u64::from(function.0) << FUNCTION_SHIFT)
}
