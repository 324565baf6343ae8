//! The first stack of a program (System V ABI, x86-64, 3.4.1).
//!
//! From high to low addresses: eight zero bytes, the program's path, environment strings,
//! argument strings, 16 random bytes and the platform's name; then, aligned to
//! 16, from low to high: argc, pointers to the arguments, 0, pointers to the environment,
//! 0, the auxiliary vector.

use alloc::vec::Vec;

use super::Arguments;
use mach::mem::fallible::TryGrow;
use sync::{Error, Result};

const PLATFORM: &[u8] = b"x86_64\0";
const RANDOM_BYTES: u64 = 16;

/// Kinds of entries of the auxiliary vector (linux/auxvec.h).
pub mod auxv {
    #![allow(missing_docs, reason = "the names are Linux's own")]
    pub const NULL: u64 = 0;
    pub const PHDR: u64 = 3;
    pub const PHENT: u64 = 4;
    pub const PHNUM: u64 = 5;
    pub const PAGESZ: u64 = 6;
    pub const BASE: u64 = 7;
    pub const FLAGS: u64 = 8;
    pub const ENTRY: u64 = 9;
    pub const UID: u64 = 11;
    pub const EUID: u64 = 12;
    pub const GID: u64 = 13;
    pub const EGID: u64 = 14;
    pub const PLATFORM: u64 = 15;
    pub const HWCAP: u64 = 16;
    pub const CLKTCK: u64 = 17;
    pub const SECURE: u64 = 23;
    pub const RANDOM: u64 = 25;
    pub const HWCAP2: u64 = 26;
    pub const RSEQ_FEATURE_SIZE: u64 = 27;
    pub const RSEQ_ALIGN: u64 = 28;
    pub const EXECFN: u64 = 31;
    pub const SYSINFO_EHDR: u64 = 33;
    pub const MINSIGSTKSZ: u64 = 51;
}

/// A stack's contents and the addresses in it that others want to know.
pub struct Stack {
    /// The bytes from the stack pointer up to its end.
    pub bytes: Vec<u8>,
    /// The stack pointer at the start.
    pub pointer: u64,
    /// First and one past the last byte of the argument strings.
    pub arguments: (u64, u64),
    /// The same for the environment.
    pub environment: (u64, u64),
    /// The auxiliary vector, as it lies there.
    pub auxv: Vec<u64>,
}

/// Builds the stack that ends at `top`. `auxv` are pairs without those that point into
/// the stack itself.
///
/// Errors: `OutOfMemory`.
pub fn build(
    top: u64,
    arguments: &Arguments,
    random: [u64; 2],
    auxv: &[(u64, u64)],
) -> Result<Stack> {
    let strings = Strings::place(top, arguments);
    let mut auxv: Vec<u64> = auxv
        .iter()
        .flat_map(|&(kind, value)| [kind, value])
        .collect();
    auxv.extend([auxv::RANDOM, strings.random, auxv::EXECFN, strings.path]);
    auxv.extend([auxv::PLATFORM, strings.platform, auxv::NULL, 0]);
    let words = 1 + arguments.values.len() + 1 + arguments.environment.len() + 1 + auxv.len();
    let pointer = (strings.platform - words as u64 * 8) & !15;
    let len = (top - pointer) as usize;
    let mut bytes = Vec::new();
    bytes.make_room(len).map_err(|_| Error::OutOfMemory)?;
    let mut put = |word: u64| bytes.extend_from_slice(&word.to_le_bytes());
    put(arguments.values.len() as u64);
    pointers(strings.arguments.0, &arguments.values).for_each(&mut put);
    put(0);
    pointers(strings.environment.0, &arguments.environment).for_each(&mut put);
    put(0);
    auxv.iter().copied().for_each(&mut put);
    bytes.resize((strings.platform - pointer) as usize, 0);
    bytes.extend_from_slice(PLATFORM);
    bytes.resize((strings.random - pointer) as usize, 0);
    random
        .iter()
        .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.resize((strings.arguments.0 - pointer) as usize, 0);
    let all = arguments
        .values
        .iter()
        .chain(&arguments.environment)
        .chain([&arguments.path]);
    for string in all {
        bytes.extend_from_slice(string);
        bytes.push(0);
    }
    bytes.resize(len, 0);
    let Strings {
        arguments,
        environment,
        ..
    } = strings;
    Ok(Stack {
        bytes,
        pointer,
        arguments,
        environment,
        auxv,
    })
}

/// Where the strings go.
struct Strings {
    path: u64,
    environment: (u64, u64),
    arguments: (u64, u64),
    random: u64,
    platform: u64,
}

impl Strings {
    fn place(top: u64, arguments: &Arguments) -> Self {
        let path = top - 8 - (arguments.path.len() as u64 + 1);
        let environment = path - strings_len(&arguments.environment);
        let values = environment - strings_len(&arguments.values);
        let random = (values - RANDOM_BYTES) & !15;
        let platform = (random - PLATFORM.len() as u64) & !15;
        Self {
            path,
            environment: (environment, path),
            arguments: (values, environment),
            random,
            platform,
        }
    }
}

fn strings_len(strings: &[Vec<u8>]) -> u64 {
    strings.iter().map(|string| string.len() as u64 + 1).sum()
}

/// The addresses of strings that lie one after the other from `at` on.
fn pointers(at: u64, strings: &[Vec<u8>]) -> impl Iterator<Item = u64> {
    strings.iter().scan(at, |next, string| {
        let here = *next;
        *next += string.len() as u64 + 1;
        Some(here)
    })
}
