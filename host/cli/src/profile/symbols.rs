//! Names of a program's functions, from its ELF files.

use object::{Object, ObjectSymbol, SymbolKind};

#[derive(Debug)]
struct Symbol {
    start: u64,
    /// One past its last address; its start if the file does not say.
    end: u64,
    name: String,
}

/// The functions of one program or library, by address.
#[derive(Debug, Default)]
pub struct Symbols(Vec<Symbol>);

impl Symbols {
    /// Collects the functions of the files, which describe the same program.
    pub fn collect(files: &[object::File<'_>]) -> Self {
        let mut symbols: Vec<Symbol> = files.iter().flat_map(functions).collect();
        // Of several names for one address the one that says its size, then the shortest.
        symbols.sort_by_key(|symbol| {
            let has_no_size = symbol.end == symbol.start;
            (symbol.start, has_no_size, symbol.name.len())
        });
        symbols.dedup_by_key(|symbol| symbol.start);
        Self(symbols)
    }

    /// The function in which `address` lies.
    pub fn find(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|symbol| symbol.start <= address);
        let symbol = self.0.get(after.checked_sub(1)?)?;
        let next = self.0.get(after).map_or(u64::MAX, |next| next.start);
        let end = if symbol.end == symbol.start {
            next
        } else {
            symbol.end
        };
        (address < end).then_some(&symbol.name)
    }
}

fn functions(file: &object::File<'_>) -> Vec<Symbol> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols.filter(|symbol| {
        symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() != 0
    });
    let named = functions.filter_map(|symbol| {
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some(Symbol {
            start: symbol.address(),
            end: symbol.address() + symbol.size(),
            name: readable(name),
        })
    });
    named.collect()
}

/// A name as its author wrote it: without the version of a library's symbol and without
/// Rust's hash.
fn readable(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    format!("{:#}", rustc_demangle::demangle(name))
}
