//! Names of the kernel's functions.

use std::collections::HashMap;
use std::path::Path;

use qemu::Symbols;

/// How a profile marks functions of the kernel, as `perf` does.
pub const MARK: &str = "_[k]";

/// Whether this is the profiler itself, which stands at the end of every wait.
fn is_own(name: &str) -> bool {
    name.starts_with("mach::profile::") || name.starts_with("sched::profile::")
}

/// The kernel's symbols, and the answers so far.
pub struct KernelNames {
    symbols: Option<Symbols>,
    known: HashMap<u64, Vec<String>>,
}

impl KernelNames {
    /// Reads the kernel's file; without debug lines all addresses stay numbers.
    pub fn read(kernel: &Path) -> Self {
        Self {
            symbols: Symbols::read(kernel),
            known: HashMap::new(),
        }
    }

    /// The functions at `address`: one, and those that it was inlined into, innermost first.
    pub fn functions(&mut self, address: u64) -> &[String] {
        let symbols = &self.symbols;
        self.known.entry(address).or_insert_with(|| {
            let names = symbols.as_ref().map(|symbols| symbols.functions(address));
            let names = names.filter(|names| !names.is_empty());
            let names = names.unwrap_or_else(|| vec![format!("{address:#x}")]);
            let names = names.iter().filter(|name| !is_own(name));
            names.map(|name| format!("{name}{MARK}")).collect()
        })
    }
}
