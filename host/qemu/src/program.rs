//! The QEMU on this host: where it is, how old, and what it can accelerate with.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::machine::Accel;

/// The first version with everything that we use.
const MAJOR_MIN: u32 = 8;
const NAME: &str = "qemu-system-x86_64";

/// A QEMU of this host.
#[derive(Clone, Debug)]
pub struct Qemu {
    /// The program.
    pub path: PathBuf,
}

/// How instructions will be executed, decided for this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceleration {
    /// By the processor.
    Kvm,
    /// By QEMU's translator.
    Tcg,
    /// By QEMU's translator, with a clock of one nanosecond for each instruction.
    TcgCounted,
    /// The same for CPUs that take turns on one thread of the host.
    TcgTurns,
    /// By QEMU's translator, which looks each block of instructions up again.
    TcgSlow,
}

impl Qemu {
    /// Finds QEMU on the search path, or where `SIETCH_QEMU` says. It is not asked how old it is, since that takes as long as
    /// half a machine's start: see [`Qemu::major`].
    pub fn find() -> Result<Self, Error> {
        let named = env::var_os("SIETCH_QEMU").map(PathBuf::from);
        let path = named.or_else(|| on_path(NAME));
        let path = path.filter(|path| path.is_file());
        path.map(|path| Self { path }).ok_or(Error::QemuMissing)
    }

    /// Its major version, which is new enough.
    pub fn major(&self) -> Result<u32, Error> {
        let output = Command::new(&self.path).arg("--version").output();
        let output = output.map_err(|_| Error::QemuMissing)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let major = parse_major(&text).ok_or(Error::QemuMissing)?;
        match major < MAJOR_MIN {
            false => Ok(major),
            true => Err(Error::QemuTooOld {
                found: major,
                needed: MAJOR_MIN,
            }),
        }
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| path.is_file())
}

/// `QEMU emulator version 10.0.2 (...)` gives 10.
fn parse_major(text: &str) -> Option<u32> {
    let version = text.split("version ").nth(1)?;
    version.split('.').next()?.parse().ok()
}

impl Acceleration {
    /// Follows the user's wish if the host can.
    ///
    /// `/dev/kvm` alone proves nothing: it also exists where the processor does not
    /// virtualise, and the guest's kernel is then emulated slowly and incompletely.
    /// So `auto` asks the processor's flags too; an outright `kvm` asks only the device.
    pub fn choose(wish: Accel) -> Result<Self, Error> {
        match wish {
            Accel::Tcg => Ok(Self::Tcg),
            Accel::TcgCounted => Ok(Self::TcgCounted),
            Accel::TcgTurns => Ok(Self::TcgTurns),
            Accel::TcgSlow => Ok(Self::TcgSlow),
            Accel::Auto if processor_virtualises() && kvm_opens().is_ok() => Ok(Self::Kvm),
            Accel::Auto => Ok(Self::Tcg),
            Accel::Kvm => kvm_opens().map(|()| Self::Kvm),
        }
    }

    /// QEMU's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg | Self::TcgCounted | Self::TcgSlow => "tcg",
            Self::TcgTurns => "tcg,thread=single",
        }
    }

    /// QEMU's name for the processor. QEMU ends itself when a guest arms the deadline
    /// timer of an x2APIC while instructions are counted.
    pub fn processor(self) -> &'static str {
        match self {
            Self::Kvm | Self::Tcg | Self::TcgSlow => "max",
            Self::TcgCounted | Self::TcgTurns => "max,-x2apic",
        }
    }
}

fn kvm_opens() -> Result<(), Error> {
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm");
    opened.map(drop).map_err(|error| Error::NoKvm {
        reason: format!("/dev/kvm: {error}"),
    })
}

fn processor_virtualises() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| has_virtualisation_flag(&text))
}

fn has_virtualisation_flag(cpuinfo: &str) -> bool {
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or("");
    flags
        .split_whitespace()
        .any(|flag| flag == "vmx" || flag == "svm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_banner() {
        assert_eq!(
            parse_major("QEMU emulator version 10.0.2 (Debian 1:10.0.2)\n"),
            Some(10)
        );
        assert_eq!(parse_major("something else"), None);
    }

    #[test]
    fn kvm_needs_a_processor_that_virtualises() {
        assert!(has_virtualisation_flag(
            "model: x\nflags\t\t: fpu vmx sse\n"
        ));
        assert!(!has_virtualisation_flag("flags\t\t: fpu vmxish sse\n"));
    }
}
