//! What a machine is made of: how it computes, its board, card and memory.

use std::str::FromStr;

use clap::ValueEnum;

/// `--accel`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum AccelFlag {
    /// KVM where the processor virtualises, else emulation
    #[default]
    Auto,
    /// KVM or an error
    Kvm,
    /// Emulation
    Tcg,
    /// Emulation of one CPU whose clock counts instructions
    TcgCounted,
}

/// `--machine`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BoardFlag {
    /// A PC with PCI Express
    #[default]
    Q35,
    /// A small board with virtio over MMIO
    Microvm,
}

/// `--nic`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NicFlag {
    /// The paravirtual card
    #[default]
    Virtio,
    /// Intel's 82540EM; needs --machine q35
    E1000,
    /// Intel's 82576, a pair of queues for each CPU; needs --machine q35
    Igb,
}

/// `--vmm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VmmFlag {
    /// QEMU, as without this flag
    #[default]
    Qemu,
    /// Firecracker: its file and its line
    Firecracker,
    /// cloud-hypervisor
    CloudHypervisor,
}

impl VmmFlag {
    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Qemu => "QEMU",
            Self::Firecracker => "Firecracker",
            Self::CloudHypervisor => "cloud-hypervisor",
        }
    }
}

/// `--bypass`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BypassFlag {
    /// The card itself
    Card,
    /// A VNIC over the card
    Vnic,
}

/// `-m`: a size, rounded up to MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The size in MiB.
    pub mib: u32,
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give a size such as 64M or 1G";
        let text = text.to_ascii_lowercase();
        let text = text.trim_end_matches('b').trim_end_matches('i');
        let digits = text.trim_end_matches(['k', 'm', 'g']);
        let unit: u64 = match &text[digits.len()..] {
            "" => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            "g" => 1 << 30,
            _ => return Err(FORM.into()),
        };
        let bytes = digits
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit));
        let mib = bytes.ok_or(FORM)?.div_ceil(1 << 20);
        if mib < 8 {
            return Err(format!("{mib} MiB is less than any kernel needs: {FORM}"));
        }
        u32::try_from(mib)
            .map(|mib| Self { mib })
            .map_err(|_| FORM.into())
    }
}
