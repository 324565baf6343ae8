//! Names for the kernel's addresses, from the debug lines of its ELF file.

use std::path::Path;

use crate::names;

/// The kernel's symbols.
pub struct Symbols(addr2line::Loader);

impl Symbols {
    /// Reads the symbols of an ELF file; `None` if it has none.
    pub fn read(kernel: &Path) -> Option<Self> {
        addr2line::Loader::new(kernel).ok().map(Self)
    }

    /// The functions at a code address: one, and those that were inlined into it, innermost
    /// first, each with its modules and without generic parameters.
    pub fn functions(&self, address: u64) -> Vec<String> {
        let mut functions = Vec::new();
        if let Ok(mut frames) = self.0.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let file = frame.location.and_then(|place| place.file).unwrap_or("");
                let name = frame
                    .function
                    .as_ref()
                    .and_then(|name| name.demangle().ok());
                functions.extend(name.map(|name| names::qualified(&name, file)));
            }
        }
        if let Some(symbol) = self.0.find_symbol(address) {
            // The symbol of the outermost function has the modules in it.
            functions.pop();
            let name = addr2line::demangle_auto(symbol.into(), None);
            functions.push(names::without_parameters(&name));
        }
        functions
    }

    /// `function at file:line` for a code address, with inlined callers, innermost first.
    pub fn describe(&self, address: u64) -> Vec<String> {
        let mut described = Vec::new();
        let Ok(mut frames) = self.0.find_frames(address) else {
            return described;
        };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame
                .function
                .as_ref()
                .and_then(|name| name.demangle().ok());
            let function = function.as_deref().unwrap_or("?");
            let place = frame
                .location
                .and_then(|place| Some((place.file?, place.line?)));
            described.push(match place {
                Some((file, line)) => format!("{function} at {file}:{line}"),
                None => function.to_string(),
            });
        }
        if described.is_empty() {
            described.extend(self.0.find_symbol(address).map(str::to_string));
        }
        described
    }
}
