//! `--bypass`: the machine's card is the program's.
//!
//! The kernel leaves the card alone (its option `vfio=`), `libsietch.so` stands in front of the program and
//! finds by its variables which card it has, and the machine's address is the program's
//! (`docs/bypass.md`). An IOMMU keeps the card to the program's memory.

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::flags::{BoardFlag, Ip, NicFlag, RunFlags};
use crate::kernel_file;
use crate::machine_plan;
use crate::pack::{PackError, Packed, elf};

/// Names the library, where it is not in the target folder.
const VARIABLE: &str = "SIETCH_LIBRARY";
/// Where cargo puts it, from the target folder.
const IN_TARGET: &str = "release/libsietch.so";
const IN_MACHINE: &str = "/lib/libsietch.so";

/// The program's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bypass {
    address: Ipv4Addr,
    prefix_len: u8,
    gateway: Option<Ipv4Addr>,
}

impl Bypass {
    /// What `flags` ask for; `None` if not for this.
    pub fn of(flags: &RunFlags) -> Result<Option<Self>, Failure> {
        if !flags.bypass {
            return Ok(None);
        }
        if flags.machine == BoardFlag::Microvm {
            return Err(Failure::NoIommu);
        }
        if flags.nic == NicFlag::E1000 {
            return Err(Failure::NoBypassOfCard);
        }
        match machine_plan::address(&flags.program, &machine_plan::net(flags)) {
            Ip::Static {
                address,
                prefix_len,
                gateway,
            } => Ok(Some(Self {
                address,
                prefix_len,
                gateway,
            })),
            Ip::Automatic | Ip::None => Err(Failure::NoBypassAddress),
        }
    }

    /// Puts the library into the program's image.
    pub fn add_to(packed: &mut Packed) -> Result<(), Failure> {
        if is_static(&packed.path)? {
            return Err(Failure::StaticProgram {
                path: packed.path.clone(),
            });
        }
        Ok(packed.add(&library()?, Path::new(IN_MACHINE))?)
    }

    /// What the library wants to know.
    pub fn environment(&self) -> Vec<String> {
        let Self {
            address,
            prefix_len,
            gateway,
        } = self;
        let mut variables = vec![
            format!("LD_PRELOAD={IN_MACHINE}"),
            format!("SIETCH_LINK=0000:{}", qemu::CARD_OF_PROGRAM),
            format!("SIETCH_ADDRESS={address}/{prefix_len}"),
        ];
        variables.extend(gateway.map(|gateway| format!("SIETCH_GATEWAY={gateway}")));
        variables
    }
}

fn library() -> Result<PathBuf, Failure> {
    let path = match env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => kernel_file::target_folder().join(IN_TARGET),
    };
    match path.is_file() {
        true => Ok(path),
        false => Err(Failure::NoLibrary { path }),
    }
}

/// A static program makes its system calls itself. Scripts have an interpreter, which is another
/// program.
fn is_static(path: &Path) -> Result<bool, PackError> {
    let bytes = fs::read(path).unwrap_or_default();
    Ok(elf::is_elf(&bytes) && elf::needs(path, &bytes)?.interpreter.is_none())
}
