//! Which function an address of a guest belongs to.

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;

use crate::Guest;
use qemu::Symbols;

/// Where the kernel's half of the addresses begins, in both systems.
pub const KERNEL: u64 = 1 << 63;
/// At which port a Linux guest offers its symbols.
pub const PORT: u16 = 9;

/// The symbols of a kernel.
pub enum Names {
    /// Of ours: its ELF file, whose debug lines tell inlined functions as well.
    Sietch(Box<Symbols>),
    /// The same, and those of a program at fixed addresses.
    Program(Box<Symbols>, Box<Symbols>),
    /// The same, and those of a library that a program has loaded at this address.
    Library(Box<Symbols>, Box<Symbols>, u64),
    /// Of Linux: what its `/proc/kallsyms` says, in the order of the addresses.
    Linux(Vec<(u64, String)>),
}

impl Names {
    /// Reads the kernel's file.
    pub fn of_sietch(kernel: &Path) -> Result<Self, String> {
        read(kernel).map(Self::Sietch)
    }

    /// Reads the kernel's file and a program's.
    pub fn of_sietch_and_program(kernel: &Path, program: &Path) -> Result<Self, String> {
        Ok(Self::Program(read(kernel)?, read(program)?))
    }

    /// Reads the kernel's file and that of a library at `base`.
    pub fn of_sietch_and_library(kernel: &Path, library: &Path, base: u64) -> Result<Self, String> {
        Ok(Self::Library(read(kernel)?, read(library)?, base))
    }

    /// Reads what a guest sends from [`PORT`].
    pub fn of_linux(guest: &mut Guest) -> Result<Self, String> {
        let mut stream = None;
        guest.wait_until("send its symbols", || {
            stream = TcpStream::connect(Guest::address(PORT)).ok();
            stream.is_some()
        })?;
        let mut text = String::new();
        let read = stream.map(|mut stream| stream.read_to_string(&mut text));
        match read {
            Some(Ok(bytes)) if bytes > 0 => Ok(Self::Linux(functions_of(&text))),
            _ => Err("the guest sent no symbols".into()),
        }
    }

    /// The names of the functions at an address, those inlined into others first; none for an
    /// instruction of a program.
    pub fn at(&self, address: u64) -> Vec<String> {
        match self {
            Self::Program(_, program) if address < KERNEL => program.functions(address),
            Self::Library(_, library, base) if (*base..KERNEL).contains(&address) => {
                library.functions(address - base)
            }
            _ if address < KERNEL => Vec::new(),
            Self::Sietch(symbols) | Self::Program(symbols, _) | Self::Library(symbols, ..) => {
                symbols.functions(address)
            }
            Self::Linux(functions) => {
                let next = functions.partition_point(|&(start, _)| start <= address);
                let function = next.checked_sub(1).map(|index| functions[index].1.clone());
                vec![function.unwrap_or_default()]
            }
        }
    }
}

fn read(file: &Path) -> Result<Box<Symbols>, String> {
    let symbols = Symbols::read(file).map(Box::new);
    symbols.ok_or_else(|| format!("{}: no symbols", file.display()))
}

/// Lines as `ffffffff81000000 T startup_64` and, of modules, `… t receive_buf [virtio_net]`.
fn functions_of(kallsyms: &str) -> Vec<(u64, String)> {
    let mut functions = Vec::new();
    for line in kallsyms.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        functions.extend(u64::from_str_radix(address, 16).map(|address| (address, name.into())));
    }
    functions.sort();
    functions
}
