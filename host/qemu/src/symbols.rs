//! Names for the kernel's addresses, from the debug lines of its ELF file.

use std::path::Path;

/// The kernel's symbols.
pub struct Symbols(addr2line::Loader);

impl Symbols {
    /// Reads the symbols of an ELF file; `None` if it has none.
    pub fn read(kernel: &Path) -> Option<Self> {
        addr2line::Loader::new(kernel).ok().map(Self)
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
