//! How to find a function's caller: the unwind tables in `.eh_frame` (DWARF 5, section 6.4; Linux
//! Standard Base, 10.6), which every program has for its exceptions, stripped or not.

use std::cell::RefCell;
use std::collections::HashMap;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, X86_64,
};
use object::{Object, ObjectSection};

/// The registers that are followed from frame to frame.
pub const REGISTERS: [Register; 7] = [
    X86_64::RBP,
    X86_64::RBX,
    X86_64::R12,
    X86_64::R13,
    X86_64::R14,
    X86_64::R15,
    X86_64::RSP,
];

/// Where the frame of a function starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// So many bytes above what this of [`REGISTERS`] holds.
    Above(usize, i64),
    /// In a stub that the linker made for calls to other libraries.
    Stub,
}

/// How to find the caller from one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where the frame starts.
    pub start: Start,
    /// Where the return address lies, from there; `None` in the outermost function.
    pub return_to: Option<i64>,
    /// Where the registers were saved, from there; `None` for those that still hold.
    pub saved: [Option<i64>; REGISTERS.len()],
}

#[derive(Debug)]
struct Function {
    start: u64,
    end: u64,
    offset: usize,
}

/// The unwind table of one file.
#[derive(Debug, Default)]
pub struct Table {
    section: Vec<u8>,
    bases: BaseAddresses,
    functions: Vec<Function>,
    rows: RefCell<HashMap<u64, Option<Row>>>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl Table {
    /// Reads the table of a file; empty if it has none.
    pub fn read(file: &object::File<'_>) -> Self {
        let address = |name| file.section_by_name(name).map(|section| section.address());
        let mut bases = BaseAddresses::default();
        if let Some(at) = address(".eh_frame") {
            bases = bases.set_eh_frame(at);
        }
        if let Some(at) = address(".text") {
            bases = bases.set_text(at);
        }
        if let Some(at) = address(".got") {
            bases = bases.set_got(at);
        }
        let section = file.section_by_name(".eh_frame");
        let section = section.and_then(|section| section.data().ok());
        let section = section.unwrap_or_default().to_vec();
        let functions = functions(&EhFrame::new(&section, LittleEndian), &bases);
        Self {
            section,
            bases,
            functions,
            rows: RefCell::default(),
        }
    }

    /// The function's first address, for one that has no name.
    pub fn function_start(&self, address: u64) -> Option<u64> {
        self.function(address).map(|function| function.start)
    }

    fn function(&self, address: u64) -> Option<&Function> {
        let after = self
            .functions
            .partition_point(|function| function.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (address < function.end).then_some(function)
    }

    /// How to find the caller of the code at `address`.
    pub fn row(&self, address: u64) -> Option<Row> {
        let mut rows = self.rows.borrow_mut();
        let row = rows
            .entry(address)
            .or_insert_with(|| self.read_row(address));
        row.clone()
    }

    fn read_row(&self, address: u64) -> Option<Row> {
        let function = self.function(address)?;
        let section: EhFrame<Slice<'_>> = EhFrame::new(&self.section, LittleEndian);
        let offset = function.offset.into();
        let fde = section
            .fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset)
            .ok()?;
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&section, &self.bases, &mut context, address)
            .ok()?;
        let start = match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let index = REGISTERS.iter().position(|known| *known == register)?;
                Start::Above(index, offset)
            }
            CfaRule::Expression(_) => Start::Stub,
        };
        let saved = |register| match row.register(register) {
            RegisterRule::Offset(offset) => Some(offset),
            _ => None,
        };
        Some(Row {
            start,
            return_to: saved(X86_64::RA),
            saved: REGISTERS.map(saved),
        })
    }
}

fn functions(section: &EhFrame<Slice<'_>>, bases: &BaseAddresses) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut entries = section.entries(bases);
    // What follows damage is left out.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        if let Ok(fde) = partial.parse(EhFrame::cie_from_offset) {
            functions.push(Function {
                start: fde.initial_address(),
                end: fde.initial_address().saturating_add(fde.len()),
                offset: fde.offset(),
            });
        }
    }
    functions.sort_by_key(|function| function.start);
    functions
}
