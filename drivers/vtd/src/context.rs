//! From a function to its domain (9.1, 9.3): a root table with an entry for each bus, and for
//! each bus in use a context table with an entry for each function. An entry has two words.

use alloc::vec::Vec;

use hal::pci::PciAddress;
use hal::{DmaError, DmaSource};

use crate::table::Table;

const PRESENT: u64 = 1 << 0;
/// In the high word: the domain's number, above the address width.
const DOMAIN_SHIFT: u32 = 8;

/// The root table and what hangs in it.
pub(crate) struct RootTable {
    table: Table,
    /// By bus.
    contexts: Vec<(u8, Table)>,
}

/// What a function is led to.
pub(crate) struct Context {
    /// The number of its domain.
    pub domain: u16,
    /// The domain's page table.
    pub tables: u64,
    /// Levels of that.
    pub levels: u8,
}

impl RootTable {
    pub(crate) fn new(source: &impl DmaSource) -> Result<Self, DmaError> {
        Ok(Self {
            table: Table::new(source)?,
            contexts: Vec::new(),
        })
    }

    /// Where the unit finds it.
    pub(crate) fn address(&self) -> u64 {
        self.table.address()
    }

    /// Leads a function to a domain. It must have had none.
    pub(crate) fn lead(
        &mut self,
        source: &impl DmaSource,
        function: PciAddress,
        context: &Context,
    ) -> Result<(), DmaError> {
        let contexts = self.contexts(source, function.bus)?;
        let index = usize::from(function.requester_id() & 0xff);
        // 9.3: 1 stands for three levels, 2 for four.
        let width = u64::from(context.levels - 2);
        let high = u64::from(context.domain) << DOMAIN_SHIFT | width;
        contexts.set(2 * index + 1, high);
        contexts.set(2 * index, context.tables | PRESENT);
        Ok(())
    }

    fn contexts(&mut self, source: &impl DmaSource, bus: u8) -> Result<&Table, DmaError> {
        let known = self.contexts.iter().position(|(of, _)| *of == bus);
        let at = match known {
            Some(at) => at,
            None => {
                let table = Table::new(source)?;
                self.table
                    .set(2 * usize::from(bus), table.address() | PRESENT);
                self.contexts.push((bus, table));
                self.contexts.len() - 1
            }
        };
        // tidy: found or added there just now.
        Ok(&self.contexts[at].1)
    }
}
